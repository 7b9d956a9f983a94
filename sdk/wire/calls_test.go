package wire

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/example"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// A list of configurations travels once; after that its hash does, until the server has forgotten it.
func TestListsTravelOnce(t *testing.T) {
	p := connect(t)
	a := p.open(t)
	c := must.Get(a.Candidates(t.Context(), problem, arch.Space{}))(t)
	estimate := func(cfgs []gemm.Config) (carried []bool) {
		t.Helper()
		p.mu.Lock()
		p.requests = nil
		p.mu.Unlock()
		must.Do(t, a.Estimate(t.Context(), make([]arch.Estimate, len(cfgs)), problem, cfgs))
		for _, r := range p.requests {
			carried = append(carried, r.(*pb.EstimateRequest).Configs.Configs != nil)
		}
		return carried
	}
	want := func(got []bool, want ...bool) {
		t.Helper()
		must.That(t, reflect.DeepEqual(got, want), "lists carried: %v, want %v", got, want)
	}
	want(estimate(c.Configs), true)
	want(estimate(c.Configs), false)
	want(estimate(append([]gemm.Config{}, c.Configs...)), false) // equal content is the same list
	changed := append([]gemm.Config{}, c.Configs...)
	changed[7].NumStages++
	want(estimate(changed), true)
	want(estimate(c.Configs), false)
	err := a.Terms(t.Context(), make([]float64, len(changed)*30), problem, changed)
	must.That(t, err == nil, "%v", err)
	// Another client fills the server's cache.
	b := p.open(t)
	for i := range configsKept {
		must.Do(t, b.Estimate(t.Context(), make([]arch.Estimate, 1), problem,
			[]gemm.Config{{BlockM: i, Kernel: "one"}}))
	}
	want(estimate(c.Configs), false, true)
	want(estimate(c.Configs), false)
}

// A closed or evicted architecture is opened again by the next call.
func TestForgottenHandlesAreReopened(t *testing.T) {
	p := connect(t)
	a := p.open(t)
	m := must.Get(a.Mapping(t.Context(), problem, gemm.Config{Kernel: "one"}))(t)
	for range 2 {
		must.Do(t, a.Close(t.Context()))
	}
	again, err := a.Mapping(t.Context(), problem, gemm.Config{Kernel: "one"})
	must.That(t, err == nil && again == m, "got %+v, %v, want %+v", again, err, m)
	b := p.open(t)
	must.That(t, reflect.DeepEqual(a.opened.Handle, b.opened.Handle), "equal requests have different handles")
}

// A plugin that never holds what it opens is not asked forever.
func TestForgetfulPlugin(t *testing.T) {
	conn := forgetful{connect(t).conn}
	a, err := NewClient("forgetful", conn).Open(t.Context(), arch.OpenRequest{Arch: "fake"})
	must.Do(t, err)
	_, err = a.Mapping(t.Context(), problem, gemm.Config{Kernel: "one"})
	must.That(t, diag.KindOf(err) == diag.Plugin && strings.Contains(err.Error(), "it forgets the architecture"),
		"got %v", err)
}

type forgetful struct{ grpc.ClientConnInterface }

func (f forgetful) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if strings.HasSuffix(method, "/Mapping") {
		return missingStatus(pb.Missing_RESOURCE_HANDLE)
	}
	return f.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

// The client passes a caller's end of patience through and makes one line of everything else.
func TestFaults(t *testing.T) {
	p := connect(t)
	a := p.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Mapping(ctx, problem, gemm.Config{}); err != context.Canceled { //nolint:errorlint // not even wrapped
		t.Errorf("got %v", err)
	}
	err := p.client.fault(t.Context(), "Rank", status.Error(codes.ResourceExhausted, "too\nlarge"))
	must.That(t, diag.KindOf(err) == diag.Plugin &&
		err.Error() == "plugin forger: Rank failed: too large (ResourceExhausted); report it to the plugin's author",
		"got %v", err)
	for _, err := range []error{
		a.Estimate(t.Context(), make([]arch.Estimate, 2), problem, nil), a.Terms(t.Context(), make([]float64, 2), problem,
			nil),
	} {
		must.That(t, err != nil && diag.KindOf(err) == diag.Internal, "wrong length: got %v", err)
	}
}

// A plugin without Rank is ranked here, bit for bit as one that has it, and is not asked again whether it has.
func TestRanksHere(t *testing.T) {
	request := selector.Request{Problems: []gemm.Problem{gemm.New(4096, 4096, 4096), gemm.New(1, 77, 300),
		gemm.New(0, 1, 1)}, Top: 7, Map: 2}
	with, without := connect(t).open(t), connect(t)
	want, err := selector.Rank(t.Context(), with, request)
	must.Need(t, err == nil && !with.RanksHere() && want[2].Err != nil, "%+v, %v", want, err)
	asked := 0
	lacking := noRank{without.conn, &asked}
	a := must.Get(NewClient("lacking", lacking).Open(t.Context(), arch.OpenRequest{Arch: "fake"}))(t)
	for range 2 {
		got, err := selector.Rank(t.Context(), a, request)
		must.Need(t, err == nil && a.RanksHere() && asked == 1, "asked %d times: %v", asked, err)
		for i := range want {
			if !reflect.DeepEqual(got[i].Entries, want[i].Entries) || got[i].Feasible != want[i].Feasible ||
				(got[i].Err == nil) != (want[i].Err == nil) {
				t.Errorf("%s: got %+v, want %+v", request.Problems[i], got[i], want[i])
			}
		}
	}
}

// noRank is a connection to a plugin that does not implement Rank.
type noRank struct {
	grpc.ClientConnInterface
	asked *int
}

func (c noRank) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if strings.HasSuffix(method, "/Rank") {
		*c.asked++
		return status.Error(codes.Unimplemented, "unknown method Rank")
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

// Requests that no correct client sends are answered with an error of kind input, not with a crash.
func TestMalformedRequests(t *testing.T) {
	s := &archServer{provider: fake.Provider{}}
	opened := must.Get(s.Open(t.Context(), OpenMessage(arch.OpenRequest{Arch: "fake"})))(t)
	bad, good := &pb.Problem{ElementType: 99}, toProblem(problem)
	estimate := func(set *pb.ConfigSet) proto.Message { return &pb.EstimateRequest{Problem: good, Configs: set} }
	for name, q := range map[string]proto.Message{
		"a problem":    &pb.CandidatesRequest{Problem: bad},
		"no problem":   &pb.CandidatesRequest{},
		"a space":      &pb.CandidatesRequest{Problem: good, SpaceJson: []byte("[]")},
		"columns":      estimate(&pb.ConfigSet{Configs: &pb.Configs{BlockM: []int64{1, 2}}}),
		"a hash":       estimate(&pb.ConfigSet{Sha256: []byte("x"), Configs: ConfigMessage(config)}),
		"a major":      &pb.TermsRequest{Problem: &pb.Problem{AMajor: -1}},
		"no kernel":    &pb.MappingRequest{Problem: good},
		"one of a few": &pb.RankRequest{Problems: []*pb.Problem{bad}, SpaceJson: []byte("{}")},
	} {
		_, err := serve(t.Context(), s, opened.Handle, q)
		if d, _ := details(err); d.GetKind() != pb.Diagnostic_KIND_INPUT || status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, handle := range [][]byte{nil, []byte("unknown")} {
		_, err := s.Rank(t.Context(), &pb.RankRequest{Handle: handle})
		if _, missing := details(err); missing != pb.Missing_RESOURCE_HANDLE || status.Code(err) != codes.NotFound {
			t.Errorf("handle %q: got %v", handle, err)
		}
	}
}

// A host may open more architectures than a plugin holds models of, and then ask them all.
func TestMoreArchitecturesThanModels(t *testing.T) {
	provider := must.Get(example.Provider())(t)
	s := &archServer{provider: provider}
	handles := make([][]byte, 4*openKept)
	for i := range handles {
		r := must.Get(s.Open(t.Context(), OpenMessage(arch.OpenRequest{Arch: "example",
			Overrides: map[string]hw.OverrideValue{"units": {Value: float64(i + 1)}}})))(t)
		handles[i] = r.Handle
	}
	for i, handle := range handles {
		problems := []*pb.Problem{toProblem(gemm.New(64, 64, 64))}
		r, err := s.Rank(t.Context(), &pb.RankRequest{Handle: handle, Problems: problems, SpaceJson: SpaceJSON(arch.Space{})})
		must.Need(t, err == nil && r.Rankings[0].GetError() == nil, "architecture %d: %v %v", i, r, err)
	}
	n := len(s.open.entries)
	must.That(t, n <= openKept, "it holds %d models", n)
}
