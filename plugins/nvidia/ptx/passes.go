package ptx

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

// passes is what Build does, in order. A verifying pass reports every mistake that it finds. The first pass that
// finds one ends the build, since later passes rely on what it checks.
var passes = []struct {
	name string
	run  func(*assembly)
}{
	{"verify operands", (*assembly).verifyOperands},       // types, state spaces, vector lengths, guards
	{"verify labels", (*assembly).verifyLabels},           // placed once, named once
	{"split blocks", (*assembly).splitBlocks},             // basic blocks and their successors
	{"verify ends", (*assembly).verifyEnds},               // no path falls off the end
	{"verify definitions", (*assembly).verifyDefinitions}, // every register is written on every path before it is read
	{"verify barriers", (*assembly).verifyBarriers},       // all threads of the CTA reach a barrier
	{"derive target", (*assembly).deriveTarget},           // .target and .version from the instructions
	{"number registers", (*assembly).numberRegisters},     // dense numbers per class, in order of appearance
	{"print", (*assembly).print},
}

// Kernel is a built kernel.
type Kernel struct {
	Name string
	// Text is the PTX module.
	Text string
	// Target and PTX are what .target and .version say: the lowest target that has the instructions, and the ISA
	// version times ten, 70 for 7.0.
	Target target.Target
	PTX    int
	Params []Param
	// ParamBytes is the size of the parameter buffer.
	ParamBytes int
	// SharedBytes is the fixed shared memory. The dynamic part is set at launch.
	SharedBytes int
	// Registers counts the virtual registers per class (pred, b16, b32, b64, f32, f64). Hardware registers are fewer,
	// since the assembler reuses registers whose lives do not overlap.
	Registers map[string]int
}

// assembly is the state that the passes share.
type assembly struct {
	*Builder
	target target.Target
	blocks []block
	// number is the printed number of each register within its class, -1 for a register that no instruction uses.
	number []int32
	counts [len(classes)]int
	kernel Kernel
	errs   []error
}

// classes are the register classes, in the order of their forms, which is that of their declarations.
var classes = [...]struct{ name, prefix string }{
	{"pred", "%p"}, {"b16", "%h"}, {"b32", "%r"}, {"b64", "%d"}, {"f32", "%f"}, {"f64", "%g"},
}

// classOf is the place of a form among the classes, the last one for a form that is no register.
func classOf(f inst.Form) int { return min(bits.TrailingZeros32(uint32(f)), len(classes)-1) }

// Build checks the kernel and returns it, for any GPU whose target covers t. The target printed is the lowest that
// has all instructions. An instruction that t lacks is an error.
func (b *Builder) Build(t target.Target) (*Kernel, error) {
	a := &assembly{Builder: b, target: t, errs: b.errs}
	a.kernel = Kernel{Name: b.name, Params: b.params}
	for _, p := range b.params {
		a.kernel.ParamBytes = p.Offset + p.Type.Bytes()
	}
	for _, v := range b.shared {
		a.kernel.SharedBytes = (a.kernel.SharedBytes+v.align-1)/v.align*v.align + v.bytes
	}
	stage := "build"
	for _, pass := range passes {
		if len(a.errs) > 0 {
			break
		}
		stage = pass.name
		pass.run(a)
	}
	if len(a.errs) > 0 {
		for i, err := range a.errs {
			a.errs[i] = fmt.Errorf("kernel %s: %s: %w", b.name, stage, err)
		}
		return nil, errors.Join(a.errs...)
	}
	return &a.kernel, nil
}

func (a *assembly) failf(format string, args ...any) {
	a.errs = append(a.errs, fmt.Errorf(format, args...))
}

// line is an instruction as it is printed, for errors.
func (a *assembly) line(i int) string { return string(a.appendInstruction(nil, &a.code[i])) }

// given returns the operands that the constructor was given, without the literals.
func (a *assembly) given(in *instruction) []Operand {
	return a.operands[in.first : in.first+uint32(in.n)]
}
