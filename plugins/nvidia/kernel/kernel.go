// Package kernel describes kernels to the models that predict their times: the configurations of a family, the
// resources of a kernel, and its K loop. Each family is a package below this one. A model sees a family only through
// Family, and does not depend on its name.
package kernel

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// ElementBytes is the size of fp16 and bf16, the types of all families and models here.
const ElementBytes = 2

// Declared is what a description says of a kernel family.
type Declared interface {
	// Name is the family in gemm.Config.Kernel.
	Name() string
	// Axes are what the family's configurations have beyond the numbers that every configuration has; nil is none.
	Axes() []gemm.Axis
	// Types are the pairs of operand and result types that the family has kernels for.
	Types() []gemm.Types
	// Traits are what kernels of the family have in common. The result is shared.
	Traits() *Traits
}

// Family is a kernel family.
type Family interface {
	Declared
	// Sums says which kernels add up in an order that does not depend on M.
	Sums(sm *gpu.SM) arch.SumOrder
	// Space has the values of the candidate list on every axis.
	Space() arch.Space
	// Check returns the reason, with numbers, why a configuration is not a kernel of the family or does not fit the
	// device. need comes from Resources or from a compiler. An empty reason means that the kernel can be used.
	Check(d *gpu.Device, o Operands, c gemm.Config, need Resources) (reason arch.Reason, detail string)
	// Resources predicts the resources of a kernel on an SM, for any valid configuration. masked: block_k does not
	// divide K.
	Resources(d *gpu.Device, o Operands, c gemm.Config, masked bool) Resources
	// Loop describes the K loop of a kernel, for any valid configuration.
	Loop(d *gpu.Device, o Operands, c gemm.Config) Loop
	Widths
	// Copies describes the loads of a K step, for any valid configuration.
	Copies(d *gpu.Device, o Operands, c gemm.Config) Copies
	// Reduction describes how the sums of the CTAs that share a tile are added up. It is zero without a split of K.
	Reduction(p gemm.Problem, c gemm.Config) Reduction
	// Overhead is the cost of each K step besides loads and matrix instructions.
	Overhead() Overhead
}

// Traits are what kernels of a family have in common.
type Traits struct {
	// Pastes are the formats in which programs take the family's configurations, nil for none.
	Pastes []string
	// Groups and Nests: there are kernels for problems in groups, and for nested indices.
	Groups, Nests bool
	// Resident: CTAs stay on their SMs and take tiles in turns, fed by the copy engine. Persistent: the launch has at most
	// a CTA for each SM, which computes one tile after the other, without copying ahead from one to the next.
	Resident, Persistent bool
	// OneFrom is the split of K from which on all splits have the same kernel: what Check, Resources, Loop and Copies
	// return for one holds for the others. 0: each split has a kernel of its own.
	OneFrom int
	// SpaceOf, if set, has the values of the candidate list for a value of block_m: the product of all values of Space has
	// many configurations that are no kernel.
	SpaceOf func(blockM int) arch.Space
}

// KernelOf returns the configuration with the least split of K that has the same kernel as c.
func KernelOf(f Family, c gemm.Config) gemm.Config {
	if from := f.Traits().OneFrom; from > 0 {
		c.SplitK = min(c.SplitK, from)
	}
	return c
}

// Operands are the properties of a problem that a kernel is compiled for.
type Operands struct {
	// DType is the type of A and B, Out the type of C.
	DType, Out     gemm.DType
	AMajor, BMajor gemm.Major
	// WidthA, WidthB and WidthC are Widths.Width of the matrices. 0 is the widest.
	WidthA, WidthB, WidthC int
	// Activation is that of the problem's Flat.
	Activation gemm.Activation
}

// OperandsOf returns the operands of a problem, at the widest accesses.
func OperandsOf(p *gemm.Problem) Operands {
	return Operands{DType: p.DType, Out: p.Output(), AMajor: p.AMajor, BMajor: p.BMajor,
		Activation: p.Flat().Epilogue.Activation}
}

// Widths is the part of a Family that says how widely its kernels access a matrix.
type Widths interface {
	// Width is the width in bytes of the widest access to a matrix that the kernels of the family make for a problem, at
	// most gemm.MaxVector.
	Width(p gemm.Problem, o gemm.Operand) int
}

// WithWidths returns the operands with the widths that a family's kernels have for a problem.
func (o Operands) WithWidths(f Widths, p *gemm.Problem) Operands {
	o.WidthA, o.WidthB, o.WidthC = f.Width(*p, gemm.A), f.Width(*p, gemm.B), f.Width(*p, gemm.C)
	return o
}

// Epilogue returns an epilogue whose kernels are those of the operands.
func (o Operands) Epilogue() gemm.Epilogue { return gemm.Epilogue{Activation: o.Activation} }

// Widest returns the operands with the widest access where none is given.
func (o Operands) Widest() Operands {
	for _, w := range []*int{&o.WidthA, &o.WidthB, &o.WidthC} {
		if *w == 0 {
			*w = gemm.MaxVector
		}
	}
	return o
}

// Narrow reports whether a kernel for the operands loads less at a time than it could.
func (o Operands) Narrow() bool { return IsNarrow(o.WidthA) || IsNarrow(o.WidthB) }

// IsNarrow reports whether a width is less than the widest.
func IsNarrow(width int) bool { return width != 0 && width < gemm.MaxVector }

// Resources are the resources of a kernel on an SM.
type Resources struct {
	// Registers are the registers of a thread, as the assembler reports them.
	Registers int
	// SpillBytes is the local memory of a thread for spilled registers.
	SpillBytes int
	// SharedMemory is the shared memory of a CTA.
	SharedMemory unit.Bytes
}

// Loop describes the K loop of a kernel.
type Loop struct {
	// WGMMA: the matrix instruction has its operands in shared memory, as wgmma and tcgen05.mma do and mma.sync does not.
	WGMMA bool
	// Rows and Columns are those of such an instruction. No rows are wgmma's 64.
	Rows, Columns int
	// TensorMemory is the columns of tensor memory that a CTA has for its sums, 0 if they are in registers.
	TensorMemory int
	// Multiplies is the operand type of the multiplying instruction. It differs from the type of the matrices if they
	// are converted in registers. FP32 stands for FMA instructions.
	Multiplies gemm.DType
	// Conversions are the instructions that convert a register of operands before it is multiplied.
	Conversions int
	// WarpsM, WarpsN and WarpsK are the warp grid, each at least 1. WarpsK warps share a part of the tile and divide
	// its K steps.
	WarpsM, WarpsN, WarpsK int
	// Serial: each matrix instruction waits for the one before, and the copies wait for the last. Interleaved: the
	// addresses of copies are computed between the copies, and part of them waits.
	Serial, Interleaved bool
	// LoadWaits is how often a K step waits for loads that pass through registers.
	LoadWaits int
	// LateCopies: a K step issues its copies behind its matrix instructions. They go into the buffer that these read, or
	// the compiler has serialised the instructions.
	LateCopies bool
	// RepeatM and RepeatN: for each row or column outside the matrix, a tile reads a row of A, or a column of B, again.
	// They are contiguous along K, so that all SMs read the same cache lines.
	RepeatM, RepeatN bool
	// Sharers are the CTAs of a cluster that share the copies of B, SharersA those that share the copies of A, 0 or 1 if
	// there is no cluster.
	Sharers, SharersA int
	// Streams: all CTAs share the tiles that fill no wave, along K.
	Streams bool
	// Apart is one more than the sums of parts of K, for each sum of a tile, that wait in memory until they are added in a
	// tree. The CTAs of a tile share them. 0 is none.
	Apart float64
	// Latency is the number of cycles of a K step in which the tensor cores wait. It comes on top of Overhead.Latency.
	Latency float64
	// StoreBytes is what a thread stores of the output at a time, 0 if it is as wide as Operands.WidthC.
	StoreBytes int
	// Wraps: rows and columns outside the matrix start again at its first. Otherwise they repeat one of them.
	Wraps bool
}

// Copies are the loads of a thread from global memory in each K step.
type Copies struct {
	// CountA and CountB are their numbers, at least 1. BytesA and BytesB are the bytes of each.
	CountA, CountB int
	BytesA, BytesB int
	// AsyncA and AsyncB: they are asynchronous copies to shared memory, ahead of their use. Otherwise the data pass
	// through registers.
	AsyncA, AsyncB bool
	// TransposedA and TransposedB: the elements of a line of the matrix go to different rows in shared memory. The
	// writes of a warp then conflict.
	TransposedA, TransposedB bool
}

// Reduction is the cost of adding up the sums of the CTAs that share a tile.
type Reduction struct {
	// Workspace is what the CTAs write of their sums. It is read once.
	Workspace unit.Bytes
	// Launches are the launches after the multiplication.
	Launches int
}

// Overhead is the cost of each K step of a family's kernels besides loads and matrix instructions.
type Overhead struct {
	// Slots are the instructions of a warp. Latency are the cycles of waits and barriers if the matrix instruction is
	// mma.sync.
	Slots, Latency model.Quantity
}

// Describe describes families as an arch.Description lists them. Of their types it has those that the model takes.
func Describe[F Declared](families []F, takes func(gemm.Types) bool) (declared []arch.Family) {
	for _, f := range families {
		one := arch.Family{Name: f.Name(), Axes: f.Axes(), Pastes: f.Traits().Pastes}
		for _, t := range f.Types() {
			if takes(t) {
				one.Types = append(one.Types, t)
			}
		}
		declared = append(declared, one)
	}
	return declared
}

// Find returns the family of this name. An empty name means the first family. A model without the family gives the
// error.
func Find[F interface{ Name() string }](d *arch.Description, families []F, name string) (family F, err error) {
	for i, f := range families {
		if f.Name() == name || name == "" && i == 0 {
			return f, nil
		}
	}
	_, err = d.Kernel(name)
	return family, err
}

// Names lists the names of families.
func Names[F interface{ Name() string }](families []F) []string {
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.Name()
	}
	return names
}

// Limits returns what the device has for a generated kernel.
func Limits(d *gpu.Device) gemmgen.Limits {
	return gemmgen.Limits{
		Target: d.SM.Target, SharedMemory: d.SharedMemory,
		RegistersPerThread: d.RegistersPerThread, RegisterFile: d.RegisterFile, RegisterGranule: d.SM.RegisterGranule,
	}
}

// CheckShared rejects a kernel that needs more shared memory than a CTA of a device may use.
func CheckShared(d *gpu.Device, need unit.Bytes) (arch.Reason, string) {
	return gemmgen.CheckShared(d.SharedMemory, need)
}
