//go:build cuda

package cuda

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
)

// Random problems, layouts and configurations of every element type are right.
func TestRandomConfigurations(t *testing.T) {
	x, d := openGPU(t)
	if !slices.Contains(d.describe().Kernels, mma.Name) {
		t.Skip("the device has no such kernels")
	}
	for _, dtype := range gemmgen.Checked() {
		t.Run(dtype.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, uint64(dtype)))
			checkDrawn(t, x, 25, func() drawn {
				return drawn{problem: randomProblem(random, dtype), config: randomConfig(random)}
			})
		})
	}
}

// randomProblem returns a small problem, often with odd sizes, gaps between rows and addresses of little alignment.
func randomProblem(random *rand.Rand, d gemm.DType) gemm.Problem {
	p := gemm.New(1+random.IntN(400), 1+random.IntN(400), 1+random.IntN(600))
	if random.IntN(3) == 0 {
		p.M, p.N, p.K = 16*(1+random.IntN(32)), 16*(1+random.IntN(32)), 16*(1+random.IntN(32))
	}
	p.Batch, p.DType = 1+random.IntN(3), d
	if p.Out = d.Outputs()[random.IntN(len(d.Outputs()))]; p.Types().Scaled() {
		p.Out = 0
	}
	p.SetTrans(random.IntN(2) == 0, random.IntN(2) == 0)
	if d.Bits() == 8 {
		p.SetTrans(false, true)
	}
	if random.IntN(3) == 0 {
		p.LDA, p.LDB, p.LDC = p.LD(gemm.A)+random.IntN(9), p.LD(gemm.B)+random.IntN(17), p.LD(gemm.C)+random.IntN(5)
	}
	if random.IntN(3) == 0 {
		for m := gemm.A; m <= gemm.C; m++ {
			if err := p.SetAlign(m, max(p.Type(m).Bytes(), 1<<random.IntN(5))); err != nil {
				panic(err)
			}
		}
	}
	return p.Canonical()
}

func randomConfig(random *rand.Rand) gemm.Config {
	pick := func(list []int) int { return list[random.IntN(len(list))] }
	space := mma.Family{}.Space()
	return gemm.Config{
		BlockM: pick(space.BlockM), BlockN: pick(space.BlockN), BlockK: pick(space.BlockK),
		NumWarps: pick(space.NumWarps), NumStages: pick(space.NumStages),
		GroupM: 1 + random.IntN(8), SplitK: pick([]int{1, 1, 1, 2, 3, 5}), Kernel: mma.Name,
	}
}

// Large problems of every type are right, with and without splits, also where only a sample of the rows is compared.
func TestLargeProblems(t *testing.T) {
	x, d := openGPU(t)
	for _, dtype := range gemmgen.Checked() {
		p := gemm.New(4096, 4096, 4096)
		p.DType = dtype
		p.SetTrans(false, dtype.Bits() == 8)
		for _, c := range []gemm.Config{
			{BlockM: 128, BlockN: 128, BlockK: 32, NumWarps: 8, NumStages: 3, GroupM: 8, SplitK: 1, Kernel: mma.Name},
			{BlockM: 128, BlockN: 64, BlockK: 64, NumWarps: 8, NumStages: 3, GroupM: 8, SplitK: 8, Kernel: mma.Name},
		} {
			k := must.Get(x.Compile(t.Context(), 0, p, c))(t)
			n, err := k.Check(t.Context())
			if err != nil || !n.OK() {
				t.Errorf("%s on %s: %+v, %v", c, p, n, err)
			}
			t.Logf("%s on %s: error %.3g of %.3g, against %s", c, p, n.MaxError, n.Tolerance, d.operands.reference)
			_ = k.Close()
		}
	}
}

// Operands of tf32 are fp32 in memory, and kernels round them to nearest.
func TestTF32IsRounded(t *testing.T) {
	x, d := openGPU(t)
	for _, layout := range [][2]bool{{false, false}, {true, true}} {
		p := gemm.New(200, 120, 64)
		p.DType = gemm.TF32
		p.SetTrans(layout[0], layout[1])
		k := must.Get(x.Compile(t.Context(), 0, p, config))(t)
		must.Do(t, k.(*runnable).run(t.Context(), "checking", exec.InputNormal, func(o *operands, run func() error) error {
			if err := d.fillPool(gemm.FP32); err != nil {
				return err
			}
			if err := o.randomise(gemm.A, 0); err != nil {
				return err
			}
			if err := o.randomise(gemm.B, 1000); err != nil {
				return err
			}
			n, err := d.check(o, 0, run)
			if err == nil && (!n.OK() || o.reference != "float64") {
				t.Errorf("%s: %+v against %s", p, n, o.reference)
			}
			d.operands.free()
			d.operands = nil
			return err
		}))
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
		right := must.Get(x.Compile(t.Context(), 0, p, config))(t)
		short := must.Get(x.Compile(t.Context(), 0, p, config))(t)
		less := &lastProductLess{short.(*runnable).program, p}
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
				f.program = right.(*runnable).program
			}
			n, err := (&runnable{device: d, problem: p, name: config.String(), program: f}).Check(t.Context())
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
	call := o.call()
	call.Problem.K--
	g := l.program.(*generated)
	less := mma.SpecFor(call, o.problem.Output(), g.config)
	m, err := g.device.modules.get(less)
	if err != nil {
		return nil, err
	}
	at, err := less.Launch(m.kernel, call)
	return func() error { return start(g.device.stream, m.function, at) }, err
}
