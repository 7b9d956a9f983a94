package wire

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// This file holds every conversion between core and protobuf. toX never fails. fromX checks what the type system of
// protobuf leaves open (lengths, indices, enum values, finite numbers) and says what is wrong, without saying who sent
// it: the caller knows that.

// Element types, bounds, tiers, keys and dimensions have the same numbers on both sides; the test of this file holds them to that.

func toProblem(p gemm.Problem) *pb.Problem {
	q := &pb.Problem{
		M: int64(p.M), N: int64(p.N), K: int64(p.K), Batch: int64(p.Batch),
		AMajor: toMajor(p.AMajor), BMajor: toMajor(p.BMajor),
	}
	if p.DType <= gemm.INT8 {
		q.ElementType = pb.ElementType(p.DType)
	}
	return q
}

// fromProblem keeps unspecified values as zero: what a problem must have is the model's to say.
func fromProblem(q *pb.Problem) (gemm.Problem, error) {
	p := gemm.Problem{M: int(q.GetM()), N: int(q.GetN()), K: int(q.GetK()), Batch: int(q.GetBatch())}
	var err error
	if p.AMajor, err = fromMajor(q.GetAMajor()); err != nil {
		return p, fmt.Errorf("a_major: %w", err)
	}
	if p.BMajor, err = fromMajor(q.GetBMajor()); err != nil {
		return p, fmt.Errorf("b_major: %w", err)
	}
	p.DType, err = fromElementType(q.GetElementType())
	return p, err
}

var majors = [...]gemm.Major{pb.Major_MAJOR_K: gemm.MajorK, pb.Major_MAJOR_M: gemm.MajorM, pb.Major_MAJOR_N: gemm.MajorN}

func toMajor(m gemm.Major) pb.Major {
	for i, major := range majors {
		if m == major {
			return pb.Major(i)
		}
	}
	return pb.Major_MAJOR_UNSPECIFIED
}

func fromMajor(m pb.Major) (gemm.Major, error) {
	if m < 0 || int(m) >= len(majors) {
		return 0, fmt.Errorf("unknown major %d", m)
	}
	return majors[m], nil
}

func fromElementType(t pb.ElementType) (gemm.DType, error) {
	if t < 0 || t > pb.ElementType(gemm.INT8) {
		return 0, fmt.Errorf("unknown element type %d", t)
	}
	return gemm.DType(t), nil
}

func toConfigs(cfgs []gemm.Config) *pb.Configs {
	n := len(cfgs)
	columns := make([]int64, 7*n)
	column := func(i int) []int64 { return columns[i*n : (i+1)*n : (i+1)*n] }
	q := &pb.Configs{
		BlockM: column(0), BlockN: column(1), BlockK: column(2), GroupM: column(3),
		NumWarps: column(4), NumStages: column(5), SplitK: column(6),
	}
	var kernels names
	for i := range cfgs {
		c := &cfgs[i]
		q.BlockM[i], q.BlockN[i], q.BlockK[i], q.GroupM[i] = int64(c.BlockM), int64(c.BlockN), int64(c.BlockK), int64(c.GroupM)
		q.NumWarps[i], q.NumStages[i], q.SplitK[i] = int64(c.NumWarps), int64(c.NumStages), int64(c.SplitK)
		// The index column appears with the second kernel family; a list of one family does without.
		if k := kernels.index(c.Kernel); k != 0 || q.Kernel != nil {
			if q.Kernel == nil {
				q.Kernel = make([]uint32, i, n)
			}
			q.Kernel = append(q.Kernel, k)
		}
	}
	for i := range kernels {
		kernels[i] = valid(kernels[i])
	}
	q.Kernels = kernels
	return q
}

func fromConfigs(q *pb.Configs) ([]gemm.Config, error) {
	n := len(q.GetBlockM())
	if n == 0 {
		return nil, nil
	}
	for _, column := range [][]int64{q.BlockN, q.BlockK, q.GroupM, q.NumWarps, q.NumStages, q.SplitK} {
		if len(column) != n {
			return nil, fmt.Errorf("configurations: columns of %d and %d elements", n, len(column))
		}
	}
	if len(q.Kernels) == 0 || len(q.Kernel) != 0 && len(q.Kernel) != n {
		return nil, fmt.Errorf("configurations: %d kernel names and %d indices for %d configurations", len(q.Kernels), len(q.Kernel), n)
	}
	cfgs := make([]gemm.Config, n)
	for i := range cfgs {
		kernel := uint32(0)
		if len(q.Kernel) != 0 {
			kernel = q.Kernel[i]
		}
		if int(kernel) >= len(q.Kernels) {
			return nil, fmt.Errorf("configurations: kernel index %d of %d", kernel, len(q.Kernels))
		}
		cfgs[i] = gemm.Config{
			BlockM: int(q.BlockM[i]), BlockN: int(q.BlockN[i]), BlockK: int(q.BlockK[i]), GroupM: int(q.GroupM[i]),
			NumWarps: int(q.NumWarps[i]), NumStages: int(q.NumStages[i]), SplitK: int(q.SplitK[i]), Kernel: q.Kernels[kernel],
		}
	}
	return cfgs, nil
}

// fromAnswered is fromConfigs for what a plugin answers, which a caller may take as it is.
func fromAnswered(q *pb.Configs) ([]gemm.Config, error) {
	cfgs, err := fromConfigs(q)
	for i := range cfgs {
		c := &cfgs[i]
		if min(c.BlockM, c.BlockN, c.BlockK, c.GroupM, c.NumWarps, c.NumStages, c.SplitK) < 0 {
			return nil, fmt.Errorf("configuration %d has a negative size: %s", i, c)
		}
	}
	return cfgs, err
}

func fromConfig(q *pb.Configs) (gemm.Config, error) {
	cfgs, err := fromConfigs(q)
	if err != nil {
		return gemm.Config{}, err
	}
	if len(cfgs) != 1 {
		return gemm.Config{}, fmt.Errorf("%d configurations where one is expected", len(cfgs))
	}
	return cfgs[0], nil
}

// valid makes text that a user may have typed fit for a protobuf string, which must be UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// names is a table of distinct strings.
type names []string

func (t *names) index(name string) uint32 {
	for i, n := range *t {
		if n == name {
			return uint32(i)
		}
	}
	*t = append(*t, name)
	return uint32(len(*t) - 1)
}

func toSpace(s arch.Space) *pb.Space {
	return &pb.Space{
		Kernel: valid(s.Kernel),
		BlockM: toInts(s.BlockM), BlockN: toInts(s.BlockN), BlockK: toInts(s.BlockK),
		NumWarps: toInts(s.NumWarps), NumStages: toInts(s.NumStages), SplitK: toInts(s.SplitK),
	}
}

func fromSpace(q *pb.Space) arch.Space {
	return arch.Space{
		Kernel: q.GetKernel(),
		BlockM: fromInts(q.GetBlockM()), BlockN: fromInts(q.GetBlockN()), BlockK: fromInts(q.GetBlockK()),
		NumWarps: fromInts(q.GetNumWarps()), NumStages: fromInts(q.GetNumStages()), SplitK: fromInts(q.GetSplitK()),
	}
}

func toInts(v []int) []int64 {
	if len(v) == 0 {
		return nil
	}
	out := make([]int64, len(v))
	for i := range v {
		out[i] = int64(v[i])
	}
	return out
}

func fromInts(v []int64) []int {
	if len(v) == 0 {
		return nil
	}
	out := make([]int, len(v))
	for i := range v {
		out[i] = int(v[i])
	}
	return out
}

func toCandidates(c *arch.Candidates) *pb.CandidatesResponse {
	q := &pb.CandidatesResponse{Configs: toConfigs(c.Configs)}
	rejected := make([]gemm.Config, len(c.Rejected))
	var reasons names
	for i, r := range c.Rejected {
		rejected[i] = r.Config
		q.Positions = append(q.Positions, int64(r.Position))
		q.Reasons = append(q.Reasons, reasons.index(string(r.Reason)))
		q.Details = append(q.Details, r.Detail)
	}
	q.Rejected, q.ReasonNames = toConfigs(rejected), reasons
	return q
}

func fromCandidates(q *pb.CandidatesResponse) (*arch.Candidates, error) {
	configs, err := fromAnswered(q.GetConfigs())
	if err != nil {
		return nil, err
	}
	rejected, err := fromAnswered(q.GetRejected())
	if err != nil {
		return nil, fmt.Errorf("rejected %w", err)
	}
	n := len(rejected)
	if len(q.GetPositions()) != n || len(q.GetReasons()) != n || len(q.GetDetails()) != n {
		return nil, fmt.Errorf("%d rejected configurations with %d positions, %d reasons and %d details",
			n, len(q.GetPositions()), len(q.GetReasons()), len(q.GetDetails()))
	}
	for i := range configs {
		if err := configs[i].Validate(); err != nil {
			return nil, err
		}
	}
	c := &arch.Candidates{Configs: configs}
	previous := -1
	for i := range rejected {
		r := arch.Rejection{Config: rejected[i], Position: int(q.Positions[i]), Detail: q.Details[i]}
		if r.Reason, err = fromReason(q.ReasonNames, q.Reasons[i]); err != nil {
			return nil, err
		}
		if r.Position <= previous || r.Position >= n+len(configs) {
			return nil, fmt.Errorf("rejected configuration %d has position %d after %d, of %d", i, r.Position, previous, n+len(configs))
		}
		previous = r.Position
		c.Rejected = append(c.Rejected, r)
	}
	return c, nil
}

func fromReason(names []string, index uint32) (arch.Reason, error) {
	if int(index) >= len(names) || names[index] == "" {
		return "", fmt.Errorf("reason index %d of %d names, or an empty name", index, len(names))
	}
	return arch.Reason(names[index]), nil
}

func toEstimates(est []arch.Estimate) *pb.EstimateResponse {
	q := &pb.EstimateResponse{Cycles: make([]float64, len(est)), Bounds: make([]byte, len(est))}
	var reasons names
	for i := range est {
		q.Cycles[i], q.Bounds[i] = float64(est[i].Cycles), byte(est[i].Bound)
		if est[i].Reject != "" {
			q.Rejected = append(q.Rejected, uint32(i))
			q.Reasons = append(q.Reasons, reasons.index(string(est[i].Reject)))
		}
	}
	q.ReasonNames = reasons
	return q
}

// fromEstimates fills dst, whose length is what the answer must have.
func fromEstimates(dst []arch.Estimate, q *pb.EstimateResponse) error {
	if len(q.GetCycles()) != len(dst) || len(q.GetBounds()) != len(dst) || len(q.GetRejected()) != len(q.GetReasons()) {
		return fmt.Errorf("%d totals, %d bounds, %d rejections and %d reasons for %d configurations",
			len(q.GetCycles()), len(q.GetBounds()), len(q.GetRejected()), len(q.GetReasons()), len(dst))
	}
	for i := range dst {
		bound, err := fromBound(q.Bounds[i])
		if err != nil {
			return err
		}
		dst[i] = arch.Estimate{Cycles: unit.Cycles(q.Cycles[i]), Bound: bound}
	}
	for i, index := range q.Rejected {
		if int(index) >= len(dst) {
			return fmt.Errorf("rejection index %d of %d configurations", index, len(dst))
		}
		reason, err := fromReason(q.ReasonNames, q.Reasons[i])
		if err != nil {
			return err
		}
		dst[index].Reject = reason
	}
	for i := range dst {
		e := &dst[i]
		if e.Reject == "" {
			if err := checkTotal(float64(e.Cycles)); err != nil {
				return fmt.Errorf("configuration %d: %w", i, err)
			}
		} else if e.Cycles != 0 {
			return fmt.Errorf("configuration %d is rejected (%s) and has a total of %v cycles", i, e.Reject, float64(e.Cycles))
		}
	}
	return nil
}

func checkTotal(cycles float64) error {
	if !(cycles > 0) || math.IsInf(cycles, 0) {
		return fmt.Errorf("a total of %v cycles", cycles)
	}
	return nil
}

func fromBound(b byte) (arch.Bound, error) {
	if arch.Bound(b) > arch.BoundLatency {
		return 0, fmt.Errorf("unknown bound %d", b)
	}
	return arch.Bound(b), nil
}

func toRanking(r *selector.Result) *pb.Ranking {
	n := len(r.Entries)
	q := &pb.Ranking{
		Index: make([]int64, n), Cycles: make([]float64, n), Bounds: make([]byte, n),
		Feasible: int64(r.Feasible),
	}
	configs := make([]gemm.Config, n)
	dies := false
	for i := range r.Entries {
		e := &r.Entries[i]
		configs[i], q.Index[i], q.Cycles[i], q.Bounds[i] = e.Config, int64(e.Index), float64(e.Estimate.Cycles), byte(e.Estimate.Bound)
		dies = dies || e.Mapping.XCDs != 0 || e.Mapping.Chunk != 0
	}
	q.Configs = toConfigs(configs)
	if dies {
		q.Xcds, q.Chunk = make([]int64, n), make([]int64, n)
		for i := range r.Entries {
			q.Xcds[i], q.Chunk[i] = int64(r.Entries[i].Mapping.XCDs), int64(r.Entries[i].Mapping.Chunk)
		}
	}
	for _, c := range r.Rejected {
		q.Rejected = append(q.Rejected, &pb.ReasonCount{Reason: string(c.Reason), Count: int64(c.Count)})
	}
	if r.Err != nil {
		q.Error = toDiagnostic(r.Err)
	}
	return q
}

// fromRanking converts the answer for one problem of a request for the best `top` entries.
func fromRanking(q *pb.Ranking, top int) (selector.Result, error) {
	r := selector.Result{Feasible: int(q.GetFeasible())}
	configs, err := fromAnswered(q.GetConfigs())
	if err != nil {
		return r, err
	}
	n := len(configs)
	if len(q.GetIndex()) != n || len(q.GetCycles()) != n || len(q.GetBounds()) != n || len(q.GetXcds()) != len(q.GetChunk()) || len(q.GetXcds()) != 0 && len(q.GetXcds()) != n {
		return r, fmt.Errorf("a ranking of %d configurations with %d indices, %d totals, %d bounds, %d and %d die mappings",
			n, len(q.GetIndex()), len(q.GetCycles()), len(q.GetBounds()), len(q.GetXcds()), len(q.GetChunk()))
	}
	if r.Feasible < 0 {
		return r, fmt.Errorf("%d feasible configurations", r.Feasible)
	}
	if q.GetError() != nil {
		r.Err = fromDiagnostic(q.Error)
	} else {
		want := r.Feasible
		if top > 0 {
			want = min(want, top)
		}
		if n != want || n == 0 {
			return r, fmt.Errorf("a ranking of %d configurations, of %d feasible, where %d are expected", n, r.Feasible, want)
		}
	}
	for i := range configs {
		e := selector.Entry{Index: int(q.Index[i]), Config: configs[i]}
		e.Mapping.GroupM = configs[i].GroupM
		if len(q.Xcds) != 0 {
			var c check
			e.Mapping.XCDs, e.Mapping.Chunk = c.count("XCDs", q.Xcds[i]), c.count("chunk", q.Chunk[i])
			if c.err != nil {
				return r, fmt.Errorf("rank %d: %w", i+1, c.err)
			}
		}
		if e.Index < 0 {
			return r, fmt.Errorf("candidate index %d", e.Index)
		}
		if err := configs[i].Validate(); err != nil {
			return r, err
		}
		if err := checkTotal(q.Cycles[i]); err != nil {
			return r, fmt.Errorf("rank %d: %w", i+1, err)
		}
		e.Estimate.Cycles = unit.Cycles(q.Cycles[i])
		if e.Estimate.Bound, err = fromBound(q.Bounds[i]); err != nil {
			return r, err
		}
		r.Entries = append(r.Entries, e)
	}
	for _, c := range q.GetRejected() {
		if c.GetReason() == "" || c.GetCount() < 1 {
			return r, fmt.Errorf("%d candidates rejected for the reason %q", c.GetCount(), c.GetReason())
		}
		r.Rejected = append(r.Rejected, selector.ReasonCount{Reason: arch.Reason(c.Reason), Count: int(c.Count)})
	}
	return r, nil
}

func fromInfo(q *pb.Info) (Info, error) {
	info := Info{Name: q.GetName(), Version: q.GetVersion(), APIVersions: q.GetApiVersions()}
	switch q.GetHealth() {
	case pb.Health_HEALTH_OK:
		// Nothing to add.
	case pb.Health_HEALTH_FAILING:
		info.Failing = q.GetHealthReason()
		if info.Failing == "" {
			info.Failing = "it gives no reason"
		}
	case pb.Health_HEALTH_UNSPECIFIED:
		return info, errors.New("no health")
	default:
		return info, fmt.Errorf("unknown health %d", q.GetHealth())
	}
	if info.Name == "" {
		return info, errors.New("no name")
	}
	return info, nil
}

// Description is what a plugin says about itself before it is started. At least one of the manifests is there.
type Description struct {
	Info      Info
	Protocols []int
	Manifest  *arch.Manifest
	Executor  *exec.Manifest
}

// ParseDescribe reads what a plugin prints when it is run with the argument "describe". Fields that this version does
// not know are ignored, so that a newer plugin can still be named and skipped with its reason.
func ParseDescribe(text []byte) (Description, error) {
	var q pb.Describe
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, &q); err != nil {
		return Description{}, errors.New("not the JSON of a plugin's description")
	}
	info, err := fromInfo(q.GetInfo())
	if err != nil {
		return Description{Info: info}, err
	}
	d := Description{Info: info, Protocols: make([]int, len(q.GetProtocolVersions()))}
	for i, v := range q.GetProtocolVersions() {
		d.Protocols[i] = int(v)
	}
	if q.Manifest != nil {
		m, err := fromManifest(q.Manifest)
		if err != nil {
			return d, err
		}
		d.Manifest = &m
	}
	if q.Executor != nil {
		m, err := fromExecutorManifest(q.Executor)
		if err != nil {
			return d, err
		}
		d.Executor = &m
	}
	if d.Manifest == nil && d.Executor == nil {
		return d, errors.New("no manifest")
	}
	return d, nil
}

func toManifest(m arch.Manifest) *pb.Manifest {
	q := &pb.Manifest{Name: m.Name, Version: m.Version}
	for _, a := range m.Archs {
		entry := &pb.ArchEntry{Id: a.ID, Vendor: a.Vendor, Models: a.Models, Kernels: a.Kernels}
		for _, d := range a.Devices {
			entry.Devices = append(entry.Devices, &pb.DeviceEntry{Id: d.ID, Name: d.Name, Aliases: d.Aliases})
		}
		q.Archs = append(q.Archs, entry)
	}
	for _, o := range m.Options {
		q.Options = append(q.Options, &pb.Option{Key: o.Key, DefaultValue: o.Default, Values: o.Values, Doc: o.Doc})
	}
	return q
}

func fromManifest(q *pb.Manifest) (arch.Manifest, error) {
	m := arch.Manifest{Name: q.GetName(), Version: q.GetVersion()}
	if m.Name == "" {
		return m, errors.New("a manifest without a name")
	}
	for _, a := range q.GetArchs() {
		if a.GetId() == "" || len(a.GetModels()) == 0 || len(a.GetKernels()) == 0 || len(a.GetDevices()) == 0 {
			return m, fmt.Errorf("the manifest's architecture %q lacks an id, models, kernels or devices", a.GetId())
		}
		entry := arch.ArchEntry{ID: a.Id, Vendor: a.Vendor, Models: a.Models, Kernels: a.Kernels}
		for _, d := range a.Devices {
			if d.GetId() == "" {
				return m, fmt.Errorf("a device of %s without an id", a.Id)
			}
			entry.Devices = append(entry.Devices, arch.DeviceEntry{ID: d.Id, Name: d.Name, Aliases: d.Aliases})
		}
		m.Archs = append(m.Archs, entry)
	}
	for _, o := range q.GetOptions() {
		m.Options = append(m.Options, arch.Option{Key: o.GetKey(), Default: o.GetDefaultValue(), Values: o.GetValues(), Doc: o.GetDoc()})
	}
	return m, nil
}

func toOpenRequest(r arch.OpenRequest) *pb.OpenRequest {
	q := &pb.OpenRequest{Arch: valid(r.Arch), Device: valid(r.Device), Model: valid(r.Model), Rung: toRung(r.Rung), Compiled: r.Compiled, Characterization: r.Characterization}
	if len(r.Overrides) > 0 {
		q.Overrides = make(map[string]*pb.Override, len(r.Overrides))
		for name, o := range r.Overrides {
			q.Overrides[valid(name)] = &pb.Override{Value: o.Value, Unit: valid(o.Unit)}
		}
	}
	if len(r.Options) > 0 {
		q.Options = make(map[string]string, len(r.Options))
		for key, value := range r.Options {
			q.Options[valid(key)] = valid(value)
		}
	}
	if r.Live != nil {
		q.Live = &pb.LiveDevice{Name: valid(r.Live.Name), Attributes: toAttributes(r.Live.Attributes)}
	}
	return q
}

func fromOpenRequest(q *pb.OpenRequest) (arch.OpenRequest, error) {
	r := arch.OpenRequest{Arch: q.GetArch(), Device: q.GetDevice(), Model: q.GetModel(), Options: q.GetOptions(),
		Compiled: q.GetCompiled(), Characterization: q.GetCharacterization()}
	if len(q.GetOverrides()) > 0 {
		r.Overrides = make(map[string]hw.OverrideValue, len(q.Overrides))
		for name, o := range q.Overrides {
			r.Overrides[name] = hw.OverrideValue{Value: o.GetValue(), Unit: o.GetUnit()}
		}
	}
	var c check
	r.Rung = c.rung(q.GetRung())
	if q.GetLive() != nil {
		r.Live = &arch.LiveDevice{Name: c.named("live device", q.Live.Name), Attributes: c.attributes(q.Live.Attributes)}
	}
	return r, c.err
}

// toAttributes carries the numbers of a live device.
func toAttributes(attributes map[string]float64) map[string]float64 {
	if len(attributes) == 0 {
		return nil
	}
	out := make(map[string]float64, len(attributes))
	for name, v := range attributes {
		out[valid(name)] = v
	}
	return out
}

var rungs = [...]arch.Rung{
	pb.Rung_RUNG_SPEC: arch.RungSpec, pb.Rung_RUNG_CALIBRATED: arch.RungCalibrated,
	pb.Rung_RUNG_COMPILED: arch.RungCompiled, pb.Rung_RUNG_CHARACTERIZED: arch.RungCharacterized,
}

func toRung(r arch.Rung) pb.Rung {
	for i, rung := range rungs {
		if r == rung {
			return pb.Rung(i)
		}
	}
	return pb.Rung_RUNG_UNSPECIFIED
}

func toDescription(d *arch.Description) *pb.Description {
	q := &pb.Description{
		Arch: d.Arch, Vendor: d.Vendor, Device: d.Device, DeviceName: d.DeviceName, Aliases: d.Aliases,
		Model: d.Model, Models: d.Models, Kernels: d.Kernels, Rung: toRung(d.Rung),
		UnitName: d.UnitName, Units: int64(d.Units), Partitions: int64(d.Partitions),
		ClockHz: float64(d.Clock), ClockRung: toRung(d.ClockRung),
		SharedMemoryBytes: float64(d.SharedMemory), RegisterFile: int64(d.RegisterFile), RegistersPerThread: int64(d.RegistersPerThread),
		Order: &pb.Order{Window: d.Order.Window},
	}
	for _, p := range d.Peak {
		q.Peaks = append(q.Peaks, &pb.PeakRate{ElementType: pb.ElementType(p.DType), FlopsPerSecond: float64(p.Rate)})
	}
	for _, a := range d.Atoms {
		q.Atoms = append(q.Atoms, &pb.Atom{
			ElementType: pb.ElementType(a.DType), M: int64(a.M), N: int64(a.N), K: int64(a.K),
			LatencyCycles: float64(a.Latency), PerUnit: int64(a.PerUnit),
		})
	}
	for _, p := range d.Params {
		q.Params = append(q.Params, &pb.Param{
			Name: p.Name, Value: p.Value, Unit: p.Unit, Source: p.Source, Method: string(p.Method), Date: p.Date, Tier: pb.Tier(p.Tier),
		})
	}
	for _, c := range d.Constants {
		q.Constants = append(q.Constants, &pb.Constant{Name: c.Name, Value: c.Value, Unit: c.Unit, Doc: c.Doc, Source: c.Source})
	}
	for _, t := range d.Terms {
		q.Terms = append(q.Terms, &pb.Term{
			Name: t.Name, Unit: t.Unit, Formula: t.Formula, Doc: t.Doc, Source: t.Source, Kind: pb.TermKind(t.Kind) + pb.TermKind_TERM_KIND_INTERMEDIATE,
			Common: t.Common,
		})
	}
	for _, k := range d.Order.Keys {
		q.Order.Keys = append(q.Order.Keys, pb.Key(k))
	}
	for _, o := range d.Options {
		q.Options = append(q.Options, &pb.OptionValue{Key: o.Key, Value: o.Value})
	}
	for _, u := range d.Uncertainty {
		own := &pb.Uncertainty{Kernel: u.Kernel, Level: u.Level, Spread: u.Sigma, PlanSpread: u.PlanSigma, Source: u.Source}
		for _, r := range u.Ranges {
			own.Ranges = append(own.Ranges, &pb.ErrorRange{Bound: pb.Bound(r.Bound), BelowSeconds: float64(r.Below), Low: r.Low, High: r.High})
		}
		q.Uncertainty = append(q.Uncertainty, own)
	}
	for _, dim := range d.Monotone {
		q.Monotone = append(q.Monotone, pb.Dim(dim))
	}
	return q
}

func fromDescription(q *pb.Description) (*arch.Description, error) {
	if q == nil {
		return nil, errors.New("no description")
	}
	var c check
	d := &arch.Description{
		Arch: c.named("arch", q.Arch), Vendor: q.Vendor, Device: c.named("device", q.Device), DeviceName: q.DeviceName, Aliases: q.Aliases,
		Model: c.named("model", q.Model), Models: q.Models, Kernels: q.Kernels, Rung: c.rung(q.Rung),
		UnitName: q.UnitName, Units: c.count("units", q.Units), Partitions: c.count("partitions", q.Partitions),
		Clock: unit.Hertz(c.finite("clock", q.ClockHz)), ClockRung: c.rung(q.ClockRung),
		SharedMemory: unit.Bytes(c.finite("shared memory", q.SharedMemoryBytes)),
		RegisterFile: c.count("register file", q.RegisterFile), RegistersPerThread: c.count("registers per thread", q.RegistersPerThread),
		Order: arch.Order{Window: c.finite("order window", q.GetOrder().GetWindow())},
	}
	if d.Clock <= 0 {
		c.fail("a clock of %v Hz", q.ClockHz)
	}
	if len(d.Kernels) == 0 {
		c.fail("a description without kernels")
	}
	for _, p := range q.Peaks {
		d.Peak = append(d.Peak, arch.PeakRate{DType: c.elementType(p.GetElementType()), Rate: unit.FlopsPerSecond(c.finite("peak rate", p.GetFlopsPerSecond()))})
	}
	for _, a := range q.Atoms {
		d.Atoms = append(d.Atoms, arch.Atom{
			DType: c.elementType(a.GetElementType()), M: c.count("atom m", a.GetM()), N: c.count("atom n", a.GetN()), K: c.count("atom k", a.GetK()),
			Latency: unit.Cycles(c.finite("atom latency", a.GetLatencyCycles())), PerUnit: c.count("atoms per unit", a.GetPerUnit()),
		})
	}
	for _, p := range q.Params {
		if p.GetTier() < pb.Tier_TIER_DERIVED || p.GetTier() > pb.Tier_TIER_OVERRIDE {
			c.fail("%s has the unknown tier %d", p.GetName(), p.GetTier())
		}
		d.Params = append(d.Params, hw.Param{Name: p.GetName(), Tier: hw.Tier(p.GetTier()), Number: hw.Number{
			Value: c.finite(p.GetName(), p.GetValue()), Unit: p.GetUnit(), Source: p.GetSource(), Method: hw.Method(p.GetMethod()), Date: p.GetDate(),
		}})
	}
	for _, k := range q.Constants {
		d.Constants = append(d.Constants, arch.Constant{
			Name: k.GetName(), Value: c.finite(k.GetName(), k.GetValue()), Unit: k.GetUnit(), Doc: k.GetDoc(), Source: k.GetSource(),
		})
	}
	for _, t := range q.Terms {
		if t.GetKind() < pb.TermKind_TERM_KIND_INTERMEDIATE || t.GetKind() > pb.TermKind_TERM_KIND_TOTAL {
			c.fail("term %s has the unknown kind %d", t.GetName(), t.GetKind())
		}
		d.Terms = append(d.Terms, arch.Term{
			Name: c.named("term", t.GetName()), Unit: t.GetUnit(), Formula: t.GetFormula(), Doc: t.GetDoc(), Source: t.GetSource(),
			Kind:   arch.TermKind(t.GetKind() - pb.TermKind_TERM_KIND_INTERMEDIATE),
			Common: t.GetCommon(),
		})
	}
	for _, k := range q.GetOrder().GetKeys() {
		if k < pb.Key_KEY_INTENSITY || k > pb.Key_KEY_LARGE_TILE {
			c.fail("unknown order key %d", k)
		}
		d.Order.Keys = append(d.Order.Keys, arch.Key(k))
	}
	for _, o := range q.Options {
		d.Options = append(d.Options, arch.OptionValue{Key: o.GetKey(), Value: o.GetValue()})
	}
	for _, u := range q.Uncertainty {
		own := arch.Uncertainty{
			Kernel: c.named("uncertainty", u.GetKernel()), Level: c.positive("level of uncertainty", u.GetLevel()), Sigma: c.amount("spread", u.GetSpread()),
			PlanSigma: c.amount("spread", u.GetPlanSpread()), Source: u.GetSource(),
		}
		for _, r := range u.GetRanges() {
			if r.GetBound() < 0 || r.GetBound() > pb.Bound_BOUND_LATENCY {
				c.fail("an error range has the unknown bound %d", r.GetBound())
			}
			if r.GetLow() > r.GetHigh() {
				c.fail("an error range from %v to %v", r.GetLow(), r.GetHigh())
			}
			own.Ranges = append(own.Ranges, arch.ErrorRange{
				Bound: arch.Bound(r.GetBound()), Below: unit.Seconds(c.amount("time of an error range", r.GetBelowSeconds())),
				Low: c.positive("error range", r.GetLow()), High: c.positive("error range", r.GetHigh()),
			})
		}
		d.Uncertainty = append(d.Uncertainty, own)
	}
	for _, dim := range q.Monotone {
		if dim < pb.Dim_DIM_M || dim > pb.Dim_DIM_NONE {
			c.fail("unknown dimension %d", dim)
		}
		d.Monotone = append(d.Monotone, arch.Dim(dim))
	}
	return d, c.err
}

func toLevels(levels []arch.Level) []*pb.Level {
	out := make([]*pb.Level, len(levels))
	for i, l := range levels {
		out[i] = &pb.Level{
			Name: l.Name, CapacityBytes: float64(l.Capacity), LatencyCycles: float64(l.Latency), Partitions: int64(l.Partitions), Bound: pb.Bound(l.Bound),
			Bandwidth: &pb.Bandwidth{
				PeakBytesPerCycle: float64(l.Bandwidth.Peak), Units: int64(l.Bandwidth.Units), Linear: l.Bandwidth.Linear,
				C0: l.Bandwidth.C0, C1: l.Bandwidth.C1, C2: l.Bandwidth.C2,
			},
		}
	}
	return out
}

func fromLevels(levels []*pb.Level) ([]arch.Level, error) {
	if len(levels) == 0 {
		return nil, errors.New("no memory levels")
	}
	var c check
	out := make([]arch.Level, len(levels))
	for i, l := range levels {
		b := l.GetBandwidth()
		if l.GetBound() < 0 || l.GetBound() > pb.Bound_BOUND_LATENCY {
			c.fail("level %s has the unknown bound %d", l.GetName(), l.GetBound())
		}
		out[i] = arch.Level{
			Name: c.named("level", l.GetName()), Capacity: unit.Bytes(c.finite("capacity", l.GetCapacityBytes())),
			Latency: unit.Cycles(c.finite("latency", l.GetLatencyCycles())), Partitions: c.count("partitions", l.GetPartitions()), Bound: arch.Bound(l.GetBound()),
			Bandwidth: arch.Bandwidth{
				Peak: unit.BytesPerCycle(c.finite("bandwidth", b.GetPeakBytesPerCycle())), Units: c.count("bandwidth units", b.GetUnits()), Linear: b.GetLinear(),
				C0: c.finite("bandwidth c0", b.GetC0()), C1: c.finite("bandwidth c1", b.GetC1()), C2: c.finite("bandwidth c2", b.GetC2()),
			},
		}
	}
	return out, c.err
}

func fromMapping(q *pb.MappingResponse) (arch.Mapping, error) {
	var c check
	return arch.Mapping{GroupM: c.count("the group", q.GetGroupM()), XCDs: c.count("XCDs", q.GetXcds()), Chunk: c.count("the chunk", q.GetChunk())}, c.err
}

// check passes values through and keeps the first complaint about one.
type check struct{ err error }

func (c *check) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *check) finite(name string, v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		c.fail("%s is %v", name, v)
	}
	return v
}

// attributes are the numbers of a live device; none is nil.
func (c *check) attributes(attributes map[string]float64) map[string]float64 {
	for name, v := range attributes {
		c.finite(c.named("attribute", name), v)
	}
	if len(attributes) == 0 {
		return nil
	}
	return attributes
}

// positive admits no zero, amount does; both are finite.
func (c *check) positive(name string, v float64) float64 {
	if c.finite(name, v) <= 0 {
		c.fail("%s is %v", name, v)
	}
	return v
}

func (c *check) amount(name string, v float64) float64 {
	if c.finite(name, v) < 0 {
		c.fail("%s is %v", name, v)
	}
	return v
}

func (c *check) count(name string, v int64) int {
	if v < 0 {
		c.fail("%s is %d", name, v)
	}
	return int(v)
}

func (c *check) named(what, name string) string {
	if name == "" {
		c.fail("%s without a name", what)
	}
	return name
}

func (c *check) elementType(t pb.ElementType) gemm.DType {
	d, err := fromElementType(t)
	if err == nil && d == 0 {
		err = errors.New("an unspecified element type")
	}
	if err != nil {
		c.fail("%v", err)
	}
	return d
}

// rung admits the unspecified one: a model may not say what it stands on.
func (c *check) rung(r pb.Rung) arch.Rung {
	if r < 0 || int(r) >= len(rungs) {
		c.fail("unknown rung %d", r)
		return ""
	}
	return rungs[r]
}

func toDiagnostic(err error) *pb.Diagnostic {
	var d *diag.Error
	if !errors.As(err, &d) {
		d = &diag.Error{What: err.Error()}
	}
	return &pb.Diagnostic{
		Kind: pb.Diagnostic_Kind(d.Kind) + pb.Diagnostic_KIND_INTERNAL, What: valid(d.What), Where: valid(d.Where), Fix: valid(d.Fix),
		Code: valid(string(d.Code)), Subject: valid(d.Subject),
	}
}

// fromDiagnostic takes an unknown kind for an internal one: the text is what matters.
func fromDiagnostic(q *pb.Diagnostic) *diag.Error {
	d := &diag.Error{
		What: q.GetWhat(), Where: q.GetWhere(), Fix: q.GetFix(), Code: diag.Code(q.GetCode()), Subject: q.GetSubject(),
	}
	if k := q.GetKind(); k > pb.Diagnostic_KIND_INTERNAL && k <= pb.Diagnostic_KIND_DEVICE {
		d.Kind = diag.Kind(k - pb.Diagnostic_KIND_INTERNAL)
	}
	return d
}

var statusCodes = [...]codes.Code{
	diag.Internal: codes.Internal, diag.Input: codes.InvalidArgument, diag.Plugin: codes.DataLoss, diag.Device: codes.FailedPrecondition,
}

// toStatus turns an error of the model into a gRPC status that carries it as a Diagnostic.
func toStatus(err error) error {
	if s := status.FromContextError(err); s.Code() != codes.Unknown {
		return s.Err()
	}
	s, detailErr := status.New(statusCodes[diag.KindOf(err)], valid(err.Error())).WithDetails(toDiagnostic(err))
	if detailErr != nil {
		return status.Error(codes.Internal, valid(err.Error()))
	}
	return s.Err()
}

// missingStatus says that the plugin does not hold something.
func missingStatus(r pb.Missing_Resource) error {
	s, err := status.New(codes.NotFound, r.String()).WithDetails(&pb.Missing{Resource: r})
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return s.Err()
}

// Answered reports whether a plugin's server itself gave this error, as opposed to gRPC, the connection or the operating
// system: its status carries a Diagnostic or Missing.
func Answered(err error) bool {
	diagnostic, missing := details(err)
	return diagnostic != nil || missing != pb.Missing_RESOURCE_UNSPECIFIED
}

// LostDevice reports whether an executor said that a call has cost it its device context.
func LostDevice(err error) bool {
	diagnostic, _ := details(err)
	return diagnostic.GetKind() == pb.Diagnostic_KIND_PLUGIN
}

func details(err error) (*pb.Diagnostic, pb.Missing_Resource) {
	s, ok := status.FromError(err)
	if !ok || err == nil {
		return nil, 0
	}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *pb.Diagnostic:
			return d, 0
		case *pb.Missing:
			return nil, d.GetResource()
		}
	}
	return nil, 0
}
