package mma

import (
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// The shape of the peak kernel: the warps and the warp tile of the family's largest configurations.
const (
	PeakWarps              = 8
	peakTilesM, peakTilesN = 4, 8
	// PeakInputBytes is the operand data that each thread of a CTA reads once.
	PeakInputBytes = 4 * (4*peakTilesM + 2*peakTilesN)
)

// PeakOperations is the operations of a CTA in each turn of the loop, for operands of a type.
func PeakOperations(d gemm.DType) int {
	return 2 * PeakWarps * peakTilesM * peakTilesN * 16 * 8 * (stepBytes / d.Bytes())
}

// EmitPeak generates a kernel that only issues the matrix instruction of a type on operands in registers. No kernel of
// the family can exceed its rate. The parameter in is the address of PeakInputBytes per thread of one CTA: finite
// numbers, random for a realistic power draw. counters is the address of asm.Counters counters. turns is the length of
// the loop. Launch it with 32·PeakWarps threads per CTA and at least one CTA per SM.
func EmitPeak(d gemm.DType, t target.Target) (*ptx.Kernel, error) {
	return emitRate("mma_peak_", d, PeakWarps, peakTilesM, peakTilesN, 1, t)
}

// LatencyChain is how many instructions a turn of EmitLatency has.
const LatencyChain = 16

// EmitLatency generates a kernel of one warp in which each matrix instruction waits for the sums of the one before. Its
// parameters are as for EmitPeak.
func EmitLatency(d gemm.DType, t target.Target) (*ptx.Kernel, error) {
	return emitRate("mma_latency_", d, 1, 1, 1, LatencyChain, t)
}

// emitRate generates a loop over a block of tiles, each with its sums, a number of times.
func emitRate(name string, d gemm.DType, warps, tilesM, tilesN, times int, t target.Target) (*ptx.Kernel, error) {
	i := instructionOf(d)
	if i == nil || i.emit == nil {
		return nil, diag.Inputf("there is no matrix instruction for operands of %s", d).
			Do("use fp16, bf16, tf32, fp8, fp8_e5m2 or int8")
	}
	b := asm.New(name + d.String())
	sums := b.Sums(i.integer)
	b.Header("%s with %s operands in registers", i.name, d)
	b.Begin(32*warps, 1)
	b.Params(ptx.U64, "in", "counters")
	b.Params(ptx.U32, "turns")
	from, left := b.Param64("in"), b.Param32("turns")
	b.CvtaToGlobalU64(from, from)
	b.AddS64(from, from, b.MulWideU32(b.B64(), b.Special(ptx.TidX), ptx.Int(PeakInputBytes)))
	load := func(n, size, at int) []ptx.Operand {
		vectors := make([]ptx.Operand, n)
		for i := range vectors {
			v := b.Regs(size, b.B32)
			b.Load(v, ptx.Global(from, at+4*size*i))
			vectors[i] = b.Vec(v...)
		}
		return vectors
	}
	av, bv := load(tilesM, 4, 0), load(tilesN, 2, 16*peakTilesM)
	acc := sums.Zeros(4 * tilesM * tilesN)
	watch := b.Start("counters")
	b.Repeat("loop", left, func() {
		for n := range times * tilesN {
			for m := range tilesM {
				first := 4 * (n%tilesN*tilesM + m)
				v := b.Vec(acc[first : first+4]...)
				i.emit(b.Builder, v, av[m], bv[n%tilesN], v)
			}
		}
	})
	for _, r := range acc[1:] {
		sums.Add(acc[0], acc[0], r)
	}
	watch.Stop()
	bits := acc[0]
	if !i.integer {
		bits = b.MovB32Bits(b.B32(), acc[0])
	}
	watch.Keep(bits)
	b.Ret()
	return b.Build(t)
}
