//go:build cuda

package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
)

// openGPU returns the executor with its first device, or skips the test where there is no GPU. ORIGAMI_REQUIRE_GPU=1 makes
// that a failure.
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
	own := x.(*executor)
	d, err := own.device(0)
	if err != nil {
		t.Fatal(err)
	}
	return own, d
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

var config = gemm.Config{BlockM: 64, BlockN: 64, BlockK: 32, NumWarps: 4, NumStages: 3, GroupM: 4, SplitK: 1, Kernel: mma.Name}

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
		for _, name := range []string{"num_sms", "clock", "l2_bytes", "shared_memory_bytes", "register_file", "dram_bandwidth", "memory_bytes"} {
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

// Random problems, layouts and configurations are right, and each is measured.
func TestRandomConfigurations(t *testing.T) {
	x, d := openGPU(t)
	if !slices.Contains(d.describe().Kernels, mma.Name) {
		t.Skip("the device has no such kernels")
	}
	random := rand.New(rand.NewPCG(7, 7))
	pick := func(list []int) int { return list[random.IntN(len(list))] }
	space, checked := mma.Family{}.Space(), 0
	for range 400 {
		p := gemm.New(1+random.IntN(400), 1+random.IntN(400), 1+random.IntN(600))
		if random.IntN(3) == 0 {
			p.M, p.N, p.K = 8*(1+random.IntN(64)), 8*(1+random.IntN(64)), 8*(1+random.IntN(64))
		}
		p.Batch = 1 + random.IntN(3)
		p.DType = []gemm.DType{gemm.FP16, gemm.BF16}[random.IntN(2)]
		p.SetTrans(random.IntN(2) == 0, random.IntN(2) == 0)
		c := gemm.Config{BlockM: pick(space.BlockM), BlockN: pick(space.BlockN), BlockK: pick(space.BlockK), NumWarps: pick(space.NumWarps),
			NumStages: pick(space.NumStages), GroupM: 1 + random.IntN(8), SplitK: pick([]int{1, 1, 1, 2, 3, 5}), Kernel: mma.Name}
		k, err := x.Compile(t.Context(), 0, p, c)
		if diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), "cannot be built") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n, err := k.Check(t.Context())
		if err != nil {
			t.Fatalf("%s on %s: %v", c, p, err)
		}
		if !n.OK() || n.Checked != int64(p.M)*int64(p.N)*int64(p.Batch) || n.MaxError == 0 {
			t.Errorf("%s on %s: %+v", c, p, n)
		}
		checked++
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d right", checked)
	if checked < 100 {
		t.Errorf("only %d configurations could be built", checked)
	}
}

// faulty runs a program and then does damage.
type faulty struct {
	program
	skip   bool
	damage func(o *operands) error
}

func (f faulty) bind(o *operands) (func() error, error) {
	run, err := f.program.bind(o)
	return func() error {
		if !f.skip {
			if err := run(); err != nil {
				return err
			}
		}
		return f.damage(o)
	}, err
}

// A check notices whatever can be wrong with a result.
func TestCheckNotices(t *testing.T) {
	x, d := openGPU(t)
	set := func(at func(o *operands) unit.Bytes, bits uint16) func(o *operands) error {
		return func(o *operands) error { return cu.MemsetD16Async(cu.DevicePtr(o.c.address(at(o))), bits, 1, d.stream) }
	}
	element := func(i, j int) func(o *operands) unit.Bytes {
		return func(o *operands) unit.Bytes { return fence + unit.Bytes(2*(i*o.problem.N+j)) }
	}
	nothing := func(*operands) error { return nil }
	for _, p := range []gemm.Problem{gemm.New(300, 200, 100), gemm.New(4096, 4096, 4096), gemm.New(64, 8, 70000)} {
		right, err := x.Compile(t.Context(), 0, p, config)
		if err != nil {
			t.Fatal(err)
		}
		short, err := x.Compile(t.Context(), 0, p, config)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			fault              faulty
			wrong, outOfBounds int64 // at least
		}{
			"right":            {faulty{damage: nothing}, 0, 0},
			"no kernel at all": {faulty{skip: true, damage: nothing}, int64(p.M * p.N), 0},
			"zeros": {faulty{skip: true, damage: func(o *operands) error {
				return cu.MemsetD16Async(cu.DevicePtr(o.c.address(fence)), 0, int64(p.M*p.N), d.stream)
			}}, int64(p.M*p.N) / 2, 0},
			"one element":             {faulty{damage: set(element(p.M/2, p.N/3), 0x7000)}, 1, 0},
			"the last element":        {faulty{damage: set(element(p.M-1, p.N-1), 0x7000)}, 1, 0},
			"one that is not written": {faulty{damage: set(element(p.M-1, 0), 0xFFFF)}, 1, 0},
			"before the output":       {faulty{damage: set(func(*operands) unit.Bytes { return fence - 2 }, 0x3C00)}, 0, 1},
			"after the output":        {faulty{damage: set(element(p.M, 0), 0x3C00)}, 0, 1},
			"one product left out":    {faulty{program: &lastProductLess{short.(*kernel).program, p}, damage: nothing}, int64(p.M*p.N) / 4, 0},
		} {
			f := c.fault
			if f.program == nil {
				f.program = right.(*kernel).program
			}
			n, err := (&kernel{device: d, problem: p, config: config, program: f}).Check(t.Context())
			if err != nil {
				t.Fatalf("%s, %s: %v", p, name, err)
			}
			if n.Wrong < c.wrong || n.OutOfBounds < c.outOfBounds || n.OK() != (c.wrong == 0 && c.outOfBounds == 0) {
				t.Errorf("%s, %s: %+v", p, name, n)
			}
			if n.Checked != int64(p.M*p.N) {
				t.Errorf("%s: %d elements checked", p, n.Checked)
			}
		}
		t.Logf("%s: against %s", p, d.operands.reference)
	}
}

// lastProductLess runs a program on operands whose K is one less than it should be.
type lastProductLess struct {
	program
	problem gemm.Problem
}

func (l *lastProductLess) bind(o *operands) (func() error, error) {
	call := gemmgen.Packed(o.problem)
	call.Problem.K--
	call.A.Address, call.B.Address, call.C.Address = o.a.address(fence), o.b.address(fence), o.c.address(fence)
	g := l.program.(*generated)
	less := mma.SpecFor(call, o.problem.DType, g.config)
	m, err := g.device.modules.get(less)
	if err != nil {
		return nil, err
	}
	at, err := less.Launch(m.kernel, call)
	return func() error { return g.device.start(m.function, at) }, err
}

func TestMeasures(t *testing.T) {
	x, _ := openGPU(t)
	median := func(p gemm.Problem, c gemm.Config, warm bool) float64 {
		k, err := x.Compile(t.Context(), 0, p, c)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = k.Close() }()
		if n, err := k.Check(t.Context()); err != nil || !n.OK() {
			t.Fatalf("%s on %s: %+v, %v", c, p, n, err)
		}
		var times []float64
		err = k.Measure(t.Context(), exec.MeasureOptions{WarmL2: warm, Warmup: 1}, func(s exec.Sample) bool {
			if !(s.Time > 0) || math.IsInf(float64(s.Time), 0) {
				t.Fatalf("a run took %v", s.Time)
			}
			times = append(times, float64(s.Time))
			return len(times) < 11
		})
		if err != nil || len(times) != 11 {
			t.Fatalf("%d samples, %v", len(times), err)
		}
		slices.Sort(times)
		return times[5]
	}
	small, large := gemm.New(512, 512, 512), gemm.New(4096, 4096, 4096)
	cold, warm, longer := median(small, config, false), median(small, config, true), median(large, config, false)
	t.Logf("512³ cold %.2f µs, warm %.2f µs; 4096³ cold %.1f µs", cold*1e6, warm*1e6, longer*1e6)
	if warm >= cold || longer <= cold {
		t.Errorf("512³ takes %v s with a cold L2 and %v s with a warm one, 4096³ %v s", cold, warm, longer)
	}
}

func TestLibraries(t *testing.T) {
	x, d := openGPU(t)
	if d.blas == nil {
		t.Skip("there is no cuBLAS")
	}
	for _, p := range []gemm.Problem{gemm.New(512, 384, 256), gemm.New(100, 72, 4096), {M: 128, N: 64, K: 256, Batch: 3, DType: gemm.BF16, AMajor: gemm.MajorM, BMajor: gemm.MajorK}} {
		for _, name := range []string{libraryDefault, libraryBest} {
			k, err := x.Library(t.Context(), 0, p, name)
			if err != nil {
				t.Fatal(err)
			}
			n, err := k.Check(t.Context())
			if err != nil || !n.OK() {
				t.Errorf("%s on %s: %+v, %v", name, p, n, err)
			}
			if err := k.Measure(t.Context(), exec.MeasureOptions{}, func(s exec.Sample) bool { return s.Time <= 0 }); err != nil {
				t.Error(err)
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
		"too large a tile":           {gemm.New(64, 64, 64), gemm.Config{BlockM: 256, BlockN: 256, BlockK: 128, NumWarps: 4, NumStages: 6, GroupM: 1, SplitK: 1, Kernel: mma.Name}, "registers"},
	} {
		if _, err := x.Compile(t.Context(), 0, c.problem, c.config); diag.KindOf(err) != diag.Input || !strings.Contains(fmt.Sprint(err), c.want) {
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
	after, err := x.Compile(t.Context(), 0, gemm.New(64, 64, 64), config)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := after.Check(t.Context()); err != nil || !n.OK() {
		t.Errorf("the next problem after one that does not fit: %+v, %v", n, err)
	}
	err = d.do(func() error {
		_, _, err := loadFunction(".version 7.0\n.target sm_80\nnonsense", "nonsense")
		return err
	})
	if diag.KindOf(err) != diag.Input || !strings.Contains(fmt.Sprint(err), "line 3") {
		t.Errorf("text that does not compile: %v", err)
	}
	var log *compileError
	if err := d.do(func() error { _, err := compile("nonsense"); return err }); !errors.As(err, &log) || len(fmt.Sprintf("%+v", log)) <= len(log.Error()) {
		t.Errorf("the log is not there: %v", err)
	}
}

// Kernels are compiled beside a measurement, neither waiting for the other for ever.
func TestCompilesBesideMeasuring(t *testing.T) {
	x, d := openGPU(t)
	k, err := x.Compile(t.Context(), 0, gemm.New(512, 512, 512), config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, warm := range []bool{false, true} {
		compiled := make(chan error, 1)
		go func() {
			var failed error
			for i := range 20 {
				text := strings.Replace(texts["astray"], "16;", fmt.Sprintf("%d;", 16+i), 1) // new to the driver's cache
				failed = errors.Join(failed, d.do(func() error { _, _, err := loadFunction(text, "astray"); return err }))
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
	if err := k.Measure(ctx, exec.MeasureOptions{}, func(exec.Sample) bool { return true }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// narrow agrees with the definition: the nearest number of the type, the even one of two that are equally near.
func TestNarrow(t *testing.T) {
	widen := func(d gemm.DType, bits uint16) float64 {
		if d == gemm.BF16 {
			return float64(math.Float32frombits(uint32(bits) << 16))
		}
		return math.Ldexp(1+float64(bits&0x3FF)/1024, int(bits>>10&0x1F)-15) * (1 - 2*float64(bits>>15))
	}
	random := rand.New(rand.NewPCG(3, 3))
	for range 100000 {
		v := float32(random.NormFloat64())
		for _, d := range []gemm.DType{gemm.FP16, gemm.BF16} {
			bits := narrow(d, v)
			if d == gemm.FP16 && math.Abs(float64(v)) < 0x1p-14 {
				if bits&0x7FFF != 0 {
					t.Fatalf("%g became %#x", v, bits)
				}
				continue
			}
			off := math.Abs(widen(d, bits) - float64(v))
			for _, near := range []uint16{bits - 1, bits + 1} {
				if other := math.Abs(widen(d, near) - float64(v)); other < off || other == off && bits&1 == 1 {
					t.Fatalf("%s: %g became %g, %g is nearer", d, v, widen(d, bits), widen(d, near))
				}
			}
		}
	}
}

func TestThrottleReasons(t *testing.T) {
	for bits, want := range map[uint64]string{0: "", 1: "", 0x5: "sw_power_cap", 0x44: "sw_power_cap hw_thermal", 0x1000: "0x1000"} {
		if got := strings.Join(reasons(bits), " "); got != want {
			t.Errorf("%#x: %q, want %q", bits, got, want)
		}
	}
}
