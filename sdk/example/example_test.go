package example_test

import (
	"math"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"go.uber.org/goleak"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/sdk/example"
	"github.com/origami-gemm/origami/sdk/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The numbers are worked out by hand from the formulas in the description.
func TestRoofline(t *testing.T) {
	a, err := example.Provider{}.Open(t.Context(), arch.OpenRequest{Arch: "example"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		p    gemm.Problem
		c    gemm.Config
		want []float64
	}{
		// 32·64 tiles on 16 units; 128·64·32/512; 16·(128+64)·32·2/256; 128 rounds of 128 steps.
		{gemm.New(4096, 4096, 4096), gemm.Config{BlockM: 128, BlockN: 64, BlockK: 32, NumWarps: 1, NumStages: 1, SplitK: 1}, []float64{128, 512, 768, 128 * 128 * 768}},
		// One tile on one unit, whose loads have the memory for themselves; the last K step is whole.
		{gemm.New(1, 1, 65), gemm.Config{BlockM: 128, BlockN: 128, BlockK: 64, NumWarps: 1, NumStages: 1, SplitK: 1}, []float64{1, 2048, 128, 2 * 2048}},
	} {
		row := make([]float64, 4)
		if err := a.Terms(t.Context(), row, test.p, []gemm.Config{test.c}); err != nil || !reflect.DeepEqual(row, test.want) {
			t.Errorf("%s of %s: got %v, %v, want %v", test.c, test.p, row, err, test.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, r := range []arch.OpenRequest{
		{Arch: "other"}, {Device: "other"}, {Model: "other"}, {Options: map[string]string{"a": "b"}},
		{Overrides: map[string]hw.OverrideValue{"units": {Value: 0.5}}},
	} {
		if _, err := (example.Provider{}).Open(t.Context(), r); diag.KindOf(err) != diag.Input || err == nil {
			t.Errorf("%+v: got %v", r, err)
		}
	}
	a, err := example.Provider{}.Open(t.Context(), arch.OpenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	bf16 := gemm.New(1, 1, 1)
	bf16.DType = gemm.BF16
	for _, p := range []gemm.Problem{{}, bf16} {
		if _, err := a.Candidates(t.Context(), p, arch.Space{}); diag.KindOf(err) != diag.Input || err == nil {
			t.Errorf("%s: got %v", p, err)
		}
	}
	for _, s := range []arch.Space{{Kernel: "other"}, {BlockM: []int{0}}, {BlockK: []int{-64}}, {BlockN: []int{1 << 40}}} {
		if _, err := a.Candidates(t.Context(), gemm.New(1, 1, 1), s); diag.KindOf(err) != diag.Input || err == nil {
			t.Errorf("%+v: got %v", s, err)
		}
	}
}

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
	local, err := example.Provider{}.Open(t.Context(), arch.OpenRequest{Arch: "example"})
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
