package replay_test

import (
	"context"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/exec/replay"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/record"
	"github.com/origami-gemm/origami/core/unit"
)

// A replay says what was recorded of each configuration, the good and the bad.
func TestReplay(t *testing.T) {
	ctx, p := context.Background(), gemm.New(64, 64, 64)
	data := record.New("here", record.Conditions{Arch: "sm90", Device: "h200", DriverName: "NVIDIA H200", Kernel: "mma", WarmL2: true})
	config := func(m int) gemm.Config {
		return gemm.Config{BlockM: m, BlockN: 16, BlockK: 16, GroupM: 1, NumWarps: 4, NumStages: 2, SplitK: 1, Kernel: "mma"}
	}
	library := record.Measurement{Problem: p, Config: gemm.Config{Kernel: "blas"}, Phase: record.Sweep, Status: record.OK, Median: 5}
	good := record.Measurement{Problem: p, Config: config(16), Phase: record.Sweep, Status: record.OK, Resources: exec.Resources{Registers: 9}}
	good.SetSamples([]exec.Sample{{Time: 1}, {Time: 3}, {Time: 2}})
	wrong := record.Measurement{Problem: p, Config: config(32), Phase: record.Sweep, Status: record.Wrong, Numerics: &exec.Numerics{MaxError: 1, Wrong: 3}}
	refused := record.Measurement{Problem: p, Config: config(64), Phase: record.Sweep, Status: record.NotBuilt, Detail: "too many registers"}
	for _, m := range []record.Measurement{library, good, wrong, refused} {
		if err := data.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	x := replay.New(data)
	if d, err := x.Devices(ctx); err != nil || len(d) != 1 || d[0].Name != "NVIDIA H200" || d[0].Arch != "sm90" || strings.Join(d[0].Libraries, " ") != "blas" {
		t.Errorf("%+v, %v", d, err)
	}
	compile := func(c gemm.Config) exec.Kernel {
		t.Helper()
		k, err := x.Compile(ctx, 0, p, c)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	sample := func(k exec.Kernel, n int) (times []unit.Seconds) {
		t.Helper()
		if err := k.Measure(ctx, exec.MeasureOptions{WarmL2: true}, func(s exec.Sample) bool {
			times = append(times, s.Time)
			return len(times) < n
		}); err != nil {
			t.Fatal(err)
		}
		return times
	}
	k := compile(config(16))
	if times := sample(k, 4); len(times) != 4 || times[1] != 3 || times[3] != 1 || k.Resources().Registers != 9 {
		t.Errorf("%v, %+v", times, k.Resources())
	}
	if times := sample(compile(library.Config), 2); len(times) != 2 || times[1] != 5 {
		t.Errorf("the library: %v", times)
	}
	if err := k.Measure(ctx, exec.MeasureOptions{}, func(exec.Sample) bool { return false }); diag.KindOf(err) != diag.Input {
		t.Errorf("cold times out of warm records: %v", err)
	}
	if n, err := compile(config(32)).Check(ctx); err != nil || n.OK() {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := x.Compile(ctx, 0, p, config(64)); diag.KindOf(err) != diag.Input || !strings.Contains(err.Error(), "not_built: too many registers") {
		t.Errorf("%v", err)
	}
	if _, err := x.Compile(ctx, 0, p, config(128)); diag.KindOf(err) != diag.Input {
		t.Errorf("%v", err)
	}
}
