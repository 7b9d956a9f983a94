package mma

import (
	"fmt"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// reduceWarps adds the sums of the warps that share an output tile, in the order of their K slices, into those of slice
// 0. Slices 1 and up pass theirs through shared memory, each register of a slice's threads side by side.
func (e *emitter) reduceWarps() {
	g := e.g
	e.Comment("sum over the K slices of the warps")
	slice := 32 * g.warpsM * g.warpsN // threads
	receive, received := e.Label("receive"), e.Label("received")
	isFirst := e.Pred()
	e.SetpEqS32(isFirst, e.warpK, ptx.Int(0))
	at := e.Mad(e.And(e.tid, slice-1), 4, e.smem)
	e.If(isFirst).Bra(receive)
	registers := 4 * len(e.acc)
	to := e.Mad(e.warpK, registers*slice*4, at)
	for i := range registers {
		e.StSharedF32(ptx.Shared(to, (i-registers)*slice*4), e.acc[i/4][i%4])
	}
	e.Place(receive)
	e.BarSync(ptx.Int(0))
	e.IfNot(isFirst).Bra(received)
	x := e.F32()
	for s := range g.warpsK - 1 {
		for i := range registers {
			e.LdSharedF32(x, ptx.Shared(at, (s*registers+i)*slice*4))
			e.AddF32(e.acc[i/4][i%4], e.acc[i/4][i%4], x)
		}
	}
	e.Place(received)
	e.BarSync(ptx.Int(0))
}

// reduceSplits leaves the sums of all splits of the output tile in the CTA that arrives last; the others end. Every CTA
// writes its sums to the workspace and counts itself; the last one adds them up in the order of the splits, so that the
// result does not depend on the order of arrival. It sets the counter back to zero for the next launch.
func (e *emitter) reduceSplits() {
	g := e.g
	e.Comment("sum over the splits of K, by the CTA that arrives last")
	slice := 32 * g.warpsM * g.warpsN // threads
	splits := e.Special(ptx.NctaidY)
	slot := e.B32() // the output tile, counted over the batch
	e.MulLoS32(slot, e.Param32(e.pTilesM), e.Param32(e.pTilesN))
	e.MadLoS32(slot, e.Special(ptx.CtaidZ), slot, e.Special(ptx.CtaidX))

	// The workspace holds a block per tile and split, in it the four sums of each mma tile of all threads side by side.
	own, tilePartials := e.B64(), e.B64()
	e.CvtaToGlobalU64(tilePartials, e.Param64(e.pPartials))
	block := e.s.Config.BlockM * e.s.Config.BlockN * 4
	firstBlock := e.B64()
	e.MulWideU32(firstBlock, slot, splits)
	e.MadLoS64(tilePartials, firstBlock, ptx.Int(block), tilePartials)
	e.AddS64(tilePartials, tilePartials, e.Wide(e.Shl(e.And(e.tid, slice-1), 4)))
	e.MadLoS64(own, e.Wide(e.Special(ptx.CtaidY)), ptx.Int(block), tilePartials)
	isFirst := e.Pred()
	if g.warpsK > 1 {
		e.SetpEqS32(isFirst, e.warpK, ptx.Int(0))
	}
	for i, v := range e.accVec {
		if g.warpsK > 1 {
			e.If(isFirst)
		}
		e.StGlobalV4F32(ptx.Global(own, i*slice*16), v)
	}
	e.FenceAcqRelGpu()
	e.BarSync(ptx.Int(0))

	counter, arrived, last := e.B64(), e.B32(), e.B32()
	e.CvtaToGlobalU64(counter, e.Param64(e.pCounters))
	offset := e.B64()
	e.MulWideU32(offset, slot, ptx.Int(4))
	e.AddS64(counter, counter, offset)
	counted := e.Label("counted")
	isThread0 := e.Pred()
	e.SetpEqS32(isThread0, e.tid, ptx.Int(0))
	e.IfNot(isThread0).Bra(counted)
	e.AtomAddU32(arrived, ptx.Global(counter, 0), ptx.Int(1))
	e.StSharedB32(ptx.Shared(e.smem, 0), arrived)
	e.Place(counted)
	e.BarSync(ptx.Int(0))
	e.LdSharedB32(arrived, ptx.Shared(e.smem, 0))
	e.AddS32(last, splits, ptx.Int(-1))
	isLast := e.Pred()
	e.SetpEqS32(isLast, arrived, last)
	e.IfNot(isLast).BraUni(e.exit)
	e.If(isThread0).StGlobalB32(ptx.Global(counter, 0), ptx.Int(0))
	e.FenceAcqRelGpu()
	e.BarSync(ptx.Int(0)) // the arrival count in shared memory is read before the epilogue overwrites it

	for _, acc := range e.acc {
		for _, r := range acc {
			e.MovF32(r, ptx.Float(0))
		}
	}
	again := e.Label("add_split")
	next := e.Pred()
	v := e.Regs(4, e.F32)
	vector := e.Vec(v...)
	e.Place(again)
	for i, acc := range e.acc {
		e.LdGlobalV4F32(vector, ptx.Global(tilePartials, i*slice*16))
		for j, r := range acc {
			e.AddF32(r, r, v[j])
		}
	}
	e.AddS64(tilePartials, tilePartials, ptx.Int(block))
	e.AddS32(splits, splits, ptx.Int(-1))
	e.SetpGtS32(next, splits, ptx.Int(0))
	e.If(next).BraUni(again)
}

// epilogue writes C = alpha·sums + beta·C. Each warp passes its tile through its own part of shared memory, 16 rows at a
// time, so that a lane gets neighbours in a row and writes them at once, and the lanes of a row write side by side. C is
// not read when beta is zero.
func (e *emitter) epilogue() {
	g := e.g
	e.Comment("epilogue")
	if g.warpsK > 1 {
		idle := e.Pred()
		e.SetpNeS32(idle, e.warpK, ptx.Int(0))
		e.If(idle).Bra(e.exit)
	}
	size := e.s.Out.Bytes()
	width := min(e.s.AlignC/size, 16/size) // elements per store
	perRow := g.warpN / width              // stores per row
	across, rowStep := max(1, perRow/32), max(1, 32/perRow)
	active := ptx.Operand{}

	// Where the accumulators go: sums 0 and 1 of a lane lie in row lane/4, columns 2·(lane mod 4) and the next, sums 2 and
	// 3 eight rows below.
	base := e.Mad(e.warp, g.stagingBytes, e.smem)
	scatter := e.Mad(e.Shr(e.lane, 2), g.stagingStride*4, base)
	scatter = e.Mad(e.And(e.lane, 3), 8, scatter)
	// Where the lane reads and writes rows.
	row, column := e.B32(), e.B32()
	if perRow >= 32 {
		e.MovB32(row, ptx.Int(0))
		e.ShlB32(column, e.lane, ptx.Int(asm.Log2(width)))
	} else {
		e.ShrU32(row, e.lane, ptx.Int(asm.Log2(perRow)))
		e.ShlB32(column, e.And(e.lane, perRow-1), ptx.Int(asm.Log2(width)))
	}
	staged := row
	if rowStep > 16 {
		active = e.Pred()
		e.SetpLtS32(active, row, ptx.Int(16))
		staged = e.And(row, 15) // idle lanes read too, and nothing lies behind the last warp's part
	}
	gather := e.Mad(staged, g.stagingStride*4, base)
	gather = e.Mad(column, 4, gather)
	row = e.Mad(e.warpM, g.warpM, e.Add(row, e.m0))
	column = e.Mad(e.warpN, g.warpN, e.Add(column, e.n0))
	rowsLeft, columnsLeft := e.Sub(e.m, row), e.Sub(e.n, column)
	inRow := make([]ptx.Operand, across)
	for i := range inRow {
		inRow[i] = e.Pred()
		e.SetpGtS32(inRow[i], columnsLeft, ptx.Int(32*i*width))
		if active != (ptx.Operand{}) {
			e.AndPred(inRow[i], inRow[i], active)
		}
	}
	ldc := e.Param64(e.pLdc)
	index, pointer, rowStride := e.B64(), e.B64(), e.B64()
	e.MadLoS64(index, e.Wide(row), ldc, e.Wide(column))
	e.MadLoS64(index, e.Wide(e.Special(ptx.CtaidZ)), e.Param64(e.pStrideC), index)
	e.ShlB64(index, index, ptx.Int(asm.Log2(size)))
	e.CvtaToGlobalU64(pointer, e.Param64(e.pC))
	e.AddS64(pointer, pointer, index)
	e.MulLoS64(rowStride, ldc, ptx.Int(size*min(rowStep, 16)))
	alpha, beta, readC := e.F32(), e.F32(), e.Pred()
	e.LdParamF32(alpha, e.pAlpha)
	e.LdParamF32(beta, e.pBeta)
	e.SetpNeuF32(readC, beta, ptx.Float(0))

	withC := e.Label("with_c")
	e.If(readC).BraUni(withC)
	rows := func(tag string, beta ptx.Operand) {
		passes, counter, from := max(1, 16/rowStep), e.B32(), e.B32()
		pass := func() {
			inside := e.Pred()
			e.SetpGtS32(inside, rowsLeft, ptx.Int(0))
			for i := range across {
				valid := e.Pred()
				e.AndPred(valid, inside, inRow[i])
				e.writeRow(ptx.Global(pointer, 32*i*width*size), from, 32*i*width*4, width, alpha, beta, valid)
			}
			e.AddS64(pointer, pointer, rowStride)
			e.AddS32(rowsLeft, rowsLeft, ptx.Int(-min(rowStep, 16)))
			e.AddS32(from, from, ptx.Int(min(rowStep, 16)*g.stagingStride*4))
		}
		for m := range g.tilesM {
			e.BarWarpSync(ptx.Int(-1))
			for n := range g.tilesN {
				acc := e.acc[m*g.tilesN+n]
				e.StSharedV2F32(ptx.Shared(scatter, 32*n), e.Vec(acc[:2]...))
				e.StSharedV2F32(ptx.Shared(scatter, 32*n+8*g.stagingStride*4), e.Vec(acc[2:]...))
			}
			e.BarWarpSync(ptx.Int(-1))
			e.MovB32(from, gather)
			if passes*across <= unrolledStores {
				for range passes {
					pass()
				}
				continue
			}
			again, more := e.Label(fmt.Sprintf("rows_%s%d", tag, m)), e.Pred()
			e.MovB32(counter, ptx.Int(passes))
			e.Place(again)
			pass()
			e.AddS32(counter, counter, ptx.Int(-1))
			e.SetpGtS32(more, counter, ptx.Int(0))
			e.If(more).BraUni(again)
		}
	}
	rows("", ptx.Operand{})
	e.BraUni(e.exit)
	e.Place(withC)
	rows("c_", beta)
	e.Place(e.exit)
	e.Ret()
}

// unrolledStores is up to how many stores the rows of an mma tile are unrolled; narrow stores run in a loop.
const unrolledStores = 8

// writeRow writes width neighbours of a row of C from the sums in shared memory; beta is invalid where C is not read.
func (e *emitter) writeRow(to, from ptx.Operand, offset, width int, alpha, beta, valid ptx.Operand) {
	v := e.Regs(width, e.F32)
	for i := 0; i < width; i += 4 {
		at := ptx.Shared(from, offset+4*i)
		switch width {
		case 1:
			e.LdSharedF32(v[0], at)
		case 2:
			e.LdSharedV2F32(e.Vec(v...), at)
		default:
			e.LdSharedV4F32(e.Vec(v[i:i+4]...), at)
		}
	}
	for _, x := range v {
		e.MulF32(x, x, alpha)
	}
	if beta != (ptx.Operand{}) {
		for i, x := range e.readC(to, width, valid) {
			e.FmaF32(v[i], beta, x, v[i])
		}
	}
	if e.s.Out == gemm.FP32 {
		switch width {
		case 1:
			e.If(valid).StGlobalF32(to, v[0])
		case 2:
			e.If(valid).StGlobalV2F32(to, e.Vec(v...))
		default:
			e.If(valid).StGlobalV4F32(to, e.Vec(v...))
		}
		return
	}
	half, pair := e.CvtF16F32, e.CvtF16x2F32
	if e.s.Out == gemm.BF16 {
		half, pair = e.CvtBF16F32, e.CvtBF16x2F32
	}
	if width == 1 {
		h := e.B16()
		half(h, v[0])
		e.If(valid).StGlobalB16(to, h)
		return
	}
	packed := e.Regs(width/2, e.B32)
	for i, d := range packed {
		pair(d, v[2*i+1], v[2*i])
	}
	switch width {
	case 2:
		e.If(valid).StGlobalB32(to, packed[0])
	case 4:
		e.If(valid).StGlobalV2B32(to, e.Vec(packed...))
	default:
		e.If(valid).StGlobalV4B32(to, e.Vec(packed...))
	}
}

// readC reads width neighbours of C as floats, where they are valid.
func (e *emitter) readC(from ptx.Operand, width int, valid ptx.Operand) []ptx.Operand {
	v := e.Regs(width, e.F32)
	if e.s.Out == gemm.FP32 {
		for _, x := range v {
			e.MovF32(x, ptx.Float(0))
		}
		switch width {
		case 1:
			e.If(valid).LdGlobalF32(v[0], from)
		case 2:
			e.If(valid).LdGlobalV2F32(e.Vec(v...), from)
		default:
			e.If(valid).LdGlobalV4F32(e.Vec(v...), from)
		}
		return v
	}
	if width == 1 {
		h := e.B16()
		e.MovB16(h, ptx.Int(0))
		e.If(valid).LdGlobalB16(h, from)
		e.ToFloat(v[0], h, e.s.Out)
		return v
	}
	packed := e.Regs(width/2, e.B32)
	for _, p := range packed {
		e.MovB32(p, ptx.Int(0))
	}
	switch width {
	case 2:
		e.If(valid).LdGlobalB32(packed[0], from)
	case 4:
		e.If(valid).LdGlobalV2B32(e.Vec(packed...), from)
	default:
		e.If(valid).LdGlobalV4B32(e.Vec(packed...), from)
	}
	h := e.Regs(2, e.B16)
	halves := e.Vec(h...)
	for i, p := range packed {
		e.MovB32Unpack(halves, p)
		e.ToFloat(v[2*i], h[0], e.s.Out)
		e.ToFloat(v[2*i+1], h[1], e.s.Out)
	}
	return v
}
