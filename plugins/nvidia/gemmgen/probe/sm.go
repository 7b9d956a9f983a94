package probe

import (
	"fmt"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Empty generates a kernel that does nothing.
func Empty(t target.Target) (*ptx.Kernel, error) {
	b := newKernel("empty", 32)
	b.Ret()
	return b.Build(t)
}

// FMA has FMAThreads threads, each with fmaChains sums, and FMAOperations operations per turn and CTA.
const (
	FMAThreads    = 512
	fmaChains     = 16
	fmaTimes      = 32
	FMAOperations = 2 * FMAThreads * fmaChains * fmaTimes
)

// FMA generates a kernel that only issues multiply-adds of fp32 registers. The parameter in is the address of 8 bytes
// per thread. Parameters: in, counters, turns.
func FMA(t target.Target) (*ptx.Kernel, error) {
	b := newLooped("fma", FMAThreads)
	from := b.from
	b.CvtaToGlobalU64(from, from)
	b.MadWideU32(from, b.Special(ptx.TidX), ptx.Int(8), from)
	factor := b.Regs(2, b.F32)
	b.Load(factor, ptx.Global(from, 0))
	sums := b.Sums(false).Zeros(fmaChains)
	watch := b.Start("counters")
	b.Repeat("loop", b.left, func() {
		for range fmaTimes {
			for _, r := range sums {
				b.FmaF32(r, r, factor[0], factor[1])
			}
		}
	})
	watch.Stop()
	for _, r := range sums[1:] {
		b.AddF32(sums[0], sums[0], r)
	}
	watch.Keep(b.MovB32Bits(b.B32(), sums[0]))
	b.Ret()
	return b.Build(t)
}

// Loads has LoadsThreads threads per CTA and LoadsTurn loads per thread and turn, from LoadsBytes of memory.
const (
	LoadsThreads = 512
	loadsEach    = 4
	loadsTimes   = 4
	LoadsTurn    = loadsEach * loadsTimes
	LoadsBytes   = loadsEach * LoadsThreads * 16
)

// LoadPattern is what the loads of Loads read.
type LoadPattern struct {
	// Global reads through L1 what fits there, otherwise shared memory is read.
	Global bool
	// Bytes is the size of an access: 4 or 16.
	Bytes int
	// Broadcast gives all threads of a warp the same address, otherwise they read neighbours.
	Broadcast bool
}

// String names the pattern.
func (p LoadPattern) String() string {
	space, lanes := "shared", "neighbours"
	if p.Global {
		space = "l1"
	}
	if p.Broadcast {
		lanes = "broadcast"
	}
	return fmt.Sprintf("%s_%dB_%s", space, p.Bytes, lanes)
}

// Loads generates a kernel that only loads, without bank conflicts. Parameters: in, of LoadsBytes, counters, turns.
func Loads(p LoadPattern, t target.Target) (*ptx.Kernel, error) {
	if p.Bytes != 4 && p.Bytes != 16 {
		return nil, diag.Inputf("loads of %d bytes", p.Bytes).Do("use 4 or 16")
	}
	b := newLooped("loads_"+p.String(), LoadsThreads)
	from, tid := b.from, b.Special(ptx.TidX)
	b.CvtaToGlobalU64(from, from)
	memory := b.SharedVar("memory", LoadsBytes, 128)
	shared := b.MovU32(b.B32(), memory)
	own := b.Regs(4, b.B32)
	wide := b.At(tid, 16, from)
	for i := range loadsEach {
		b.Load(own, ptx.Global(wide, i*16*LoadsThreads))
		for j, r := range own {
			b.StSharedB32(ptx.Shared(b.Mad(tid, 16, shared), i*16*LoadsThreads+4*j), r)
		}
	}
	index := tid
	if p.Broadcast {
		index = b.And(tid, -32)
	}
	// The offset moves by a cache line, so that no load can be taken out of the loop or merged with another.
	offset := b.MulLoS32(b.B32(), index, ptx.Int(p.Bytes))
	sums := b.Zeros(4)
	watch := b.Start("counters")
	b.Repeat("loop", b.left, func() {
		for range loadsTimes {
			address := ptx.Shared
			var at ptx.Operand
			if p.Global {
				address, at = ptx.Global, b.At(offset, 1, from)
			} else {
				at = b.Add(shared, offset)
			}
			for i := range loadsEach {
				words := b.Regs(p.Bytes/4, b.B32)
				b.Load(words, address(at, i*p.Bytes*LoadsThreads))
				for j, w := range words { // added without carry
					b.XorB32(sums[j], sums[j], w)
				}
			}
			b.AddS32(offset, offset, ptx.Int(LineBytes))
			b.AndB32(offset, offset, ptx.Int(p.Bytes*LoadsThreads-1))
		}
	})
	watch.Stop()
	return end(b.Builder, watch, sums, t)
}

// A warpgroup of Wgmma has WarpgroupThreads threads and multiplies 64×256. The warpgroups of a CTA share the second
// operand. A turn has WgmmaSteps multiplications along K.
const (
	WarpgroupThreads = 128
	WgmmaSteps       = 4
	wgmmaM, wgmmaN   = 64, 256
	wgmmaRow         = 128 // bytes of a row: the swizzle's
)

// WgmmaBytes is the size of the operands of so many warpgroups, in the buffer and in shared memory.
func WgmmaBytes(warpgroups int) int { return (warpgroups*wgmmaM + wgmmaN) * wgmmaRow }

// The halves of a matrix descriptor of a tile contiguous along K, with rows of 128 bytes in the 128-byte swizzle and
// groups of 8 rows one behind the other. Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", matrix
// descriptor and canonical layouts.
const (
	descriptorLow  = 1 << 16
	descriptorHigh = 1<<30 | 8*wgmmaRow/16
)

// WgmmaOperations is the operations of a multiplication of one warpgroup: 32 bytes of each row along K.
func WgmmaOperations(d gemm.DType) int { return 2 * wgmmaM * wgmmaN * (32 / d.Bytes()) }

// Wgmma generates a kernel whose warpgroups only multiply from shared memory, of which it needs WgmmaBytes. Each
// multiplication adds to the sums of the one before. wait says that each is waited for before the next is issued.
// Otherwise a turn is issued while the one before is pending. The parameter in is the address of WgmmaBytes of finite
// numbers. Parameters: in, counters, turns. It needs the target sm_90a.
func Wgmma(d gemm.DType, warpgroups int, wait bool, t target.Target) (*ptx.Kernel, error) {
	name := "chained"
	if wait {
		name = "waited"
	}
	b := newLooped(fmt.Sprintf("wgmma_%d_%s_%s", warpgroups, name, d), WarpgroupThreads*warpgroups)
	operands, integer := wgmmaTypes[d], d == gemm.INT8
	if operands == "" {
		return nil, diag.Inputf("wgmma has no operands of %s", d).Do("use fp16, bf16, tf32, fp8, fp8_e5m2 or int8")
	}
	tid := b.Special(ptx.TidX)
	b.CvtaToGlobalU64(b.from, b.from)
	smem := b.MovU32(b.B32(), b.DynamicShared("smem", 1024))
	copyIn(b.Builder, b.from, smem, tid, warpgroups)
	b.FenceProxyAsyncShared()
	group := b.ShflSyncIdxB32(b.B32(), b.Shr(tid, 7), ptx.Int(0)) // the same in all lanes, as the assembler then knows
	var transposed []ptx.Operand                                  // neither is
	if d.Bytes() == 2 {
		transposed = []ptx.Operand{ptx.Int(0), ptx.Int(0)}
	}
	sums := b.Sums(integer).Zeros(wgmmaN / 2)
	base := b.Shr(b.And(smem, 0x3FFFF), 4)
	high := b.MovB32(b.B32(), ptx.Int(descriptorHigh))
	always := b.SetpEqS32(b.Pred(), tid, tid)
	descriptor := func(at ptx.Operand, step int) ptx.Operand {
		return b.MovB64Pack(b.B64(), b.Vec(b.Add(at, ptx.Int(descriptorLow+2*step)), high))
	}
	atA := b.Mad(group, wgmmaM*wgmmaRow/16, base)
	atB := b.Add(base, ptx.Int(warpgroups*wgmmaM*wgmmaRow/16))
	watch := b.Start("counters")
	b.Repeat("loop", b.left, func() {
		b.WgmmaFenceSyncAligned()
		for step := range WgmmaSteps {
			b.Wgmma(wgmmaN, operands, b.Vec(sums...), descriptor(atA, step), descriptor(atB, step), always, transposed...)
			if wait {
				b.WgmmaCommitGroupSyncAligned()
				b.WgmmaWaitGroupSyncAligned(ptx.Int(0))
				b.WgmmaFenceSyncAligned()
			}
		}
		if !wait {
			b.WgmmaCommitGroupSyncAligned()
			b.WgmmaWaitGroupSyncAligned(ptx.Int(1))
		}
	})
	b.WgmmaWaitGroupSyncAligned(ptx.Int(0))
	watch.Stop()
	kept := b.MovB32(b.B32(), ptx.Int(0))
	for _, r := range sums {
		bits := r
		if !integer {
			bits = b.MovB32Bits(b.B32(), r)
		}
		b.XorB32(kept, kept, bits)
	}
	watch.Keep(kept)
	b.Ret()
	return b.Build(t)
}

// copyIn copies the operands to shared memory.
func copyIn(b asm.Builder, from, smem, tid ptx.Operand, warpgroups int) {
	words := b.Regs(2, b.B32)
	to := b.Mad(tid, 8, smem)
	at := b.At(tid, 8, from)
	for done := 0; done < WgmmaBytes(warpgroups); done += 8 * WarpgroupThreads * warpgroups {
		b.Load(words, ptx.Global(at, done))
		b.Store(ptx.Shared(to, done), words)
	}
}

// wgmmaTypes are the operands of the multiplications in PTX.
var wgmmaTypes = map[gemm.DType]string{
	gemm.FP16: "f16", gemm.BF16: "bf16", gemm.FP8: "e4m3", gemm.FP8E5M2: "e5m2", gemm.TF32: "tf32", gemm.INT8: "s8",
}
