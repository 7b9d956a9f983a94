// Package inst is the PTX instruction table as data. The builder's constructors are generated from it, and the
// builder's passes check against it.
//
// Source of every row: NVIDIA, Parallel Thread Execution ISA, chapter "Instruction Set", the sections "PTX ISA Notes"
// and "Target ISA Notes" of each instruction (https://docs.nvidia.com/cuda/parallel-thread-execution/).
package inst

import (
	"strings"

	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Form is the set of operand forms that one position accepts.
type Form uint32

// The forms. Registers are typed by what PTX tells apart: predicates, untyped bits of a width, and floats.
const (
	Pred      Form = 1 << iota // .pred register
	B16                        // .b16 register
	B32                        // .b32 register
	B64                        // .b64 register
	F32                        // .f32 register
	F64                        // .f64 register
	Int                        // integer constant
	Float                      // single-precision constant
	Special                    // read-only special register, as %tid.x
	Symbol                     // address of a shared variable
	Label                      // branch target
	Param                      // memory: kernel parameter
	Global                     // memory: global state space
	Shared                     // memory: shared state space of the CTA
	Tensor                     // memory: element of the tensor that a tensor map describes
	Name                       // address of a kernel parameter
	Special64                  // read-only special register of 64 bits, as %clock64
)

// Memory is every form that is an address in brackets.
const Memory = Param | Global | Shared | Tensor

// Registers is every form that is a register.
const Registers = Pred | B16 | B32 | B64 | F32 | F64

var formNames = [...]string{"pred", "b16", "b32", "b64", "f32", "f64", "integer", "float", "special register",
	"shared variable", "label", "[param]", "[global]", "[shared]", "[tensor]", "parameter",
	"64-bit special register"}

// String lists the forms, as "b32 or integer".
func (f Form) String() string {
	s := ""
	for i, name := range formNames {
		if f&(1<<i) != 0 {
			if s != "" {
				s += " or "
			}
			s += name
		}
	}
	return s
}

// Operand is one operand position.
type Operand struct {
	// Name is the constructor's parameter.
	Name string
	// Literal is text that every use shares. It is not a parameter of the constructor.
	Literal string
	Forms   Form
	// Vector is the number of registers in braces, 0 for a single operand.
	Vector int
	// Write says that the instruction defines the operand.
	Write bool
}

// Flow says what an instruction does to control flow.
type Flow uint8

// The kinds of control flow.
const (
	Next     Flow = iota // falls through
	Jump                 // goes to its label; under a guard the lanes may diverge
	JumpSame             // goes to its label; under a guard all threads of the CTA go the same way
	Exit                 // ends the thread
	Barrier              // waits for all threads of the CTA
)

// Instruction is one row of the table.
type Instruction struct {
	// Name is the constructor's name, made from the mnemonic.
	Name string
	// Opcode is the text before the operands.
	Opcode   string
	Operands []Operand
	Needs    Needs
	// Summary says what it does in terms of the operand names.
	Summary string
	Flow    Flow
}

// Needs is what an instruction needs.
type Needs struct {
	// Targets are the lowest targets that have the instruction. A kernel's target must cover one of them: an
	// instruction that came with one architecture and left with it has several, or a single one with a suffix.
	Targets []target.Target
	// PTX is the lowest ISA version times ten: 70 for 7.0.
	PTX int
}

// Among returns the first of the targets that t covers.
func (n Needs) Among(t target.Target) (least target.Target, ok bool) {
	for _, least := range n.Targets {
		if t.Covers(least) {
			return least, true
		}
	}
	return target.Target{}, false
}

// String lists the targets: "sm_90a or sm_100a".
func (n Needs) String() string {
	names := make([]string, len(n.Targets))
	for i, t := range n.Targets {
		names[i] = t.String()
	}
	return strings.Join(names, " or ")
}

// Writes returns how many operands, counted from the first, the instruction defines: 0 or 1.
func (i *Instruction) Writes() int {
	if len(i.Operands) > 0 && i.Operands[0].Write {
		return 1
	}
	return 0
}
