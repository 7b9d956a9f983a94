//go:build cuda

package cuda

import (
	"io/fs"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/probe"
)

// BenchmarkCompile generates and compiles the kernels of the family for one problem, each once, on as many goroutines
// as -cpu says. The median is that of one kernel; the driver's cache of compiled kernels must be off
// (CUDA_CACHE_DISABLE=1).
func BenchmarkCompile(b *testing.B) {
	_, d := openGPU(b)
	p := gemm.New(4096, 4096, 4096)
	family := mma.Family{}
	var programs []gemmgen.Program
	all, err := arch.Space{}.Enumerate(family.Space())
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range all {
		if program, reason, _ := family.Program(gemmgen.NewCall(p), p.Output(), c, d.limits()); reason == "" {
			programs = append(programs, program)
		}
	}
	var mu sync.Mutex
	var emit, load []float64
	next := 0
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			mu.Lock()
			program := programs[next*7919%len(programs)]
			next++
			mu.Unlock()
			begin := time.Now()
			k, err := program.Emit(d.target)
			if err != nil {
				b.Error(err)
				return
			}
			emitted := time.Now()
			if err := d.do(func() error { _, _, err := loadFunction(k.Text, k.Name); return err }); err != nil {
				b.Error(err)
				return
			}
			mu.Lock()
			emit, load = append(emit, emitted.Sub(begin).Seconds()), append(load, time.Since(emitted).Seconds())
			mu.Unlock()
		}
	})
	slices.Sort(emit)
	slices.Sort(load)
	b.ReportMetric(1e6*emit[len(emit)/2], "µs-emit/median")
	b.ReportMetric(1e3*load[len(load)/2], "ms-JIT/median")
	b.ReportMetric(1e3*load[len(load)*9/10], "ms-JIT/p90")
}

// BenchmarkMeasure is one timed run of a small problem with a cold L2: what a sample costs.
func BenchmarkMeasure(b *testing.B) {
	x, _ := openGPU(b)
	k, err := x.Compile(b.Context(), 0, gemm.New(512, 512, 512), config)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	b.ResetTimer()
	if err := k.Measure(b.Context(), exec.MeasureOptions{},
		func(exec.Sample) bool { n++; return n < b.N }); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCheck is one check of a result, when the reference is there.
func BenchmarkCheck(b *testing.B) {
	x, _ := openGPU(b)
	for _, p := range []gemm.Problem{gemm.New(512, 512, 512), gemm.New(8192, 8192, 8192)} {
		b.Run(p.String(), func(b *testing.B) {
			k, err := x.Compile(b.Context(), 0, p, config)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if n, err := k.Check(b.Context()); err != nil || !n.OK() {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// BenchmarkEnvironment is one stamp.
func BenchmarkEnvironment(b *testing.B) {
	x, _ := openGPU(b)
	for b.Loop() {
		if _, err := x.Environment(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
	}
}

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
	_, f, err := loadFunction(k.Text, k.Name)
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
	return func() error { return start(d.stream, f, l) }, float64(turns) * perTurn, nil
}

// BenchmarkRecordedBest times the fastest configuration of each size of the shipped sweep again: the median of 21
// runs with a cold L2.
func BenchmarkRecordedBest(b *testing.B) {
	x, _ := openGPU(b)
	files, err := fs.Sub(data.Large, "h200-mma")
	if err != nil {
		b.Fatal(err)
	}
	data, err := dataset.Read("h200-mma", files)
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range data.Problems() {
		var best dataset.Measurement
		for _, block := range data.Finals(p) {
			for _, m := range block {
				if m.Status == dataset.OK && m.Library == "" && (best.Median == 0 || m.Median < best.Median) {
					best = m
				}
			}
		}
		b.Run(p.String()+"/"+best.Config.String(), func(b *testing.B) {
			k, err := x.Compile(b.Context(), 0, p, best.Config)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := k.Check(b.Context()); err != nil || !n.OK() {
				b.Fatal(n, err)
			}
			var times []unit.Seconds
			if err := k.Measure(b.Context(), exec.MeasureOptions{Warmup: 3}, func(s exec.Sample) bool {
				times = append(times, s.Time)
				return len(times) < 21
			}); err != nil {
				b.Fatal(err)
			}
			slices.Sort(times)
			b.ReportMetric(1e3*float64(times[10]), "ms-median")
			b.ReportMetric(0, "ns/op")
		})
	}
}
