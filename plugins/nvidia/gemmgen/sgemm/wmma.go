package sgemm

import (
	"fmt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// fragment is the rows, columns and indices along K of a multiplication of math=wmma.
const fragment = 16

// wmmaAlign is the alignment of the addresses of matrices, in bytes. Source: CUDA C++ Programming Guide, "Warp Matrix
// Functions": load_matrix_sync, which also wants rows a multiple of 16 bytes apart.
const wmmaAlign = 32

// ReasonGuard rejects problems that math=wmma does not compute.
const ReasonGuard arch.Reason = "wmma_shape"

// tensor describes a kernel of math=wmma.
type tensor struct {
	warpsN int
	// converts says that A and B are fp32, which a kernel before this one rounds to fp16.
	converts bool
}

// layWMMA lays out a kernel of math=wmma: a warp for each 16×16 elements of C.
func (s *Spec) layWMMA(g *geometry) (reason arch.Reason, detail string) {
	c := &s.Config
	g.blockM, g.blockN, g.blockK, g.stages, g.threads = c.BlockM, c.BlockN, c.BlockK, c.NumStages, warpSize*c.NumWarps
	switch {
	case g.staging != stagingNone:
		return arch.ReasonModelRule, "math=wmma loads its fragments from global memory: set staging=none"
	case c.BlockM%fragment != 0, c.BlockN%fragment != 0, c.BlockK != fragment:
		return arch.ReasonAtomShape, fmt.Sprintf("tile %dx%dx%d: math=wmma has multiples of 16 by 16, and block_k 16",
			c.BlockM, c.BlockN, c.BlockK)
	case c.BlockM/fragment*c.BlockN/fragment != c.NumWarps:
		return arch.ReasonWarps, fmt.Sprintf("%d warps: math=wmma has one for each 16x16 of a %dx%d tile",
			c.NumWarps, c.BlockM, c.BlockN)
	}
	g.tensor = tensor{warpsN: c.BlockN / fragment, converts: s.DType == gemm.FP32}
	return "", ""
}

// lineRegisters is what the addresses of the lines of two fragments take, in registers per thread (ptxas 12.8).
const lineRegisters = 10

// resources counts registers: 8 sums, and two fragments of 8 each.
func (tensor) resources(threads int) Resources {
	r := Resources{
		Threads: threads, Accumulators: 8, Operands: 16, ThreadM: 1, ThreadN: 8, WarpM: fragment, WarpN: fragment,
	}
	r.limit(r.Accumulators + r.Operands + lineRegisters + otherRegisters)
	return r
}

// Guard returns the rung that computes a problem in place of a configuration with math=wmma, and why: its sizes are no
// multiples of 16, as the fragments are, or its rows are not aligned. No reason means that the configuration itself
// computes it.
func Guard(p *gemm.Problem, c gemm.Config) (instead Rung, reason string) {
	if choicesOf(&c).math != mathWMMA {
		return instead, ""
	}
	for _, x := range []struct {
		name string
		size int
	}{{"M", p.M}, {"N", p.N}, {"K", p.K}} {
		if x.size%fragment != 0 {
			reason = fmt.Sprintf("%s is %d, no multiple of %d", x.name, x.size, fragment)
			break
		}
	}
	call := gemmgen.NewCall(*p)
	a, b, out := call.Vectors(gemm.FP32)
	unaligned := out < widest || p.Batch > 1 && call.C.Stride*wordBytes%wmmaAlign != 0
	if p.DType == gemm.FP16 {
		unaligned = unaligned || min(a, b) < widest || p.Batch > 1 && (call.A.Stride|call.B.Stride)*2%wmmaAlign != 0
	}
	if reason == "" && unaligned {
		reason = fmt.Sprintf("rows are no multiples of %d bytes apart, or matrices of %d", widest, wmmaAlign)
	}
	if reason != "" {
		instead, _ = FindRung(RungPadded)
		instead.Config.GroupM = c.GroupM
	}
	return instead, reason
}

// accesses are the loads of fragments from global memory as ptxas makes them of wmma.load: four of 4 bytes for each
// operand, of eight lines of 16 bytes at a time. Where the lines of an operand run across K, it transposes them in
// registers (read in the machine code for sm_90, ptxas 12.8).
func (tensor) accesses(warps int) []Access {
	a := Access{
		Instruction: LoadGlobal, Operand: gemm.A, Bytes: wordBytes, Count: 4, Warps: warps, Lanes: warpSize,
	}
	for lane := range warpSize {
		a.Global[lane] = Place{Line: lane / 4, Byte: lane % 4 * wordBytes}
	}
	b := a
	b.Operand = gemm.B
	return []Access{a, b}
}
