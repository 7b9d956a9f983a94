package host_test

import (
	"fmt"
	"math"
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

// A plugin and the same model in process give the same answers, for every method.
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
		sameAnswers(t, open(t, h, r), local)
	}
	o := must.Get(h.Optional(t.Context(), "fake"))(t)
	must.Alike(t, must.Get(o.Ladder(t.Context()))(t), must.Get(fake.Provider{}.Ladder(t.Context()))(t))
	gpu := exec.Device{Name: "GPU", Arch: "fake", Attributes: map[string]float64{"units": 1}}
	local := must.Get(fake.Provider{}.Calibration(t.Context(), gpu))(t)
	must.Alike(t, must.Get(o.Calibration(t.Context(), gpu))(t).Probes, local.Probes)
	_, err := h.Optional(t.Context(), "none")
	must.That(t, diag.KindOf(err) == diag.Input, "the interfaces of an unknown plugin: %v", err)
}

// sameAnswers checks that a plugin answers as the model in process does.
func sameAnswers(t *testing.T, remote, local arch.Architecture) {
	t.Helper()
	want := answers(t, local)
	for i, got := range answers(t, remote) {
		must.That(t, reflect.DeepEqual(got, want[i]), "answer %d is %.500v, in process %.500v", i, got, want[i])
	}
}

// answers are those of every method about some problems and spaces, with what is refused.
func answers(t *testing.T, a arch.Architecture) (all []any) {
	t.Helper()
	add := func(answer any, err error) {
		if err != nil {
			answer = err.Error()
		}
		all = append(all, answer)
	}
	all = append(all, a.Describe(), a.Hierarchy().Levels())
	odd := gemm.New(1, 77, 300)
	odd.Batch, odd.DType = 3, gemm.FP32
	odd.SetTrans(true, true)
	for _, p := range []gemm.Problem{problem, odd, gemm.New(0, 1, 1)} {
		for _, space := range []arch.Space{{}, {BlockM: []int{64}, Kernel: "two"}, {BlockM: []int{17}}} {
			add(a.Candidates(t.Context(), p, space))
			results, err := selector.Rank(t.Context(), a, selector.Request{Problems: []gemm.Problem{p}, Space: space, Top: 5})
			add(fmt.Sprintf("%+v", results), err) // an empty list is none
		}
		est, terms := make([]arch.Estimate, len(configs)), make([]float64, len(configs)*len(a.Describe().Terms))
		add(est, a.Estimate(t.Context(), est, p, configs))
		err := a.Terms(t.Context(), terms, p, configs)
		add(floatBits(terms), err)
		add(a.Mapping(t.Context(), p, configs[0]))
		add(a.(fit.Tunable).EstimateWith(t.Context(), []map[string]float64{nil, {"e": 2}},
			[]fit.Kernels{{Problem: p, Configs: configs}}))
	}
	return all
}

func floatBits(v []float64) []uint64 {
	bits := make([]uint64, len(v))
	for i := range v {
		bits[i] = math.Float64bits(v[i])
	}
	return bits
}
