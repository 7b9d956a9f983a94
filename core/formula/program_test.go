package formula

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// machine is a description whose terms use every kind of name and operation.
var machine = arch.Description{
	Params: hw.Set{
		{Name: "units", Number: hw.Number{Value: 12}}, {Name: "bandwidth", Number: hw.Number{Value: 0.3}},
	},
	Constants: []arch.Constant{{Name: "fill", Value: 0.1}},
	Atoms:     []arch.Atom{{DType: gemm.FP16, M: 16, N: 8, K: 16, Latency: 33, PerUnit: 4}},
	Terms: []arch.Term{
		{Name: "tiles", Formula: "cdiv(m, block_m)*cdiv(n, block_n)*batch"},
		{Name: "waves", Formula: "cdiv(tiles, units)"},
		{Name: "share", Formula: "when(tiles >= units && mod(tiles, units) != 0, mod(tiles, units)/units, 1)"},
		{Name: "atoms", Formula: "cdiv(block_m, atom_m)*cdiv(block_n, atom_n)*cdiv(block_k, atom_k)"},
		{Name: "compute", Formula: "atoms*atom_cycles/atoms_per_unit + fill*num_warps - -1"},
		{Name: "load", Formula: "min(tiles, units)*(block_m + block_n)*block_k*element_bytes/bandwidth*(1 - fill)"},
		{Name: "store", Formula: "block_m*block_n*output_bytes/bandwidth"},
		{Name: "fixed", Formula: "pow(2, 10) + floor(units/5) + sqrt(bandwidth) + ceil(0.2)"},
		{Name: "total", Formula: "max(waves, 1, share)*cdiv(k, block_k)*max(compute, load) + store + " +
			"fixed*num_stages/split_k"},
	},
}

// compile makes a program of the machine's terms, and the slots of those.
func compile(t testing.TB) (*Program, []int) {
	t.Helper()
	p := NewProgram()
	for _, param := range machine.Params {
		must.Do(t, p.Constant(param.Name, param.Value))
	}
	for _, c := range machine.Constants {
		must.Do(t, p.Constant(c.Name, c.Value))
	}
	slots := make([]int, len(machine.Terms))
	for i, term := range machine.Terms {
		var err error
		if slots[i], err = p.Define(term.Name, term.Formula); err != nil {
			t.Fatal(err)
		}
	}
	return p, slots
}

var largeConfig = gemm.Config{BlockM: 128, BlockN: 96, BlockK: 48, NumWarps: 7, NumStages: 3, SplitK: 3}

func everything(Deps) bool { return true }

// A compiled formula gives, bit for bit, what Eval gives over the values of the same row.
func TestProgramIsEval(t *testing.T) {
	p, slots := compile(t)
	steps, frame := p.Steps(everything), p.Frame()
	for _, problem := range []gemm.Problem{gemm.New(1, 1, 1), gemm.New(1000, 333, 77), gemm.New(8192, 8191, 100000)} {
		for _, c := range []gemm.Config{
			{BlockM: 1, BlockN: 1, BlockK: 1, NumWarps: 1, NumStages: 1, SplitK: 1},
			largeConfig,
		} {
			p.PutProblem(frame, problem, &machine.Atoms[0])
			p.PutConfig(frame, &c)
			steps.Run(frame)
			row := make([]float64, len(slots))
			for i, s := range slots {
				row[i] = frame[s]
			}
			values := Values(&machine, problem, c, row)
			for i, term := range machine.Terms {
				want, err := Eval(term.Formula, values)
				must.That(t, err == nil && math.Float64bits(row[i]) == math.Float64bits(want),
					"%s of %s for %s: %v, want %v (%v)", term.Name, c, problem, row[i], want, err)
			}
		}
	}
}

// What a value depends on decides when it has to be computed; what depends on nothing is there from the start.
func TestProgramKnowsDependencies(t *testing.T) {
	p, slots := compile(t)
	for name, want := range map[string]Deps{
		"tiles": OnSizes | OnConfig, "atoms": OnTypes | OnConfig, "compute": OnTypes | OnConfig, "fixed": 0,
		"total": OnTypes | OnSizes | OnConfig,
	} {
		for i, term := range machine.Terms {
			if term.Name == name && p.Deps(slots[i]) != want {
				t.Errorf("%s depends on %b, want %b", name, p.Deps(slots[i]), want)
			}
		}
	}
	must.Equal(t, p.Frame()[slots[7]], 1024+2+math.Sqrt(0.3)+1)
	before := len(p.Steps(everything).steps)
	again, err := p.Compile("cdiv(m, block_m)*cdiv(n, block_n)*batch")
	must.That(t, err == nil && again == slots[0] && len(p.Steps(everything).steps) == before,
		"the same formula again is computed again: %v", err)
	must.Equal(t, len(p.Steps(func(d Deps) bool { return d&OnConfig == 0 }).steps), 0)
}

func TestProgramCalls(t *testing.T) {
	p := NewProgram()
	sum := func(v []float64) float64 {
		s := 0.0
		for _, x := range v {
			s += x
		}
		return s
	}
	for _, call := range []struct {
		name string
		args []string
		deps Deps
		want float64
	}{
		{"none", nil, 0, 0}, {"three", []string{"m", "block_k", "m"}, OnSizes | OnConfig, 5 + 64 + 5},
		{"nested", []string{"three", "k"}, OnSizes | OnConfig, 74 + 7},
	} {
		slot, err := p.Call(call.name, sum, call.args)
		if err != nil || p.Deps(slot) != call.deps {
			t.Fatalf("%s: %v, depends on %b", call.name, err, p.Deps(slot))
		}
		frame := p.Frame()
		p.PutProblem(frame, gemm.New(5, 6, 7), &machine.Atoms[0])
		p.PutConfig(frame, &gemm.Config{BlockK: 64})
		p.Steps(everything).Run(frame)
		must.Equal(t, frame[slot], call.want, call.name)
	}
	for want, err := range map[string]error{
		`unknown name "nobody"`:     second(p.Call("a", sum, []string{"nobody"})),
		`the name "m" is taken`:     second(p.Define("m", "1")),
		`the name "three" is taken`: second(p.Input("three", OnConfig)),
		`"a-b" is no name`:          p.Constant("a-b", 1),
		`unknown name "later"`:      second(p.Define("b", "later + 1")),
	} {
		must.Fail(t, err, want)
	}
}

func second(_ int, err error) error { return err }

func TestProgramAllocatesNothing(t *testing.T) {
	p, _ := compile(t)
	steps, frame, c := p.Steps(everything), p.Frame(), largeConfig
	must.Equal(t, testing.AllocsPerRun(100, func() {
		p.PutProblem(frame, gemm.New(1000, 333, 77), &machine.Atoms[0])
		p.PutConfig(frame, &c)
		steps.Run(frame)
	}), 0)
}
