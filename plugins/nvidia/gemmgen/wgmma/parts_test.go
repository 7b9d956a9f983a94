package wgmma

import (
	"fmt"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// TestParts compares parts of kernels, as kernels of their own, with the texts that package emulated runs.
// After -update, run the tests of both.
func TestParts(t *testing.T) {
	golden(t, "part-walk", walker(t).Text)
	for _, config := range []string{
		"64x16x64,warps=8,stages=2", "8x64x128,warps=8,stages=2", "128x32x64,warps=12,stages=2,cluster=2",
		"64x16x64,warps=8,stages=2,cluster_n=2", "64x32x64,warps=8,stages=4,cluster=4x2",
	} {
		golden(t, "part-order-"+config, orderer(t, spec(t, config, "kk", gemm.FP16, gemm.FP32)).Text)
	}
	for _, config := range []string{
		"64x16x64,warps=8,stages=2,stream_k=1", "128x16x64,warps=12,stages=2,stream_k=1,cluster=2",
		"192x32x64,warps=16,stages=2,stream_k=1", "64x16x64,warps=8,stages=2,split=3",
		"128x16x64,warps=8,stages=2,split=4,cluster=2", "64x16x64,warps=8,stages=2,split=3,cluster_n=2",
		"64x16x64,warps=8,stages=2,stream_k=1,cluster_n=2", "16x64x64,warps=8,stages=2,split=2,cluster_n=2",
		"64x16x64,warps=8,stages=4,split=2,cluster=2x2", "64x16x64,warps=8,stages=2,split=4,tree=4",
		"16x64x64,warps=8,stages=2,split=2,cluster_n=2,tree=8", "128x32x64,warps=12,stages=2,tree=8",
		"64x256x64,warps=8,stages=2,tree=8", "64x256x64,warps=8,stages=4,tree=8",
	} {
		s := spec(t, config, "kk", gemm.FP16, gemm.FP32)
		s.TilesC = config == "64x256x64,warps=8,stages=4,tree=8" // some sums wait where C is staged
		golden(t, "part-reduce-"+config, reducer(t, s).Text)
	}
	for _, config := range []string{
		"24x64x64,warps=8,stages=2", "40x192x64,warps=16,stages=2", "104x128x64,warps=8,stages=2",
		"8x256x64,warps=12,stages=2",
	} {
		for i := range 4 {
			s := spec(t, config, "kk", gemm.FP16, gemm.FP32)
			s.Adds, s.Epilogue.Bias = i&1 > 0, i&2 > 0
			golden(t, fmt.Sprintf("part-store-%s,adds=%t,bias=%t", config, s.Adds, s.Epilogue.Bias), storer(t, s).Text)
		}
	}
	for _, config := range []string{"128x32x64,warps=12,stages=2", "8x256x64,warps=12,stages=2"} {
		for _, epilogue := range []string{
			"silu_gated", "bias+gelu_gated", "gelu_tanh_gated+residual", "bias+gelu+residual", "residual",
			"scales", "scales+bias_fp32+silu_gated", "scales+bias_fp32+residual",
		} {
			for _, out := range []gemm.DType{gemm.FP32, gemm.BF16} {
				s := spec(t, config, "kk", gemm.BF16, out)
				var err error
				if s.Epilogue, err = gemm.ParseEpilogue(epilogue); err != nil {
					t.Fatal(err)
				}
				if s.TilesC = out == gemm.BF16; s.TilesC && !s.Epilogue.Residual { // R is read in pairs
					continue
				}
				golden(t, fmt.Sprintf("part-store-%s,%s,%s", config, epilogue, out), storer(t, s).Text)
			}
		}
	}
}

// mostThreads is more than a CTA has.
const mostThreads = 1024

// reducer is the part of a kernel that walks over its tiles and adds up the parts along K. In place of products, its
// sums say which blocks they are of. A lane has four of them: the number of blocks, the same times its thread, and
// twice a number that rounding makes depend on the order of additions. Of each complete tile, the lane writes to out
// how often it did so, and its last four. If another four are not as these, it writes another second number.
func reducer(t *testing.T, s Spec) *ptx.Kernel {
	t.Helper()
	g, reason, detail := s.layout()
	must.Need(t, reason == "", "%v %v", reason, detail)
	e := newEmitter("reducer", s, g)
	e.Params(ptx.U64, "out")
	e.Params(ptx.U32, "k_blocks", "tiles_m", "tiles_n", "tiles", "group_m", "m", "n", "last_m", "last_n",
		"blocks_per_split", "per_split", "splits", "whole", "share", "shared")
	e.Params(ptx.U64, "partials", "counters")
	if e.levels() > 0 {
		e.Params(ptx.U32, "blocks_per_leaf")
	}
	e.ranks()
	tid := e.Special(ptx.TidX)
	e.thread, e.consumer = e.And(tid, warpgroup-1), e.Shr(tid, 7)
	if g.inShared > 0 {
		e.smem = e.MovU32(e.B32(), e.DynamicShared("smem", swizzleBytes))
	}
	sums := make([][]ptx.Operand, g.tiles)
	for i := range sums {
		sums[i] = e.Regs(g.columns/2, e.F32)
	}
	e.eachTile("reduce", func(t tile) {
		done := e.Label("done")
		multiply := func(leaf tile, number ptx.Operand) {
			count, odd := e.F32(), e.F32()
			e.CvtF32S32(count, leaf.blocks)
			at := e.Add(t.k0, ptx.Int(1))
			if e.levels() > 0 {
				e.MadLoS32(at, number, e.Mul(leaf.blocks, ptx.Int(s.Config.BlockK)), at)
			}
			e.CvtF32S32(odd, at)
			e.MulF32(odd, odd, ptx.Float(0.1))
			for i, v := range slices.Concat(sums...) {
				if i%4 == 1 { // of each four another
					e.CvtF32S32(v, e.Mul(leaf.blocks, e.Add(tid, ptx.Int(i/4*mostThreads))))
					continue
				}
				e.MovF32(v, []ptx.Operand{count, {}, odd, odd}[i%4])
			}
		}
		if e.levels() > 0 {
			e.addLeaves(t, sums, multiply)
		} else {
			multiply(t, ptx.Operand{})
		}
		if g.cluster > 1 {
			e.If(t.outside).Bra(done)
		}
		if e.splits() || e.streams() {
			e.reduce(t, sums, done)
		}
		// A lane's place: its tile by row, column and matrix, then its thread.
		at, to, n := e.B32(), e.B64(), e.F32()
		e.MadLoS32(at, t.batch, e.Param32("tiles_m"), t.row)
		e.MadLoS32(at, at, ptx.Int(g.clusterM), e.rankM)
		e.MadLoS32(at, at, e.Param32("tiles_n"), t.column)
		e.MadLoS32(at, at, ptx.Int(g.clusterN), e.rankN)
		e.MadLoS32(at, at, ptx.Int(warpgroup*g.consumers), tid)
		e.CvtaToGlobalU64(to, e.Param64("out"))
		e.MadWideU32(to, at, ptx.Int(20), to)
		e.LdGlobalF32(n, ptx.Global(to, 0))
		e.AddF32(n, n, ptx.Float(1))
		e.StGlobalF32(ptx.Global(to, 0), n)
		all := slices.Concat(sums...)
		last := all[len(all)-4:]
		wrong := e.MovF32(e.F32(), ptx.Float(0))
		for i := 1; i < len(all); i += 4 {
			e.FmaF32(all[i], all[i-1], ptx.Float(float32(-i/4*mostThreads)), all[i])
		}
		for i := 1; i < len(all)-4; i += 4 {
			e.FmaF32(all[i], last[1], ptx.Float(-1), all[i])
			e.FmaF32(wrong, all[i], all[i], wrong)
		}
		e.AddF32(last[1], last[1], wrong)
		for i, v := range last {
			e.StGlobalF32(ptx.Global(to, 4+4*i), v)
		}
		e.Place(done)
	})
	e.Ret()
	return must.Get(e.Build(hopper.Target))(t)
}

// orderer is the part of a kernel that walks over its tiles and the blocks along K of each. It writes to out, by tile
// and turn, one more than the first index of the block.
func orderer(t *testing.T, s Spec) *ptx.Kernel {
	t.Helper()
	g, reason, detail := s.layout()
	must.Need(t, reason == "", "%v %v", reason, detail)
	e := newEmitter("order", s, g)
	e.Params(ptx.U64, "out")
	e.Params(ptx.U32, "k_blocks", "tiles_m", "tiles_n", "tiles", "group_m", "m", "n", "last_m", "last_n", "skew")
	e.ranks()
	e.eachTile("order", func(t tile) {
		at, to := e.B32(), e.B64()
		e.MadLoS32(at, t.batch, e.Param32("tiles_m"), t.row)
		e.MadLoS32(at, at, ptx.Int(g.clusterM), e.rankM)
		e.MadLoS32(at, at, e.Param32("tiles_n"), t.column)
		e.MadLoS32(at, at, ptx.Int(g.clusterN), e.rankN)
		e.MulLoS32(at, at, e.Param32("k_blocks"))
		e.CvtaToGlobalU64(to, e.Param64("out"))
		e.MadWideU32(to, at, ptx.Int(4), to)
		e.alongK(t, func(k ptx.Operand) {
			e.StGlobalB32(ptx.Global(to, 0), e.Add(k, ptx.Int(1)))
			e.AddS64(to, to, ptx.Int(4))
		})
	})
	e.Ret()
	return must.Get(e.Build(hopper.Target))(t)
}

// walker is the instructions that share tiles among clusters. Of each part it writes the numbers to out.
func walker(t *testing.T) *ptx.Kernel {
	t.Helper()
	spec := spec(t, "64x16x64,warps=8,stages=2,stream_k=1", "kk", gemm.FP16, gemm.FP32)
	const words = 11
	g, reason, _ := spec.layout()
	must.Need(t, reason == "", "%v", reason)
	e := newEmitter("walk", spec, g)
	e.Params(ptx.U64, "out")
	e.Params(ptx.U32, "k_blocks", "whole", "share", "shared", "most")
	at, to := e.Special(ptx.CtaidX), e.B64()
	e.rank = e.And(at, 0)
	row := e.B32()
	e.MulLoS32(row, at, e.Param32("most"))
	e.CvtaToGlobalU64(to, e.Param64("out"))
	e.MadWideU32(to, row, ptx.Int(4*words), to)
	st := e.newStream(at)
	loop, end := e.Label("loop"), e.Label("end")
	e.Place(loop)
	e.If(e.ended(st, at)).Bra(end)
	var one tile
	in := e.streamed(st, at, &one)
	p, partial := e.streamParts(one), e.B32()
	e.SelpB32(partial, ptx.Int(1), ptx.Int(0), one.partial)
	for i, v := range [words]ptx.Operand{
		in, one.k0, one.blocks, partial, p.mine, p.first, p.next, p.count, p.tile, p.arrives, p.all,
	} {
		e.StGlobalB32(ptx.Global(to, 4*i), v)
	}
	e.AddS64(to, to, ptx.Int(4*words))
	e.AddS32(at, at, e.Special(ptx.NctaidX))
	e.BraUni(loop)
	e.Place(end)
	e.Ret()
	return must.Get(e.Build(hopper.Target))(t)
}

// storer is the part of a kernel that stores a tile, of Cᵀ if it is turned, whose first element is row m0, column n0 of
// A·B. In place of products, a sum is 1000 times its row of the tile or the transposed tile, plus its column. Source of
// which these are: PTX ISA, the accumulator of wgmma, "D fragment". What the copy engine would store, threads do.
func storer(t *testing.T, s Spec) *ptx.Kernel {
	t.Helper()
	g, reason, detail := s.layout()
	must.Need(t, reason == "", "%v %v", reason, detail)
	e := newEmitter("storer", s, g)
	e.Params(ptx.U64, "c")
	e.Params(ptx.S64, "ldc", "stride_c")
	e.Params(ptx.S32, "m", "n")
	e.Params(ptx.F32, "alpha", "beta")
	e.Params(ptx.U64, "bias", "r")
	if s.Epilogue.Scales {
		e.Params(ptx.U64, "scale_a", "scale_b")
		e.Params(ptx.U32, "step_a", "step_b")
	}
	e.Params(ptx.S32, "m0", "n0")
	tid := e.Special(ptx.TidX)
	e.thread, e.consumer = e.And(tid, warpgroup-1), e.Shr(tid, 7)
	place := tile{m0: e.B32(), n0: e.B32(), batch: e.B32()}
	e.MovB32(place.m0, e.Param32("m0"))
	e.MovB32(place.n0, e.Param32("n0"))
	e.MovB32(place.batch, ptx.Int(1))
	lane := e.And(tid, 31)
	firstTiles, apart := g.tiles, 0
	if g.turned { // of a gate, the column that it is multiplied with lies half a tile further on
		firstTiles, apart = g.tilesC, g.blockC-tileM*g.tilesC
	}
	row := e.Mad(e.consumer, tileM*firstTiles, e.Mad(e.Shr(e.thread, 5), 16, e.Shr(lane, 2)))
	column := e.Shl(e.And(lane, 3), 1)
	sums := make([][]ptx.Operand, g.tiles)
	for i := range sums {
		sums[i] = e.Regs(g.columns/2, e.F32)
		for j, v := range sums[i] { // of each 8 columns two neighbours, and the same 8 rows below
			at := e.Add(row, ptx.Int(tileM*i+i/firstTiles*apart+8*(j/2%2)))
			e.CvtF32S32(v, e.Mad(at, 1000, e.Add(column, ptx.Int(j/4*8+j%2))))
		}
	}
	e.store(place, sums, func(t tile, sums [][]ptx.Operand) {
		w := e.newWriter("c", t)
		w.each(sums, w.single)
	})
	e.Ret()
	return must.Get(e.Build(hopper.Target))(t)
}
