package host_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

func builtin(mode string) host.Builtin {
	return host.Builtin{Manifest: fake.Provider{Name: mode}.Manifest(), Args: []string{asPlugin, mode}}
}

// newHost waits for slow plugins: the machine may be busy.
func newHost(t testing.TB, o host.Options) *host.Host {
	if o.DescribeTimeout == 0 {
		o.DescribeTimeout = time.Minute
	}
	h := host.New(o)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func pluginsOf(t testing.TB, h *host.Host) []host.PluginInfo {
	t.Helper()
	all := must.Get(h.Plugins(t.Context()))(t)
	return all
}

func open(t testing.TB, h *host.Host, r arch.OpenRequest) arch.Architecture {
	t.Helper()
	a := must.Get(h.Open(t.Context(), r))(t)
	return a
}

// A plugin and the same model in process give the same bits, for every method.
func TestPluginIsBitEqualToInProcess(t *testing.T) {
	h := newHost(t, host.Options{Builtins: []host.Builtin{builtin("fake")}})
	for _, r := range []arch.OpenRequest{
		{Arch: "fake"},
		{Arch: "fake", Device: "large"},
		{Arch: "fake", Device: "small", Options: map[string]string{"salt": "2"},
			Overrides: map[string]hw.OverrideValue{"noise": {Value: 0.1, Unit: "1"}, "bandwidth": {Value: 7}}},
		{Arch: "fake", DeviceFile: []byte("arch: fake\ndevice: mine\nname: Mine\nvendor: none\n")},
	} {
		local := must.Get(fake.Provider{}.Open(t.Context(), r))(t)
		compare(t, local, open(t, h, r))
	}
	o := must.Get(h.Optional(t.Context(), "fake"))(t)
	want, _ := fake.Provider{}.Ladder(t.Context())
	rungs, err := o.Ladder(t.Context())
	sameError(t, "Ladder", nil, err)
	equal(t, "Ladder", want, rungs)
	gpu := exec.Device{Name: "GPU", Arch: "fake", Attributes: map[string]float64{"units": 1}}
	local, _ := fake.Provider{}.Calibration(t.Context(), gpu)
	plan, err := o.Calibration(t.Context(), gpu)
	sameError(t, "Calibration", nil, err)
	equal(t, "Calibration", local.Probes, plan.Probes)
	_, err = h.Optional(t.Context(), "none")
	must.That(t, diag.KindOf(err) == diag.Input, "the interfaces of an unknown plugin: %v", err)
}

func compare(t *testing.T, local, remote arch.Architecture) {
	t.Helper()
	ctx := t.Context()
	equal(t, "Describe", local.Describe(), remote.Describe())
	equal(t, "Levels", local.Hierarchy().Levels(), remote.Hierarchy().Levels())
	rng := rand.New(rand.NewPCG(1, 2))
	spaces := []arch.Space{{}, {BlockM: []int{16, 64}}, {BlockM: []int{64}, Kernel: "two"}, {BlockM: []int{17}}}
	for range 20 {
		p := gemm.New(1+rng.IntN(9000), 1+rng.IntN(9000), 1+rng.IntN(9000))
		p.Batch = 1 + rng.IntN(3)
		p.DType = []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP32}[rng.IntN(3)]
		p.SetTrans(rng.IntN(2) == 0, rng.IntN(2) == 0)
		space := spaces[rng.IntN(len(spaces))]
		list, err := local.Candidates(ctx, p, space)
		remoteList, remoteErr := remote.Candidates(ctx, p, space)
		sameError(t, "Candidates", err, remoteErr)
		if err != nil {
			list, _ = local.Candidates(ctx, gemm.New(1, 1, 1), space) // to see the other methods fail too
		} else {
			equal(t, "Candidates", list, remoteList)
		}

		est, remoteEst := make([]arch.Estimate, len(list.Configs)), make([]arch.Estimate, len(list.Configs))
		err = local.Estimate(ctx, est, p, list.Configs)
		sameError(t, "Estimate", err, remote.Estimate(ctx, remoteEst, p, list.Configs))
		equal(t, "Estimate", est, remoteEst)

		values, sample := []map[string]float64{nil, {"e": 2}}, []fit.Kernels{{Problem: p, Configs: list.Configs}}
		times, err := local.(fit.Tunable).EstimateWith(ctx, values, sample)
		remoteTimes, remoteErr := remote.(fit.Tunable).EstimateWith(ctx, values, sample)
		sameError(t, "EstimateWith", err, remoteErr)
		equal(t, "EstimateWith", times, remoteTimes)

		n := len(list.Configs) * len(local.Describe().Terms)
		terms, remoteTerms := make([]float64, n), make([]float64, n)
		err = local.Terms(ctx, terms, p, list.Configs)
		sameError(t, "Terms", err, remote.Terms(ctx, remoteTerms, p, list.Configs))
		equal(t, "Terms", floatBits(terms), floatBits(remoteTerms))

		if len(list.Configs) > 0 {
			c := list.Configs[rng.IntN(len(list.Configs))]
			m, err := local.Mapping(ctx, p, c)
			remoteM, remoteErr := remote.Mapping(ctx, p, c)
			sameError(t, "Mapping", err, remoteErr)
			if err == nil {
				equal(t, "Mapping", m, remoteM)
			}
		}

		bad := p
		bad.K = 0
		request := selector.Request{Problems: []gemm.Problem{p, bad, gemm.New(64, 64, 64)}, Space: space,
			Top: rng.IntN(12)}
		results, err := selector.Rank(ctx, inProcess{local}, request)
		remoteResults, remoteErr := selector.Rank(ctx, remote, request)
		sameError(t, "Rank", err, remoteErr)
		for i := range results {
			sameError(t, "Rank", results[i].Err, remoteResults[i].Err)
			results[i].Err, remoteResults[i].Err = nil, nil
		}
		equal(t, "Rank", results, remoteResults)
		// The selectors on both sides of the boundary agree.
		_, isRanker := remote.(selector.Ranker)
		must.That(t, isRanker, "a remote architecture does not rank in the plugin")
		near, err := selector.Rank(ctx, inProcess{remote}, request)
		sameError(t, "Rank here", err, nil)
		for i := range near {
			near[i].Err = nil
		}
		equal(t, "Rank here", near, remoteResults)
	}
}

// inProcess hides the Ranker of an architecture.
type inProcess struct{ arch.Architecture }

func equal[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	must.That(t, reflect.DeepEqual(normal(want), normal(got)),
		"%s: in process %+v, through the plugin %+v", what, want, got)
}

// normal makes empty slices nil. They mean the same.
func normal(v any) any {
	if r, ok := v.([]selector.Result); ok {
		for i := range r {
			if len(r[i].Entries) == 0 {
				r[i].Entries = nil
			}
			if len(r[i].Rejected) == 0 {
				r[i].Rejected = nil
			}
		}
	}
	return v
}

func sameError(t *testing.T, what string, want, got error) {
	t.Helper()
	must.That(t, (want == nil) == (got == nil) && (want == nil || want.Error() == got.Error()),
		"%s: in process error %v, through the plugin %v", what, want, got)
}

func floatBits(v []float64) []uint64 {
	bits := make([]uint64, len(v))
	for i := range v {
		bits[i] = math.Float64bits(v[i])
	}
	return bits
}
