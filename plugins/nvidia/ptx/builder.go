package ptx

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

// Builder collects the instructions of one kernel. The instruction methods are in zinstructions.go. A Builder serves
// one goroutine and one call of Build.
type Builder struct {
	name   string
	header []string
	params []Param
	shared []variable
	// maxThreads and minCTAs are the launch bounds, 0 if none are given.
	maxThreads, minCTAs int
	// cluster is the CTAs of a cluster along x, 0 if the launch decides.
	cluster int

	// registers holds the class of every virtual register.
	registers []inst.Form
	// vectors holds the registers of all vector operands, one after the other.
	vectors  []uint32
	labels   []label
	code     []instruction
	operands []Operand
	comments []string
	// guard is the predicate of the next instruction.
	guard  uint32
	negate bool

	errs []error
}

// Param is one kernel parameter, at its byte offset in the parameter buffer.
type Param struct {
	Name   string
	Type   Type
	Offset int
}

// variable is a shared variable. The dynamic one has 0 bytes: its size is set at launch.
type variable struct {
	name         string
	bytes, align int
}

type label struct {
	name string
	// at is the index of the instruction after the label, -1 until the label is placed.
	at int
}

// instruction is one line of the kernel.
type instruction struct {
	// op is an index of inst.Table, or one of the pseudo-operations below.
	op int16
	// The n operands begin at first in Builder.operands. For a label or a comment, first is its number.
	n     uint8
	first uint32
	// guard is 0, or one more than the number of the predicate that the line runs under. negate inverts the predicate.
	guard  uint32
	negate bool
}

const (
	opLabel   = -1
	opComment = -2
)

// New returns a builder for a kernel of the given name.
func New(name string) *Builder {
	return &Builder{
		name: name, code: make([]instruction, 0, 2048), operands: make([]Operand, 0, 6144),
		registers: make([]inst.Form, 0, 512), vectors: make([]uint32, 0, 1024),
	}
}

func (b *Builder) errorf(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// Header adds a comment line above the kernel. It says what generated the kernel, and from what.
func (b *Builder) Header(format string, args ...any) {
	b.header = append(b.header, fmt.Sprintf(format, args...))
}

// LaunchBounds states the largest CTA that the kernel is launched with, and how many CTAs must fit on an SM at once.
// The assembler derives the register cap from it.
func (b *Builder) LaunchBounds(maxThreads, minCTAs int) {
	b.maxThreads, b.minCTAs = maxThreads, minCTAs
}

// Cluster states that so many CTAs, neighbours along x, make a cluster. Every launch then has such clusters.
func (b *Builder) Cluster(ctas int) { b.cluster = ctas }

// Param declares the next kernel parameter and returns its address.
func (b *Builder) Param(name string, t Type) Operand {
	offset := 0
	if n := len(b.params); n > 0 {
		offset = b.params[n-1].Offset + b.params[n-1].Type.Bytes()
	}
	offset = (offset + t.align() - 1) / t.align() * t.align()
	b.params = append(b.params, Param{Name: name, Type: t, Offset: offset})
	return Operand{form: inst.Param, id: uint32(len(b.params) - 1)}
}

// Params declares the next kernel parameters, all of one type.
func (b *Builder) Params(t Type, names ...string) {
	for _, name := range names {
		b.Param(name, t)
	}
}

// ParamAt returns the address of a declared parameter, for LdParamU32 and the like.
func (b *Builder) ParamAt(name string) Operand { return b.declared(inst.Param, name) }

// ParamName returns the name of a declared parameter, for MovB64Name.
func (b *Builder) ParamName(name string) Operand { return b.declared(inst.Name, name) }

func (b *Builder) declared(form inst.Form, name string) Operand {
	i := slices.IndexFunc(b.params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		b.errorf("no parameter %s is declared", name)
		return Operand{}
	}
	return Operand{form: form, id: uint32(i)}
}

// SharedVar declares a shared variable of a fixed size and returns its symbol, for MovU32.
func (b *Builder) SharedVar(name string, bytes, align int) Operand {
	if bytes <= 0 {
		b.errorf("shared variable %s has %d bytes", name, bytes)
	}
	return b.variable(name, bytes, align)
}

// DynamicShared declares the shared memory whose size is set at launch and returns its symbol, for MovU32.
func (b *Builder) DynamicShared(name string, align int) Operand { return b.variable(name, 0, align) }

func (b *Builder) variable(name string, bytes, align int) Operand {
	b.shared = append(b.shared, variable{name, bytes, align})
	return Operand{form: inst.Symbol, id: uint32(len(b.shared) - 1)}
}

// Pred returns a new predicate register.
func (b *Builder) Pred() Operand { return b.register(inst.Pred) }

// B16 returns a new 16-bit register.
func (b *Builder) B16() Operand { return b.register(inst.B16) }

// B32 returns a new 32-bit register.
func (b *Builder) B32() Operand { return b.register(inst.B32) }

// B64 returns a new 64-bit register.
func (b *Builder) B64() Operand { return b.register(inst.B64) }

// F32 returns a new single-precision register.
func (b *Builder) F32() Operand { return b.register(inst.F32) }

// F64 returns a new double-precision register.
func (b *Builder) F64() Operand { return b.register(inst.F64) }

func (b *Builder) register(class inst.Form) Operand {
	b.registers = append(b.registers, class)
	return Operand{form: class, id: uint32(len(b.registers) - 1)}
}

// Regs returns n registers that one of the methods above makes, as b.Regs(4, b.F32).
func (b *Builder) Regs(n int, one func() Operand) []Operand {
	regs := make([]Operand, n)
	for i := range regs {
		regs[i] = one()
	}
	return regs
}

// Vec returns the vector operand {regs…}. All must be registers of one class.
func (b *Builder) Vec(regs ...Operand) Operand {
	if len(regs) == 0 {
		b.errorf("empty vector operand")
		return Operand{}
	}
	v := Operand{form: regs[0].form, vector: uint16(len(regs)), id: uint32(len(b.vectors))}
	for _, r := range regs {
		if r.form&inst.Registers == 0 || r.vector != 0 || r.form != v.form {
			b.errorf("vector operand mixes %s with %s", v.form, r.form)
			return Operand{}
		}
		b.vectors = append(b.vectors, r.id)
	}
	return v
}

// Label returns a new label; Place puts it in the code. Names must differ within a kernel.
func (b *Builder) Label(name string) Operand {
	b.labels = append(b.labels, label{name: name, at: -1})
	return Operand{form: inst.Label, id: uint32(len(b.labels) - 1)}
}

// Place puts a label before the next instruction.
func (b *Builder) Place(l Operand) {
	switch {
	case l.form != inst.Label:
		b.errorf("placed an operand that is no label")
	case b.labels[l.id].at >= 0:
		b.errorf("label %s is placed twice", b.labels[l.id].name)
	default:
		b.labels[l.id].at = len(b.code)
		b.code = append(b.code, instruction{op: opLabel, first: l.id})
	}
}

// Comment puts a comment line into the code.
func (b *Builder) Comment(text string) {
	b.comments = append(b.comments, text)
	b.code = append(b.code, instruction{op: opComment, first: uint32(len(b.comments) - 1)})
}

// If makes the next instruction run only where the predicate p is true: b.If(p).BraUni(done).
func (b *Builder) If(p Operand) *Builder { return b.guarded(p, false) }

// IfNot makes the next instruction run only where the predicate p is false.
func (b *Builder) IfNot(p Operand) *Builder { return b.guarded(p, true) }

func (b *Builder) guarded(p Operand, negate bool) *Builder {
	if p.form != inst.Pred || p.vector != 0 {
		b.errorf("guard is no predicate but %s", describe(p))
	}
	b.guard, b.negate = p.id+1, negate
	return b
}

// emit appends an instruction and returns its first operand. A pass checks the operands, when the kernel is complete.
func (b *Builder) emit(op int16, operands ...Operand) (first Operand) {
	b.code = append(b.code, instruction{
		op: op, first: uint32(len(b.operands)), n: uint8(len(operands)), guard: b.guard, negate: b.negate,
	})
	b.operands = append(b.operands, operands...)
	b.guard, b.negate = 0, false
	if len(operands) > 0 {
		return operands[0]
	}
	return Operand{}
}

// describe names what an operand is, for errors.
func describe(o Operand) string {
	switch {
	case o.form == 0:
		return "an invalid operand"
	case o.vector != 0:
		return fmt.Sprintf("a vector of %d %s", o.vector, o.form)
	default:
		return o.form.String()
	}
}
