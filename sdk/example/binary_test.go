package example_test

import (
	"math"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"go.uber.org/goleak"

	"github.com/origami-gemm/origami/core/arch"
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

// The example gives the same results from a plugin binary as in process.
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
	for i := range want {
		for j := range want[i].Entries {
			a, b := float64(want[i].Entries[j].Estimate.Cycles), float64(got[i].Entries[j].Estimate.Cycles)
			if math.Float64bits(a) != math.Float64bits(b) {
				t.Errorf("problem %d, rank %d: %v and %v cycles", i, j+1, a, b)
			}
		}
	}
}

// BenchmarkPlugin selects from 1,000 candidates in the process of the plugin.
func BenchmarkPlugin(b *testing.B) {
	a := plugin(b)
	axis := func(n int) []int {
		values := make([]int, n)
		for i := range values {
			values[i] = 8 * (i + 1)
		}
		return values
	}
	space := arch.Space{BlockM: axis(10), BlockN: axis(10), BlockK: axis(10)}
	request := selector.Request{Problems: make([]gemm.Problem, 1), Space: space, Top: 1}
	for i := 0; b.Loop(); i++ {
		request.Problems[0] = gemm.New(64+i%4096, 4096, 4096)
		results, err := selector.Rank(b.Context(), a, request)
		if err != nil || results[0].Feasible != 1000 {
			b.Fatal(results, err)
		}
	}
}
