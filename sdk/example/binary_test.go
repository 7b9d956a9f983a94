package example_test

import (
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"go.uber.org/goleak"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/sdk/example"
	"github.com/origami-gemm/origami/sdk/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plugin builds the example as a plugin binary and opens it in its process.
func plugin(t testing.TB) arch.Architecture {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	dir := t.TempDir()
	lock, path := filepath.Join(dir, "lock"), filepath.Join(dir, "origami-plugin-example")
	build := exec.Command("go", "build", "-o", path, "./cmd/origami-plugin-example")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := host.Trust(t.Context(), lock, path); err != nil {
		t.Fatal(err)
	}
	h := host.New(host.Options{LockFile: lock})
	t.Cleanup(func() { _ = h.Close() })
	a, err := h.Open(t.Context(), arch.OpenRequest{Arch: "example"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// fitting is the first candidates on some problems, and sets of values of both constants as a fit tries them.
func fitting(tb testing.TB, a arch.Architecture, problems, sets int) ([]map[string]float64, []fit.Kernels) {
	tb.Helper()
	values := []map[string]float64{nil}
	for i := range sets - 1 {
		values = append(values, map[string]float64{"compute_efficiency": 0.3 + float64(i)/97,
			"memory_efficiency": 1.2 - float64(i)/131})
	}
	var sample []fit.Kernels
	for i := range problems {
		p := gemm.New(64*(1+i), 1024, 4096)
		list, err := a.Candidates(tb.Context(), p, arch.Space{})
		if err != nil {
			tb.Fatal(err)
		}
		sample = append(sample, fit.Kernels{Problem: p, Configs: list.Configs})
	}
	return values, sample
}

// The example gives the same results from a plugin binary as in process, and so do its fits.
func TestAsPluginBinary(t *testing.T) {
	remote := plugin(t)
	provider, err := example.Provider()
	if err != nil {
		t.Fatal(err)
	}
	local, err := provider.Open(t.Context(), arch.OpenRequest{Arch: "example"})
	if err != nil {
		t.Fatal(err)
	}
	request := selector.Request{Problems: []gemm.Problem{
		gemm.New(4096, 4096, 4096), gemm.New(1, 5, 77), gemm.New(16, 8192, 8192),
	}}
	want, err1 := selector.Rank(t.Context(), local, request)
	got, err2 := selector.Rank(t.Context(), remote, request)
	if err1 != nil || err2 != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v, %v", got, err2, want, err1)
	}
	values, sample := fitting(t, local, 10, 20)
	times, err1 := local.(fit.Tunable).EstimateWith(t.Context(), values, sample)
	others, err2 := remote.(fit.Tunable).EstimateWith(t.Context(), values, sample)
	if err1 != nil || err2 != nil || len(times) != len(values) || !reflect.DeepEqual(others, times) {
		t.Errorf("got %v, %v\nwant %v, %v", others, err2, times, err1)
	}
}
