//go:build cuda

package cuda

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// BenchmarkCompile generates and compiles the kernels of the family for one problem, each once, on as many goroutines as
// -cpu says. The median is that of one kernel; the driver's cache of compiled kernels must be off (CUDA_CACHE_DISABLE=1).
func BenchmarkCompile(b *testing.B) {
	_, d := openGPU(b)
	p := gemm.New(4096, 4096, 4096)
	var specs []gemmgen.Spec
	all, err := arch.Space{}.Enumerate(gemmgen.Space())
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range all {
		spec := gemmgen.Packed(p).Spec(p.DType, c)
		if _, reason, _ := spec.Check(unit.Bytes(d.attributes["shared_memory_bytes"])); reason == "" {
			specs = append(specs, spec.Key())
		}
	}
	var mu sync.Mutex
	var emit, load []float64
	next := 0
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			mu.Lock()
			spec := specs[next*7919%len(specs)]
			next++
			mu.Unlock()
			begin := time.Now()
			k, err := gemmgen.Emit(spec, d.sm)
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
	if err := k.Measure(b.Context(), exec.MeasureOptions{}, func(exec.Sample) bool { n++; return n < b.N }); err != nil {
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
