package wgmma

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// tileWriter writes the sums of a warp through the copy engine: 16 rows of 64 columns at a time go to one of its two
// buffers, from which the engine stores them while the warp goes on.
type tileWriter struct {
	*emitter
	mapC ptx.Operand
	// row is the warp's first row in the CTA's tile.
	row ptx.Operand
	// buffer is the first buffer. lanes are the addresses in it that the lane writes, one for each 16 columns.
	buffer ptx.Operand
	lanes  [storeN / 16]ptx.Operand
	// first says that this is the warp's first lane, which issues the copies.
	first ptx.Operand
}

// storesTiles stores a tile through the copy engine.
type storesTiles func(t tile, sums [][]ptx.Operand, alpha ptx.Operand)

// newTiles returns how a thread stores tiles, nil if the kernel does without the copy engine.
func (e *emitter) newTiles(thread, consumer ptx.Operand) storesTiles {
	switch {
	case !e.s.TilesC:
		return nil
	case e.g.turned:
		return e.newTurnedTiles(thread, consumer).store
	}
	return e.newTileWriter(thread, consumer).store
}

// newTileWriter returns the writer of a thread.
func (e *emitter) newTileWriter(thread, consumer ptx.Operand) *tileWriter {
	w := &tileWriter{emitter: e, mapC: e.mapAddress(e.p.cMap), first: e.Pred()}
	lane := e.And(thread, 31)
	warp := e.ShflSyncIdxB32(e.B32(), e.Shr(thread, 5), ptx.Int(0))
	w.row = e.Mad(consumer, tileM*e.g.tiles, e.Shl(warp, 4))
	e.SetpEqS32(w.first, lane, ptx.Int(0))
	w.buffer = e.Mad(e.Mad(consumer, 4, warp), 2*storeBytes, e.Add(e.smem, ptx.Int(e.g.staging)))
	// Lanes 0-15 have the rows of the first 8 of 16 columns, lanes 16-31 the rows of the others. Of a row, chunk c of 8
	// columns lies at chunk c xor (row mod 8).
	row := e.And(lane, storeM-1)
	chunk := e.XorB32(e.B32(), e.Shr(lane, 4), e.And(row, 7))
	at := e.Mad(row, rowBytes, w.buffer)
	for i := range w.lanes {
		swizzled := e.XorB32(e.B32(), chunk, ptx.Int(2*i))
		w.lanes[i] = e.Mad(swizzled, 16, at)
	}
	return w
}

// boxes returns the first columns of the boxes that cover a tile's columns of C. Where 64 does not divide these, the
// last box ends with the tile and begins in the box before it: what both have is stored twice, to the same bits. A box
// of another width would need a tensor map of its own.
func boxes(columns int) (first []int) {
	for column := 0; column < columns; column += storeN {
		first = append(first, min(column, columns-storeN))
	}
	return first
}

// store writes the warp's part of an output tile. Rows and columns outside of C are not stored.
func (w *tileWriter) store(t tile, sums [][]ptx.Operand, alpha ptx.Operand) {
	n := 0
	for i := range sums {
		y := w.Add(t.m0, w.Add(w.row, ptx.Int(i*tileM)))
		for _, column := range boxes(w.g.blockC) {
			buffer := n % 2 * storeBytes
			// The buffer is free when its last copy has read it: the one before the last, or one of the tile before.
			w.CpAsyncBulkWaitGroupRead(ptx.Int(min(n, 1)))
			w.BarWarpSync(ptx.Int(-1))
			for j, to := range w.lanes {
				v := sums[i][column/2+8*j:][:8] // of each 8 columns: two of the upper 8 rows, two of the lower
				packed := make([]ptx.Operand, 4)
				for k := range packed {
					packed[k] = w.Halves(w.value(v[2*k], alpha), w.value(v[2*k+1], alpha), w.s.Out)
				}
				w.StmatrixX4(ptx.Shared(to, buffer), w.Vec(packed...))
			}
			w.FenceProxyAsyncShared()
			w.BarWarpSync(ptx.Int(-1))
			x := w.Add(t.n0, ptx.Int(column))
			w.If(w.first).CpAsyncBulkTensor3DStore(w.Tensor(w.mapC, x, y, t.batch), ptx.Shared(w.buffer, buffer))
			w.If(w.first).CpAsyncBulkCommitGroup()
			n++
		}
	}
}
