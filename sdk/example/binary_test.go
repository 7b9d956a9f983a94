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

// The example as a real plugin binary, found, trusted and asked, gives what it gives in process.
func TestAsPluginBinary(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	dir := t.TempDir()
	lock, path := filepath.Join(dir, "lock"), filepath.Join(dir, "origami-plugin-example")
	if out, err := exec.Command("go", "build", "-o", path, "./cmd/origami-plugin-example").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := host.Trust(lock, path); err != nil {
		t.Fatal(err)
	}
	h := host.New(host.Options{SearchPath: []string{dir}, LockFile: lock})
	defer func() { _ = h.Close() }()
	remote, err := h.Open(t.Context(), arch.OpenRequest{Arch: "example"})
	if err != nil {
		t.Fatal(err)
	}
	provider, err := example.Provider()
	if err != nil {
		t.Fatal(err)
	}
	local, err := provider.Open(t.Context(), arch.OpenRequest{Arch: "example"})
	if err != nil {
		t.Fatal(err)
	}
	request := selector.Request{Problems: []gemm.Problem{gemm.New(4096, 4096, 4096), gemm.New(1, 5, 77), gemm.New(16, 8192, 8192)}}
	want, err1 := selector.Rank(t.Context(), local, request)
	got, err2 := selector.Rank(t.Context(), remote, request)
	if err1 != nil || err2 != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v, %v", got, err2, want, err1)
	}
	for i := range want {
		for j := range want[i].Entries {
			if a, b := want[i].Entries[j].Estimate.Cycles, got[i].Entries[j].Estimate.Cycles; math.Float64bits(float64(a)) != math.Float64bits(float64(b)) {
				t.Errorf("problem %d, rank %d: %v and %v cycles", i, j+1, a, b)
			}
		}
	}
}
