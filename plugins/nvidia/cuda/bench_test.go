//go:build cuda

package cuda

import (
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/probe"
)

// BenchmarkOfPeak holds the family's fastest configurations of large problems against a kernel that only issues
// matrix instructions on registers, run by run in turns, with a cold L2 and random operands. The ratio is of medians;
// the rate that the register-only kernel reaches is itself a matter of power and clock, so only the ratio travels.
func BenchmarkOfPeak(b *testing.B) {
	x, d := openGPU(b)
	for _, c := range []struct {
		problem gemm.Problem
		configs []gemm.Config
	}{
		{gemm.New(8192, 8192, 8192), fastest}, {gemm.New(4096, 4096, 14336), fastest},
	} {
		for _, config := range c.configs {
			b.Run(c.problem.String()+"/"+config.String(), func(b *testing.B) {
				k, err := x.Compile(b.Context(), 0, c.problem, config)
				if err != nil {
					b.Fatal(err)
				}
				if n, err := k.Check(b.Context()); err != nil || !n.OK() {
					b.Fatal(n, err)
				}
				var gemmTimes, peakTimes []float64
				inTurns := func(_ *operands, run func() error) error {
					peak, flops, err := peakRun(d, c.problem.Flops())
					if err != nil {
						return err
					}
					for b.Loop() {
						for _, side := range []struct {
							run   func() error
							times *[]float64
							flops float64
						}{{run, &gemmTimes, c.problem.Flops()}, {peak, &peakTimes, flops}} {
							s, err := d.timed(side.run, false)
							if err != nil {
								return err
							}
							*side.times = append(*side.times, float64(s.Time)/side.flops)
						}
					}
					return nil
				}
				if err := k.(*runnable).run(b.Context(), "timing", exec.InputNormal, inTurns); err != nil {
					b.Fatal(err)
				}
				slices.Sort(gemmTimes)
				slices.Sort(peakTimes)
				rate, limit := 1e-12/gemmTimes[len(gemmTimes)/2], 1e-12/peakTimes[len(peakTimes)/2]
				b.ReportMetric(rate, "TFLOP/s")
				b.ReportMetric(limit, "TFLOP/s-registers-only")
				b.ReportMetric(100*rate/limit, "%-of-registers-only")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// fastest are the configurations that sweeps on an H200 found fastest for large problems.
var fastest = []gemm.Config{
	{BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 3, GroupM: 8, SplitK: 1, Kernel: mma.Name},
	{BlockM: 256, BlockN: 128, BlockK: 64, NumWarps: 8, NumStages: 3, GroupM: 8, SplitK: 1, Kernel: mma.Name},
	{BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 4, GroupM: 8, SplitK: 1, Kernel: mma.Name},
}

// peakRun returns a run of the register-only kernel of about as many operations, and how many it has.
func peakRun(d *device, flops float64) (func() error, float64, error) {
	k, err := mma.EmitPeak(gemm.FP16, d.target)
	if err != nil {
		return nil, 0, err
	}
	f, err := loadFunction(k.Text, k.Name)
	if err != nil {
		return nil, 0, err
	}
	ctas := int(d.attributes["num_sms"])
	perTurn := float64(ctas * mma.PeakOperations(gemm.FP16))
	turns := int(flops / perTurn)
	counters, err := allocate(8 * probe.Counters)
	if err != nil {
		return nil, 0, err
	}
	values := map[string]uint64{"in": d.pool.address(0), "counters": counters.address(0), "turns": uint64(turns)}
	l := gemmgen.Launch{
		GridX: ctas, GridY: 1, GridZ: 1, Threads: 32 * mma.PeakWarps, Params: gemmgen.Pack(k, values),
	}
	return func() error { return start(d.stream, f.function, l) }, float64(turns) * perTurn, nil
}
