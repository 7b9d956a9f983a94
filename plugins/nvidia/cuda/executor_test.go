//go:build cuda

package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
)

// openGPU returns the executor with its first device, or skips the test where there is no GPU. ORIGAMI_REQUIRE_GPU=1
// makes that a failure.
func openGPU(t testing.TB) (*executor, *device) {
	t.Helper()
	x, err := Provider{}.Open(t.Context())
	if err != nil {
		if os.Getenv("ORIGAMI_REQUIRE_GPU") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	local := x.(*executor)
	d := must.Get(local.device(0))(t)
	return local, d
}

func TestWithoutDriver(t *testing.T) {
	if driver() == nil {
		t.Skip("there is a driver")
	}
	_, err := Provider{}.Open(t.Context())
	if diag.KindOf(err) != diag.Device || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line of kind device", err)
	}
	if m := (Provider{}).Manifest(); m.Name != "cuda" || m.Version == "" {
		t.Errorf("the manifest needs no driver, got %+v", m)
	}
}

var config = gemm.Config{
	BlockM: 64, BlockN: 64, BlockK: 32, NumWarps: 4, NumStages: 3, GroupM: 4, SplitK: 1, Kernel: mma.Name,
}

func TestDescribesTheDevice(t *testing.T) {
	x, _ := openGPU(t)
	devices, err := x.Devices(t.Context())
	if err != nil || len(devices) == 0 {
		t.Fatal(devices, err)
	}
	for _, d := range devices {
		t.Logf("%+v", d)
		if d.Name == "" || !strings.HasPrefix(d.Arch, "sm") {
			t.Errorf("got name %q, architecture %q", d.Name, d.Arch)
		}
		for _, name := range []string{
			"num_sms", "clock", "l2_bytes", "shared_memory_bytes", "register_file", "dram_bandwidth", "memory_bytes",
		} {
			if !(d.Attributes[name] > 0) {
				t.Errorf("%s: %s is %v", d.Name, name, d.Attributes[name])
			}
		}
	}
	e, err := x.Environment(t.Context(), 0)
	t.Logf("%+v", e)
	if err != nil || e.Time.IsZero() || !strings.HasPrefix(e.Runtime, "CUDA ") {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := x.Compile(t.Context(), len(devices), gemm.New(64, 64, 64), config); diag.KindOf(err) != diag.Input {
		t.Errorf("a device that is not there: %v", err)
	}
}

func TestMeasures(t *testing.T) {
	x, _ := openGPU(t)
	median := func(p gemm.Problem, c gemm.Config, warm bool) float64 {
		k := must.Get(x.Compile(t.Context(), 0, p, c))(t)
		defer func() { _ = k.Close() }()
		if n, err := k.Check(t.Context()); err != nil || !n.OK() {
			t.Fatalf("%s on %s: %+v, %v", c, p, n, err)
		}
		var times []float64
		err := k.Measure(t.Context(), exec.MeasureOptions{WarmL2: warm, Warmup: 1}, func(s exec.Sample) bool {
			if !(s.Time > 0) || math.IsInf(float64(s.Time), 0) {
				t.Fatalf("a run took %v", s.Time)
			}
			times = append(times, float64(s.Time))
			return len(times) < 11
		})
		if err != nil || len(times) != 11 {
			t.Fatalf("%d samples, %v", len(times), err)
		}
		return stats.Median(times)
	}
	small, large := gemm.New(512, 512, 512), gemm.New(4096, 4096, 4096)
	cold, warm, longer := median(small, config, false), median(small, config, true), median(large, config, false)
	must.Hold(t, warm < cold && longer > cold, "512³ cold %.2f µs, warm %.2f µs; 4096³ cold %.1f µs", cold*1e6, warm*1e6,
		longer*1e6)
}

func TestLibraries(t *testing.T) {
	x, d := openGPU(t)
	if d.blas == nil {
		t.Skip("there is no cuBLAS")
	}
	typed := func(d, out gemm.DType) gemm.Problem {
		p := gemm.New(256, 128, 512)
		p.DType, p.Out = d, out
		p.SetTrans(false, true) // which cuBLAS has for every type
		return p.Canonical()
	}
	padded := typed(gemm.FP16, gemm.FP16)
	padded.LDA, padded.LDC, padded.AlignB = 520, 144, 8
	for _, p := range []gemm.Problem{
		gemm.New(512, 384, 256), gemm.New(100, 72, 4096),
		{M: 128, N: 64, K: 256, Batch: 3, DType: gemm.BF16, AMajor: gemm.MajorM, BMajor: gemm.MajorK},
		typed(gemm.FP16, gemm.FP32), typed(gemm.TF32, gemm.FP32), typed(gemm.FP32, gemm.FP32),
		typed(gemm.INT8, gemm.INT32), typed(gemm.FP8, gemm.FP16), typed(gemm.FP8, gemm.FP32), padded,
	} {
		for _, name := range []string{libraryDefault, libraryBest} {
			k := must.Get(x.Library(t.Context(), 0, p, name))(t)
			n, err := k.Check(t.Context())
			if err != nil || !n.OK() {
				t.Errorf("%s on %s: %+v, %v", name, p, n, err)
			}
			if err := k.Measure(t.Context(), exec.MeasureOptions{},
				func(s exec.Sample) bool { return s.Time <= 0 }); err != nil {
				t.Errorf("%s on %s: %v", name, p, err)
			}
			_ = k.Close()
		}
	}
}

func TestRefuses(t *testing.T) {
	x, d := openGPU(t)
	for name, c := range map[string]struct {
		problem gemm.Problem
		config  gemm.Config
		want    string
	}{
		"a family that is not there": {gemm.New(64, 64, 64), gemm.Config{Kernel: "triton"}, "no kernel family"},
		"no problem":                 {gemm.New(0, 64, 64), config, ""},
		"too large a tile": {gemm.New(64, 64, 64),
			gemm.Config{
				BlockM: 256, BlockN: 256, BlockK: 128, NumWarps: 4, NumStages: 6, GroupM: 1, SplitK: 1,
				Kernel: mma.Name,
			}, "registers"},
	} {
		if _, err := x.Compile(t.Context(), 0, c.problem, c.config); diag.KindOf(err) != diag.Input ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	huge := gemm.New(1<<19, 1<<19, 64) // C alone is 550 GB
	k, err := x.Compile(t.Context(), 0, huge, config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Check(t.Context()); diag.KindOf(err) != diag.Input || !strings.Contains(fmt.Sprint(err), "memory") {
		t.Errorf("too large for the device: %v", err)
	}
	after := must.Get(x.Compile(t.Context(), 0, gemm.New(64, 64, 64), config))(t)
	if n, err := after.Check(t.Context()); err != nil || !n.OK() {
		t.Errorf("the next problem after one that does not fit: %+v, %v", n, err)
	}
	err = d.do(func() error {
		_, err := loadFunction(".version 7.0\n.target sm_80\nnonsense", "nonsense")
		return err
	})
	if diag.KindOf(err) != diag.Input || !strings.Contains(fmt.Sprint(err), "line 3") {
		t.Errorf("text that does not compile: %v", err)
	}
	var log *compileError
	if err := d.do(func() error { _, err := compile("nonsense"); return err }); !errors.As(err, &log) ||
		len(fmt.Sprintf("%+v", log)) <= len(log.Error()) {
		t.Errorf("the log is not there: %v", err)
	}
}

// Kernels are compiled beside a measurement, neither waiting for the other for ever.
func TestCompilesBesideMeasuring(t *testing.T) {
	x, d := openGPU(t)
	k := must.Get(x.Compile(t.Context(), 0, gemm.New(512, 512, 512), config))(t)
	must.Get(k.Check(t.Context()))(t)
	for _, warm := range []bool{false, true} {
		compiled := make(chan error, 1)
		go func() {
			var failed error
			for i := range 20 {
				// A text that is new to the driver's cache.
				text := strings.Replace(texts["astray"], "16;", fmt.Sprintf("%d;", 16+i), 1)
				failed = errors.Join(failed,
					d.do(func() error { _, err := loadFunction(text, "astray"); return err }))
			}
			compiled <- failed
		}()
		runs, done := 0, false
		err := k.Measure(t.Context(), exec.MeasureOptions{WarmL2: warm}, func(exec.Sample) bool {
			runs++
			select {
			case err := <-compiled:
				if done = true; err != nil {
					t.Error(err)
				}
			default:
			}
			return !done
		})
		if err != nil || runs < 2 {
			t.Errorf("%d runs, %v", runs, err)
		}
	}
}

func TestEndsWithTheContext(t *testing.T) {
	x, _ := openGPU(t)
	k, err := x.Compile(t.Context(), 0, gemm.New(256, 256, 256), config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = k.Measure(ctx, exec.MeasureOptions{}, func(exec.Sample) bool { return true })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestThrottleReasons(t *testing.T) {
	for bits, want := range map[uint64]string{
		0: "", 1: "", 0x5: "sw_power_cap", 0x44: "sw_power_cap hw_thermal", 0x1000: "0x1000",
	} {
		if got := strings.Join(reasons(bits), " "); got != want {
			t.Errorf("%#x: %q, want %q", bits, got, want)
		}
	}
}
