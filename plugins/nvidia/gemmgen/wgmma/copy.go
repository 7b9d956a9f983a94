package wgmma

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// mapAddress returns the generic address of a tensor map among the parameters.
func (e *emitter) mapAddress(name string) ptx.Operand {
	d := e.MovB64Name(e.B64(), e.ParamName(name))
	return e.CvtaParamU64(d, d)
}

// copies fetch blocks of one matrix from a tensor map to so many bytes behind the beginning of a stage. Each of the
// sharers copies its part of the rows of each box for all of them, the CTAs of the mask; rank is its number.
type copies struct {
	from, all, rank ptx.Operand
	behind, sharers int
	// block is the rows or columns of C of a block. alongK says that the matrix is contiguous along K.
	block  int
	alongK bool
	// gated says that the matrix consists of two, whose rows lie one after the other in a block.
	gated bool
}

// newCopies finds how a thread copies A and B.
func (e *emitter) newCopies() (a, b copies) {
	a = copies{rank: e.rankN, sharers: e.g.clusterN, block: e.s.Config.BlockM, alongK: e.s.AMajor == gemm.MajorK}
	b = copies{rank: e.rankM, sharers: e.g.clusterM, block: e.s.Config.BlockN, alongK: e.s.BMajor == gemm.MajorK,
		behind: e.g.aBytes, gated: e.s.Epilogue.Activation.Gated()}
	a.from, b.from = e.mapAddress("a"), e.mapAddress("b")
	return a, b
}

// copy issues the copies of a block to a stage, from the index first of the rows or columns of C on, and k along K. A
// box has rows of 128 bytes.
func (e *emitter) copy(c copies, stage, barrier, first, k, batch ptx.Operand) {
	x, y, rows, boxes := k, first, c.block, e.g.slabs
	if !c.alongK {
		x, y, rows, boxes = first, k, e.s.Config.BlockK, slices64(c.block)
	}
	if c.sharers > 1 {
		stage = e.Mad(c.rank, rows/c.sharers*rowBytes, stage)
		mine := e.Mad(c.rank, rows/c.sharers, y)
		if c.gated { // a CTA copies the gates, the other what they are multiplied with
			batch = c.rank
		} else {
			y = mine
		}
	}
	for i := range boxes {
		at := x
		if i > 0 {
			at = e.Add(x, ptx.Int(i*rowBytes/e.s.DType.Bytes()))
		}
		to, from := ptx.Shared(stage, c.behind+i*rows*rowBytes), e.Tensor(c.from, at, y, batch)
		if c.sharers == 1 {
			e.CpAsyncBulkTensor3D(to, from, ptx.Shared(barrier, 0))
		} else {
			e.CpAsyncBulkTensor3DMulticast(to, from, ptx.Shared(barrier, 0), c.all)
		}
	}
}
