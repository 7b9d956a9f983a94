package asm

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// Emit emits a kernel: the passes in order, without those that are nil, and the end.
func (b Builder) Emit(passes ...func()) {
	for _, pass := range passes {
		if pass != nil {
			pass()
		}
	}
	b.Ret()
}

// Only returns a pass of kernels that have something, nil for others.
func Only(has bool, pass func()) func() {
	if !has {
		return nil
	}
	return pass
}

// CTA is what kernels have in common whose CTAs compute one output tile, or one split of it.
type CTA struct {
	Builder
	Sums    Sums
	Thread  ptx.Operand // in the CTA
	M, N, K ptx.Operand // the problem's size, and the indices along K that this CTA sums over
	M0, N0  ptx.Operand // the CTA's first row and column of C
	FirstK  ptx.Operand // the CTA's first index along K, no operand if K is not split
	Smem    ptx.Operand // address of the shared memory
	Exit    ptx.Operand // label of the end of the kernel
}

// Walk is the pass that finds the CTA's output tile, of so many rows and columns, in the grouped launch order.
func (c *CTA) Walk(rows, columns int) {
	tilesM, tilesN, groupM := c.Param32("tiles_m"), c.Param32("tiles_n"), c.Param32("group_m")
	cta := c.Special(ptx.CtaidX)
	row, column := c.InGroups(c.DivU32, cta, tilesM, groupM, c.Mul(groupM, tilesN))
	c.M0, c.N0 = c.Shl(row, Log2(rows)), c.Shl(column, Log2(columns))
}

// InGroups returns the row and the column of an output tile in the grouped launch order: the tiles of groupM rows,
// perGroup in all, are numbered column by column, then the tiles of the next group, so that CTAs that run together
// share operand tiles in L2.
func (b Builder) InGroups(
	divide func(d, x, y ptx.Operand) ptx.Operand, tile, tilesM, groupM, perGroup ptx.Operand,
) (row, column ptx.Operand) {
	group := divide(b.B32(), tile, perGroup)
	first := b.Mul(group, groupM)
	rows := b.Sub(tilesM, first)
	b.MinU32(rows, rows, groupM)
	inGroup := b.Mul(group, perGroup)
	b.SubS32(inGroup, tile, inGroup)
	column = divide(b.B32(), inGroup, rows)
	row = b.Mul(column, rows)
	b.SubS32(row, inGroup, row)
	return b.AddS32(row, row, first), column
}

// PartOfK is the pass that finds the part of K of a CTA's split: where it begins, and how long it is. The last splits
// may have none, which is a length of zero or less.
func (c *CTA) PartOfK() {
	c.Comment("this split's part of K")
	per := c.Param32("k_per_split")
	c.FirstK = c.Mul(c.Special(ptx.CtaidY), per)
	c.SubS32(c.K, c.K, c.FirstK)
	c.MinS32(c.K, c.K, per)
}

// End is the pass that CTAs with nothing left to do go to.
func (c *CTA) End() { c.Place(c.Exit) }
