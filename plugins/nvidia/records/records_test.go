package records_test

import (
	"context"
	"io/fs"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/exec/replay"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/record"
	"github.com/origami-gemm/origami/plugins/nvidia/records"
)

// The shipped dataset reads whole, and a replay of it says what the files say.
func TestH200Triton(t *testing.T) {
	files, err := fs.Sub(records.FS, "h200-triton")
	if err != nil {
		t.Fatal(err)
	}
	d, err := record.Read("h200-triton", files)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Problems()) != 41 {
		t.Errorf("%d problems", len(d.Problems()))
	}
	ctx := context.Background()
	x := replay.New(d)
	devices, err := x.Devices(ctx)
	if err != nil || len(devices) != 1 || devices[0].Arch != "sm90" || devices[0].Name != "h200" {
		t.Errorf("devices %+v, %v", devices, err)
	}
	p, c := gemm.New(64, 64, 64), gemm.Config{BlockM: 256, BlockN: 256, BlockK: 16, NumStages: 2, NumWarps: 8, GroupM: 8, SplitK: 1, Kernel: "triton"}
	k, err := x.Compile(ctx, 0, p, c)
	if err != nil {
		t.Fatal(err)
	}
	var samples []exec.Sample
	keep := func(s exec.Sample) bool {
		samples = append(samples, s)
		return len(samples) < 2
	}
	if err := k.Measure(ctx, exec.MeasureOptions{}, keep); err != nil || len(samples) != 2 || samples[1] != samples[0] || samples[0].Time != 0.026768e-3 {
		t.Errorf("samples %v, %v", samples, err)
	}
	if err := k.Measure(ctx, exec.MeasureOptions{WarmL2: true}, keep); diag.KindOf(err) != diag.Input {
		t.Errorf("warm times out of cold records: %v", err)
	}
	if r := k.Resources(); r.Registers == 0 || r.SharedMemory == 0 {
		t.Errorf("resources %+v", r)
	}
	// 256 × 256 tiles of depth 128 in two stages do not fit the shared memory: no record.
	c.BlockK = 128
	if _, err := x.Compile(ctx, 0, p, c); diag.KindOf(err) != diag.Input {
		t.Errorf("a configuration without a record: %v", err)
	}
	if _, err := x.Compile(ctx, 1, p, c); diag.KindOf(err) != diag.Input {
		t.Errorf("a second device: %v", err)
	}
	if _, err := x.Compile(ctx, 0, p, gemm.Config{Kernel: "cublas"}); err != nil {
		t.Errorf("the library: %v", err)
	}
}

// The sweep of the mma family reads whole: every candidate of every size was built, right, and timed.
func TestH200MMA(t *testing.T) {
	files, err := fs.Sub(records.FS, "h200-mma")
	if err != nil {
		t.Fatal(err)
	}
	d, err := record.Read("h200-mma", files)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Problems()) != 23 || d.Len() < 23*(821+2) {
		t.Errorf("%d problems, %d measurements", len(d.Problems()), d.Len())
	}
	c := gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, NumStages: 3, NumWarps: 8, GroupM: 16, SplitK: 1, Kernel: "mma"}
	m, ok := d.Find(gemm.New(8192, 8192, 8192), c)
	if !ok || m.Status != record.OK || m.Numerics == nil || !m.Numerics.OK() || m.Numerics.Checked != 8192*8192 || len(m.Samples) < 2 || m.Environment == nil || m.Environment.Driver == "" {
		t.Errorf("%s at 8192³: %+v", c, m)
	}
}
