package formula

import (
	"fmt"
	"go/token"
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// Deps says what a value depends on.
type Deps uint8

// The dependencies. A value without any is a constant.
const (
	OnTypes  Deps = 1 << iota // the problem's element type and layout
	OnSizes                   // the problem's sizes
	OnConfig                  // the configuration
)

// inputs are the names that every formula may use for the problem and its matrix instruction; those of the
// configuration, the names of gemm.Fields, follow them.
var inputs = []struct {
	name string
	deps Deps
}{
	{"m", OnSizes}, {"n", OnSizes}, {"k", OnSizes}, {"batch", OnSizes},
	{"element_bytes", OnTypes}, {"output_bytes", OnTypes},
	{"trans_a", OnTypes}, {"trans_b", OnTypes},
	{"atom_m", OnTypes}, {"atom_n", OnTypes}, {"atom_k", OnTypes},
	{"atom_cycles", OnTypes}, {"atoms_per_unit", OnTypes},
}

const (
	atomInputs   = 8  // where those of the atom begin
	configInputs = 13 // and those of the configuration
)

func putProblem(v []float64, p gemm.Problem) {
	count, rows := p.Products()
	v[0], v[1], v[2], v[3] = rows, float64(p.N), float64(p.K), float64(count)
	v[4], v[5] = float64(p.DType.Bits())/8, float64(p.Output().Bits())/8
	v[6], v[7] = truth(p.TransA()), truth(p.TransB())
}

func putAtom(v []float64, a *arch.Atom) {
	v[0], v[1], v[2], v[3], v[4] = float64(a.M), float64(a.N), float64(a.K), float64(a.Latency), float64(a.PerUnit)
}

func putConfig(v []float64, c *gemm.Config) {
	for i, n := range c.Numbers() {
		v[i] = float64(n)
	}
}

// Program is formulas compiled into steps over one frame of numbers, so that evaluating them for many configurations
// parses nothing, looks nothing up and allocates nothing. What no input changes is computed while compiling; what
// occurs twice is computed once. The results equal the results of Eval bit for bit.
type Program struct {
	slots map[string]int32
	frame []float64 // what a fresh frame holds
	deps  []Deps    // by slot
	steps []step
	funcs []func([]float64) float64

	constants map[uint64]int32 // slots by the bits of their value
	results   map[step]int32   // slots by the step, less its destination, that fills them
}

// step computes one value: frame[dst] = op(frame[a], frame[b], frame[c]). A call has the number of its function in a,
// its first argument's slot in b and the count of arguments in c.
type step struct {
	op           Op
	dst, a, b, c int32
}

// NewProgram returns a program without formulas that knows the names of problem, atom and configuration.
func NewProgram() *Program {
	p := &Program{slots: map[string]int32{}, constants: map[uint64]int32{}, results: map[step]int32{}}
	for _, in := range inputs {
		p.slots[in.name] = p.slot(in.deps)
	}
	for _, f := range gemm.Fields() {
		p.slots[f.Name] = p.slot(OnConfig)
	}
	return p
}

func (p *Program) slot(d Deps) int32 {
	p.frame, p.deps = append(p.frame, 0), append(p.deps, d)
	return int32(len(p.frame) - 1)
}

func (p *Program) constant(v float64) int32 {
	bits := math.Float64bits(v)
	s, ok := p.constants[bits]
	if !ok {
		s = p.slot(0)
		p.frame[s], p.constants[bits] = v, s
	}
	return s
}

func (p *Program) name(name string, slot int32) error {
	if _, taken := p.slots[name]; taken {
		return fmt.Errorf("the name %q is taken", name)
	}
	if !token.IsIdentifier(name) {
		return fmt.Errorf("%q is no name: use letters, digits and underscores", name)
	}
	p.slots[name] = slot
	return nil
}

// Constant gives a number a name.
func (p *Program) Constant(name string, v float64) error { return p.name(name, p.constant(v)) }

// Input makes a name for a number that the caller puts into the frame, at the slot that is returned.
func (p *Program) Input(name string, d Deps) (int, error) {
	s := p.slot(d)
	return int(s), p.name(name, s)
}

// Define compiles a formula over the names so far and gives its value a name.
func (p *Program) Define(name, formula string) (slot int, err error) {
	if slot, err = p.Compile(formula); err == nil {
		err = p.name(name, int32(slot))
	}
	return slot, err
}

// Compile compiles a formula over the names so far and returns the slot of its value.
func (p *Program) Compile(formula string) (slot int, err error) {
	expr, err := Parse(formula)
	if err != nil {
		return 0, err
	}
	s, err := p.compile(expr)
	if err != nil {
		return 0, fmt.Errorf("formula %q: %w", formula, err)
	}
	return int(s), nil
}

// Call gives a name to what a function makes of the values of some names. The function must give the same result for
// the same arguments and keep nothing.
func (p *Program) Call(name string, f func([]float64) float64, args []string) (slot int, err error) {
	operands := make([]int32, len(args))
	for i, a := range args {
		var ok bool
		if operands[i], ok = p.slots[a]; !ok {
			return 0, unknownName(a)
		}
	}
	var d Deps
	first := int32(len(p.frame))
	for _, s := range operands {
		d |= p.deps[s]
		p.steps = append(p.steps, step{op: opCopy, dst: p.slot(p.deps[s]), a: s})
		p.frame[len(p.frame)-1] = p.frame[s]
	}
	dst := p.slot(d)
	call := step{op: opCall, dst: dst, a: int32(len(p.funcs)), b: first, c: int32(len(args))}
	p.funcs = append(p.funcs, f)
	p.steps = append(p.steps, call)
	if d == 0 {
		p.frame[dst] = f(p.frame[first:dst])
	}
	return int(dst), p.name(name, dst)
}

func unknownName(name string) error { return fmt.Errorf("unknown name %q", name) }

// Deps returns what the value in a slot depends on.
func (p *Program) Deps(slot int) Deps { return p.deps[slot] }

// Frame returns a fresh frame. It holds the constants; inputs are zero.
func (p *Program) Frame() []float64 { return append([]float64(nil), p.frame...) }

// PutProblem writes a problem and its matrix instruction into a frame.
func (p *Program) PutProblem(frame []float64, problem gemm.Problem, a *arch.Atom) {
	putProblem(frame, problem)
	putAtom(frame[atomInputs:], a)
}

// PutConfig writes the configuration into a frame.
func (p *Program) PutConfig(frame []float64, c *gemm.Config) { putConfig(frame[configInputs:], c) }

// Steps are a part of a program, to be run.
type Steps struct {
	steps []step
	funcs []func([]float64) float64
}

// Steps returns the steps whose values depend on what keep accepts, in order.
func (p *Program) Steps(keep func(Deps) bool) Steps {
	s := Steps{funcs: p.funcs}
	for _, st := range p.steps {
		if keep(p.deps[st.dst]) {
			s.steps = append(s.steps, st)
		}
	}
	return s
}

// Run computes the values of the steps in a frame.
func (s Steps) Run(frame []float64) { run(s.steps, s.funcs, frame) }

// run computes step after step. Division is real division; conditions are 1 or 0. Each result goes to the frame by
// itself: no platform can fuse two operations.
func run(steps []step, funcs []func([]float64) float64, frame []float64) {
	for i := range steps {
		st := &steps[i]
		if st.op == opCall {
			frame[st.dst] = funcs[st.a](frame[st.b : st.b+st.c : st.b+st.c])
			continue
		}
		x, y := frame[st.a], frame[st.b]
		var v float64
		switch st.op {
		case opCopy:
			v = x
		case Negate:
			v = -x
		case Floor:
			v = math.Floor(x)
		case Ceil:
			v = math.Ceil(x)
		case Sqrt:
			v = math.Sqrt(x)
		case Add:
			v = x + y
		case Subtract:
			v = x - y
		case Multiply:
			v = x * y
		case Divide:
			v = x / y
		case CeilDivide:
			v = math.Ceil(x / y)
		case Modulo:
			v = math.Mod(x, y)
		case Min:
			v = min(x, y)
		case Max:
			v = max(x, y)
		case Power:
			v = math.Pow(x, y)
		case Less:
			v = truth(x < y)
		case LessEqual:
			v = truth(x <= y)
		case Equal:
			v = truth(x == y)
		case NotEqual:
			v = truth(x != y)
		case And:
			v = truth(x != 0 && y != 0)
		case Or:
			v = truth(x != 0 || y != 0)
		case When:
			v = frame[st.c]
			if x != 0 {
				v = y
			}
		case Number, Name, opCall:
		}
		frame[st.dst] = v
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// emit returns the slot of an operation's value.
func (p *Program) emit(o Op, a, b, c int32) int32 {
	st := step{op: o, a: a, b: b, c: c}
	d := p.deps[a] | p.deps[b] | p.deps[c]
	if d == 0 {
		values := [4]float64{p.frame[a], p.frame[b], p.frame[c], 0}
		run([]step{{op: o, a: 0, b: 1, c: 2, dst: 3}}, nil, values[:])
		return p.constant(values[3])
	}
	if s, again := p.results[st]; again {
		return s
	}
	s := p.slot(d)
	p.results[st] = s
	st.dst = s
	p.steps = append(p.steps, st)
	return s
}

func (p *Program) compile(e *Expr) (int32, error) {
	switch e.Op {
	case Number:
		return p.constant(e.Value), nil
	case Name:
		s, ok := p.slots[e.Name]
		if !ok {
			return 0, unknownName(e.Name)
		}
		return s, nil
	default: // an operator or a function
	}
	var operands [3]int32
	for i, a := range e.Args {
		var err error
		if operands[i], err = p.compile(a); err != nil {
			return 0, err
		}
	}
	for i := len(e.Args); i < len(operands); i++ {
		operands[i] = operands[0] // unused
	}
	return p.emit(e.Op, operands[0], operands[1], operands[2]), nil
}

// Eval computes one formula over named values. To compute many, compile them into a Program.
func Eval(f string, values map[string]float64) (float64, error) {
	named := map[string]float64{}
	for _, name := range Named(f) {
		if v, ok := values[name]; ok {
			named[name] = v
		}
	}
	p := over(named)
	slot, err := p.Compile(f)
	if err != nil {
		return 0, err
	}
	return p.frame[slot], nil // of constants alone, so it has been computed
}

// over returns a program that knows named values.
func over(values map[string]float64) *Program {
	p := &Program{slots: map[string]int32{}, constants: map[uint64]int32{}, results: map[step]int32{}}
	for name, v := range values {
		p.slots[name] = p.constant(v)
	}
	return p
}
