// Package inst is the PTX instruction table as data: what the builder's constructors are generated from and what its
// passes check against.
//
// Source of every row: NVIDIA, Parallel Thread Execution ISA, chapter "Instruction Set", the sections "PTX ISA Notes" and
// "Target ISA Notes" of each instruction (https://docs.nvidia.com/cuda/parallel-thread-execution/).
package inst

// Form is the set of operand forms that one position accepts.
type Form uint16

// The forms. Registers are typed by what PTX tells apart: predicates, untyped bits of a width, and floats.
const (
	Pred    Form = 1 << iota // .pred register
	B16                      // .b16 register
	B32                      // .b32 register
	B64                      // .b64 register
	F32                      // .f32 register
	F64                      // .f64 register
	Int                      // integer constant
	Float                    // single-precision constant
	Special                  // read-only special register, as %tid.x
	Symbol                   // address of a shared variable
	Label                    // branch target
	Param                    // memory: kernel parameter
	Global                   // memory: global state space
	Shared                   // memory: shared state space of the CTA
)

// Memory is every form that is an address in brackets.
const Memory = Param | Global | Shared

// Registers is every form that is a register.
const Registers = Pred | B16 | B32 | B64 | F32 | F64

var formNames = [...]string{"pred", "b16", "b32", "b64", "f32", "f64", "integer", "float", "special register", "shared variable", "label",
	"[param]", "[global]", "[shared]"}

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
	// Literal is text that is the same in every use. It is no parameter of the constructor.
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
	Jump                 // goes to its label; under a guard the lanes may part
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
	// SM is the lowest target, as 80; PTX the lowest ISA version times ten, as 70.
	SM, PTX int
	// Summary says what it does in terms of the operand names.
	Summary string
	Flow    Flow
}

// Writes returns how many operands, counted from the first, the instruction defines: 0 or 1.
func (i *Instruction) Writes() int {
	if len(i.Operands) > 0 && i.Operands[0].Write {
		return 1
	}
	return 0
}
