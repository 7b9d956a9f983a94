package conformance

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
	"github.com/origami-gemm/origami/sdk/wire"
)

func checkInfo(ctx context.Context, s *subject, found *findings, info wire.Info) error {
	if info.Failing != "" {
		found.add("it says that it cannot work: %s", info.Failing)
	}
	if info.Version == "" {
		found.add("it has no version")
	}
	if again, err := s.client.Info(ctx); err != nil || !reflect.DeepEqual(again, info) {
		found.add("asked twice it is %+v and %+v (%v)", info, again, err)
	}
	return nil
}

func checkManifest(ctx context.Context, s *subject, found *findings, m arch.Manifest) error {
	if again, err := s.client.Manifest(ctx); err != nil || !reflect.DeepEqual(again, m) {
		found.add("asked twice it differs (%v)", err)
	}
	if info, err := s.client.Info(ctx); err == nil && (info.Name != m.Name || info.Version != m.Version) {
		found.add("it is of %s %s, and Info is of %s %s", m.Name, m.Version, info.Name, info.Version)
	}
	if len(m.Archs) == 0 {
		found.add("it lists no architecture")
	}
	var ids []string
	for _, a := range m.Archs {
		ids = append(ids, a.ID)
		for _, names := range []struct {
			what string
			list []string
		}{{"model", a.Models}, {"kernel family", a.Kernels}} {
			found.unique(a.ID+": "+names.what, names.list)
		}
		var devices []string
		for _, d := range a.Devices {
			devices = append(append(devices, d.ID), d.Aliases...)
			if d.Name == "" {
				found.add("%s: the device %s has no product name", a.ID, d.ID)
			}
		}
		found.unique(a.ID+": device", devices)
	}
	found.unique("architecture", ids)
	var keys []string
	for _, o := range m.Options {
		keys = append(keys, o.Key)
		if o.Doc == "" {
			found.add("the option %s has no explanation", o.Key)
		}
	}
	found.unique("option", keys)
	return nil
}

// unique adds a finding for each name that equals another, ignoring case, and for each that is not one word.
func (f *findings) unique(what string, names []string) {
	seen := map[string]bool{}
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, " \t\n@,=") {
			f.add("%s %q: a name is one word without @ , and =", what, name)
		}
		if lower := strings.ToLower(name); seen[lower] {
			f.add("%s %q comes twice", what, name)
		} else {
			seen[lower] = true
		}
	}
}

// checkOpen opens everything that the manifest lists, by full name and by default.
func checkOpen(ctx context.Context, s *subject, found *findings, m arch.Manifest) error {
	for _, r := range s.requests(ctx, m) {
		a, err := s.client.Open(ctx, r)
		if err != nil {
			found.add("%s@%s %s does not open: %s", r.Arch, r.Device, asked(r), err)
			continue
		}
		d := a.Describe()
		if d.Arch != r.Arch || d.Device != r.Device || r.Model != "" && d.Model != r.Model {
			found.add("asked for %s@%s %s, it opens %s@%s %s", r.Arch, r.Device, asked(r), d.Arch, d.Device, d.Model)
		}
		if r.Kernel != "" && !slices.Contains(d.Kernels, r.Kernel) {
			found.add("asked for %s@%s %s, it opens a model of %s", r.Arch, r.Device, asked(r), strings.Join(d.Kernels, ", "))
		}
		entry := m.Archs[slices.IndexFunc(m.Archs, func(a arch.ArchEntry) bool { return a.ID == r.Arch })]
		for _, kernel := range d.Kernels {
			if !slices.Contains(entry.Kernels, kernel) {
				found.add("%s@%s %s: the manifest does not list the kernel family %q", r.Arch, r.Device,
					asked(r), kernel)
			}
		}
		if !slices.Equal(d.Models, entry.Models) {
			found.add("%s@%s %s: its models are %v, by the manifest %v", r.Arch, r.Device, asked(r),
				d.Models, entry.Models)
		}
	}
	for _, a := range m.Archs {
		opened, err := s.client.Open(ctx, arch.OpenRequest{Arch: a.ID})
		if err != nil {
			found.add("%s does not open by default: %s", a.ID, err)
			continue
		}
		if d := opened.Describe(); d.Device != a.Devices[0].ID || d.Model != a.Models[0] {
			found.add("%s opens %s under %s, and the first of the manifest are %s and %s", a.ID, d.Device, d.Model,
				a.Devices[0].ID, a.Models[0])
		}
	}
	return nil
}

// asked is the model or the kernel family that a request asks for.
func asked(r arch.OpenRequest) string { return strings.TrimSpace(r.Model + " " + r.Kernel) }

// checkReopen compares the answers to Open: a host refuses a plugin whose description changes after a restart.
func checkReopen(ctx context.Context, s *subject, found *findings, m arch.Manifest) error {
	client := pb.NewArchServiceClient(s.conn)
	for _, r := range s.requests(ctx, m) {
		request := openMessage(r)
		first, err := client.Open(ctx, request)
		if err != nil {
			continue // checkOpen reports it
		}
		if _, err := client.Close(ctx, &pb.CloseRequest{Handle: first.GetHandle()}); err != nil {
			found.add("%s@%s %s cannot be closed: %s", r.Arch, r.Device, asked(r), err)
		}
		again, err := client.Open(ctx, request)
		if err != nil {
			found.add("%s@%s %s does not open again: %s", r.Arch, r.Device, asked(r), err)
			continue
		}
		if !slices.Equal(first.GetHandle(), again.GetHandle()) {
			found.add("%s@%s %s: opened again it has another handle", r.Arch, r.Device, asked(r))
		}
		if !proto.Equal(first.GetDescription(), again.GetDescription()) || !slices.EqualFunc(first.GetLevels(),
			again.GetLevels(), func(a, b *pb.Level) bool { return proto.Equal(a, b) }) {
			found.add("%s@%s %s: opened again it describes itself differently", r.Arch, r.Device, asked(r))
		}
	}
	return nil
}

// unknownName names no architecture, device, model or option.
const unknownName = "no-such-name"

func checkBadOpen(ctx context.Context, s *subject, found *findings, m arch.Manifest) error {
	try := func(what string, r arch.OpenRequest) {
		_, err := s.client.Open(ctx, r)
		expectInput(found, what, err)
	}
	try("an unknown architecture", arch.OpenRequest{Arch: unknownName})
	for _, a := range m.Archs {
		try(a.ID+": an unknown device", arch.OpenRequest{Arch: a.ID, Device: unknownName})
		try(a.ID+": an unknown model", arch.OpenRequest{Arch: a.ID, Model: unknownName})
		try(a.ID+": an unknown option", arch.OpenRequest{Arch: a.ID, Options: map[string]string{unknownName: "1"}})
		try(a.ID+": an override of an unknown parameter", arch.OpenRequest{Arch: a.ID,
			Overrides: map[string]hw.OverrideValue{unknownName: {Value: 1}}})
		opened, err := s.client.Open(ctx, arch.OpenRequest{Arch: a.ID})
		if err != nil {
			continue // checkOpen reports it
		}
		for _, p := range opened.Describe().Params {
			try(a.ID+": an override of "+p.Name+" that is negative", arch.OpenRequest{Arch: a.ID,
				Overrides: map[string]hw.OverrideValue{p.Name: {Value: -1, Unit: p.Unit}}})
			try(a.ID+": an override of "+p.Name+" in an unknown unit", arch.OpenRequest{Arch: a.ID,
				Overrides: map[string]hw.OverrideValue{p.Name: {Value: 1, Unit: "furlong"}}})
			break // one stands for all
		}
		for _, o := range m.Options {
			if len(o.Values) > 0 {
				try(a.ID+": the option "+o.Key+" with a value that it does not list", arch.OpenRequest{Arch: a.ID,
					Options: map[string]string{o.Key: unknownName}})
			}
		}
	}
	if _, err := s.client.Manifest(ctx); err != nil {
		found.add("afterwards: %s", err)
	}
	return nil
}

// checkBadInput sends impossible problems, configurations and spaces.
func checkBadInput(ctx context.Context, s *subject, found *findings, group []*testcase) {
	c := group[0]
	good := c.candidates.Configs[:1]
	est := make([]arch.Estimate, 1)
	row := make([]float64, len(c.Describe().Terms))
	ask := func(what string, p gemm.Problem, configs []gemm.Config) {
		err := c.Estimate(ctx, est, p, configs)
		expectInput(found, c.target.String()+": Estimate of "+what, err)
		err = c.Terms(ctx, row, p, configs)
		expectInput(found, c.target.String()+": Terms of "+what, err)
		_, err = c.Mapping(ctx, p, configs[0])
		expectInput(found, c.target.String()+": Mapping of "+what, err)
	}
	for _, bad := range badProblems(c.problem) {
		ask(bad.what, bad.value, good)
	}
	ask("a problem of a type that the family does not have", untaken(c.Describe(), c.problem, good[0].Kernel), good)
	for _, bad := range badConfigs(good[0]) {
		ask(bad.what, c.problem, []gemm.Config{bad.value})
	}
	for _, bad := range []named[arch.Space]{
		{"an unknown kernel family", arch.Space{Kernel: unknownName}},
		{"a block of 0", arch.Space{Kernel: c.kernel, BlockM: []int{0}}},
		{"a negative block", arch.Space{Kernel: c.kernel, BlockN: []int{-16}}},
		{"a block of 2^40", arch.Space{Kernel: c.kernel, BlockK: []int{1 << 40}}},
	} {
		_, err := c.Candidates(ctx, c.problem, bad.value)
		expectInput(found, c.target.String()+": Candidates of a space with "+bad.what, err)
	}
	// The bad requests have changed nothing.
	again := make([]arch.Estimate, len(c.estimates))
	if err := c.Estimate(ctx, again, c.problem, c.candidates.Configs); err != nil {
		found.add("%s: after bad requests: %s", c, err)
		return
	}
	compare(found, c, "after bad requests", again, identity(len(again)))
}

// untaken is a problem of a type that a family does not have: by its declared types, or without any by the matrix
// instructions of the device. If the family has all types, the type is zero, which no model takes.
func untaken(d *arch.Description, p gemm.Problem, kernel string) gemm.Problem {
	declares := slices.ContainsFunc(d.Families, func(f arch.Family) bool { return f.Name == kernel && len(f.Types) > 0 })
	p.Out = 0
	for _, p.DType = range gemm.DTypes() {
		if declares && d.SupportsTypes(kernel, &p) != nil || !declares && d.Atom(p.DType) == nil {
			return p
		}
	}
	p.DType = 0
	return p
}
