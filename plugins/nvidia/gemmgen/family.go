package gemmgen

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Family is a kernel family that origami generates. Each family is a package. Package families lists them.
type Family interface {
	// Name is the family's name in gemm.Config.Kernel.
	Name() string
	// Target is the lowest target that has the family's instructions.
	Target() target.Target
	// Axes are the named axes of the family's configurations.
	Axes() []gemm.Axis
	// Space is every configuration of the family before feasibility, for arch.Space.Enumerate.
	Space() arch.Space
	// Program returns the fastest kernel of a configuration that computes a call. If the configuration does not
	// belong to the family, or exceeds the limits, the reason says why and the detail puts it in numbers; no reason
	// means feasible.
	Program(call Call, out gemm.DType, c gemm.Config, limits Limits) (p Program, reason arch.Reason, detail string)
}

// Program is one configuration of a family for calls of one layout, element type and alignment, before its kernel is
// emitted. It is a value: equal programs are interchangeable.
type Program interface {
	// Key identifies the text of the kernel. Programs with equal keys share a kernel. Keys are comparable.
	Key() any
	// Emit generates the kernel for devices that cover the target. The same program and target give the same bytes on
	// any machine.
	Emit(t target.Target) (*Kernel, error)
	// Launch returns how to start the kernel for a call. It refuses a kernel with another key, and a call that the
	// kernel would compute incorrectly.
	Launch(k *Kernel, call Call) (Launch, error)
}

// Limits are what a device lets a kernel use.
type Limits struct {
	// RegistersPerThread is the most 32-bit registers that an instruction can name. RegisterFile is what the threads
	// of an SM share.
	RegistersPerThread, RegisterFile int
	// RegisterGranule is the multiple in which each thread's registers are allocated, 0 if unknown.
	RegisterGranule int
	// Processors is the number of SMs, for kernels whose CTAs stay resident, 0 if unknown.
	Processors int
	// Target has the instructions of the device. The zero target has all.
	Target target.Target
	// SharedMemory is the most that one CTA may use.
	SharedMemory unit.Bytes
}

// Registers returns the most registers per thread that let a CTA of so many threads run.
func (l Limits) Registers(threads int) int {
	share := l.RegisterFile / threads
	return min(l.RegistersPerThread, share-share%max(l.RegisterGranule, 1))
}

// CheckShared rejects a kernel that needs more shared memory than a CTA may use, on a GPU with a limit.
func CheckShared(limit, need unit.Bytes) (arch.Reason, string) {
	if need <= limit {
		return "", ""
	}
	return arch.ReasonSharedMemory, fmt.Sprintf("needs %d B of shared memory, %d B available", int64(need), int64(limit))
}

// Refused is the error of Emit for a configuration that a family does not have.
func Refused(c gemm.Config, reason arch.Reason, detail string) error {
	return diag.Inputf("%s: %s", reason, detail).At("config %s", c).Do("choose a configuration that Check accepts")
}

// Assemble builds the kernel of a configuration from its text.
func Assemble(text *ptx.Builder, t target.Target, c gemm.Config, k Kernel) (*Kernel, error) {
	var err error
	if k.Kernel, err = text.Build(t); err != nil {
		return nil, &diag.Error{
			Kind: diag.Internal, What: fmt.Sprintf("the generated kernel is wrong: %v", err), Where: "config " + c.String(),
			Err: err,
		}
	}
	return &k, nil
}

// Kernel is an emitted kernel.
type Kernel struct {
	*ptx.Kernel
	// Key is the key of the program.
	Key any
	// Threads is the CTA size.
	Threads int
	// SharedMemory is the dynamic shared memory of one CTA.
	SharedMemory unit.Bytes
	// Before is a kernel that runs before this one, or nil.
	Before *Kernel
	// Rounds is the type to which the kernel rounds A and B, 0 if it multiplies them as they are.
	Rounds gemm.DType
}

// Scratcher is a Program whose kernels need device memory beside the matrices and the workspace of a split: as much as
// Scratch says, at Call.Scratch, aligned to 256 bytes. What is there before a launch does not matter.
type Scratcher interface {
	Program
	Scratch(p gemm.Problem) unit.Bytes
}

// ReasonStages rejects a pipeline depth that a family does not have.
const ReasonStages arch.Reason = "stages"

// EpilogueSuffix is an epilogue in the name of a kernel, empty for none.
func EpilogueSuffix(e gemm.Epilogue) string {
	if e == (gemm.Epilogue{}) {
		return ""
	}
	return "_" + strings.ReplaceAll(e.String(), "+", "_")
}

// Formula is what a kernel with an epilogue computes, as its header says it.
func Formula(e gemm.Epilogue) string {
	sum := "alpha * A * B"
	if e.Scales {
		sum = "alpha * scale_a * scale_b * A * B"
	}
	if !e.Residual {
		sum += " + beta * C"
	}
	if e.Bias {
		sum += " + bias"
	}
	if e.Activation != gemm.Identity {
		sum = gemm.Epilogue{Activation: e.Activation}.String() + "(" + sum + ")"
	}
	if e.Residual {
		sum += " + R"
	}
	return "C = " + sum
}
