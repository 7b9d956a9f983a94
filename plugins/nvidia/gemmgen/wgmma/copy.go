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

// copyA issues the copies of a block of A.
func (e *emitter) copyA(from, to, barrier, k ptx.Operand, t tile, all ptx.Operand) {
	c := copies{from: from, to: to, barrier: barrier, all: all, rank: e.rankN, sharers: e.g.clusterN}
	e.copyBlock(c, e.s.AMajor == gemm.MajorK, e.s.Config.BlockM, t.m0, k, t.batch)
}

// copyB issues the copies of a block of B.
func (e *emitter) copyB(from, to, barrier, k ptx.Operand, t tile, all ptx.Operand) {
	c := copies{from: from, to: to, behind: e.g.aBytes, barrier: barrier, all: all, rank: e.rankM, sharers: e.g.clusterM,
		gated: e.s.Epilogue.Activation.Gated()}
	e.copyBlock(c, e.s.BMajor == gemm.MajorK, e.s.Config.BlockN, t.n0, k, t.batch)
}

// copyBlock issues the copies of a block of so many rows or columns of C, from the first on.
func (e *emitter) copyBlock(c copies, alongK bool, block int, first, k, batch ptx.Operand) {
	if alongK {
		e.copyRows(c, block, k, first, batch)
	} else {
		e.copyColumns(c, block, first, k, batch)
	}
}

// copies fetch a block of one matrix: from a tensor map, to so many bytes behind an address in shared memory.
// Each of the sharers copies its part of the rows of each box for all of them, the CTAs of the mask; rank is its
// number.
type copies struct {
	from, to ptx.Operand
	behind   int
	barrier  ptx.Operand
	all      ptx.Operand
	rank     ptx.Operand
	sharers  int
	// gated says that the matrix consists of two, whose rows lie one after the other in a block.
	gated bool
}

// copyRows issues the copies of a block of rows that are contiguous along K, from row y on.
func (e *emitter) copyRows(c copies, rows int, k, y, batch ptx.Operand) {
	first := y
	mine, y := e.part(c, rows/c.sharers, y)
	if c.gated && c.sharers > 1 { // a CTA copies the gates, the other what they are multiplied with
		y, batch = first, c.rank
	}
	for i := range e.g.slabs {
		e.issue(c, ptx.Shared(mine, c.behind+i*rows*rowBytes), e.Tensor(c.from, e.plus(k, i*e.perRow()), y, batch))
	}
}

// copyColumns issues the copies of a block of matrix rows along K, of which each is contiguous along x.
func (e *emitter) copyColumns(c copies, columns int, x, k, batch ptx.Operand) {
	mine, k := e.part(c, e.s.Config.BlockK/c.sharers, k)
	for i := range slices64(columns) {
		e.issue(c, ptx.Shared(mine, c.behind+i*e.s.Config.BlockK*rowBytes), e.Tensor(c.from, e.plus(x, 64*i), k, batch))
	}
}

// part returns where this CTA's part of a box goes, and its first row.
func (e *emitter) part(c copies, rows int, first ptx.Operand) (to, row ptx.Operand) {
	if c.sharers == 1 {
		return c.to, first
	}
	return e.Mad(c.rank, rows*rowBytes, c.to), e.Mad(c.rank, rows, first)
}

func (e *emitter) issue(c copies, to, from ptx.Operand) {
	if c.sharers == 1 {
		e.CpAsyncBulkTensor3D(to, from, ptx.Shared(c.barrier, 0))
		return
	}
	e.CpAsyncBulkTensor3DMulticast(to, from, ptx.Shared(c.barrier, 0), c.all)
}

// perRow is the elements of a row in shared memory.
func (e *emitter) perRow() int { return rowBytes / e.s.DType.Bytes() }

// plus returns x + n.
func (e *emitter) plus(x ptx.Operand, n int) ptx.Operand {
	if n == 0 {
		return x
	}
	return e.Add(x, ptx.Int(n))
}
