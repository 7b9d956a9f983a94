//go:build cuda

package cuda

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
)

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
		c := gemm.Config{
			BlockM: pick(space.BlockM), BlockN: pick(space.BlockN), BlockK: pick(space.BlockK),
			NumWarps: pick(space.NumWarps), NumStages: pick(space.NumStages),
			GroupM: 1 + random.IntN(8), SplitK: pick([]int{1, 1, 1, 2, 3, 5}), Kernel: mma.Name,
		}
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
	before := func(*operands) unit.Bytes { return fence - 2 }
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
		less := &lastProductLess{short.(*kernel).program, p}
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
			"before the output":       {faulty{damage: set(before, 0x3C00)}, 0, 1},
			"after the output":        {faulty{damage: set(element(p.M, 0), 0x3C00)}, 0, 1},
			"one product left out":    {faulty{program: less, damage: nothing}, int64(p.M*p.N) / 4, 0},
		} {
			f := c.fault
			if f.program == nil {
				f.program = right.(*kernel).program
			}
			n, err := (&kernel{device: d, problem: p, name: config.String(), program: f}).Check(t.Context())
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
