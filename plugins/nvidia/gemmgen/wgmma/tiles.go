package wgmma

import (
	"slices"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// tileWriter stores sums through the copy engine: a box at a time goes to one of two buffers, from which the engine
// stores it while the threads go on. The threads are a warp, with boxes of 16 rows and 64 columns of C; or a warpgroup
// that has multiplied Cᵀ, with boxes of 32 rows and 64 columns, of which each warp has 16 columns.
type tileWriter struct {
	*emitter
	mapC ptx.Operand
	// start is the threads' first row in the CTA's tile, of Cᵀ their first column. boxes are the boxes along the other
	// dimension, each of which takes copies of so many of their lines.
	start ptx.Operand
	boxes []box
	lines int
	// buffer is the first buffer, of so many bytes.
	buffer ptx.Operand
	bytes  int
	// lane returns the address in the first buffer that the lane writes, for the i-th 16 lines of a box. matrices writes
	// there what the lane has of four 8×8 matrices.
	lane     func(i, buffer int) ptx.Operand
	matrices func(to, v ptx.Operand)
	// sync waits for all of the threads. first says that this is their first one, which issues the copies.
	sync  func()
	first ptx.Operand
}

// box is the first of the lines of a box in a tile, and how many it has: columns of C, or rows if Cᵀ was multiplied.
type box struct{ first, lines int }

// storesTiles stores a tile through the copy engine.
type storesTiles func(t tile, sums [][]ptx.Operand)

// newTiles returns how a thread stores tiles, nil if the kernel does without the copy engine.
func (e *emitter) newTiles() storesTiles {
	switch {
	case !e.s.TilesC:
		return nil
	case e.g.turned:
		return e.newTurnedWriter().store
	}
	return e.newTileWriter().store
}

// newTileWriter returns the writer of a warp.
func (e *emitter) newTileWriter() *tileWriter {
	w := &tileWriter{
		emitter: e, mapC: e.mapAddress("c_map"), boxes: boxes(e.g.blockC), lines: storeN, bytes: storeBytes,
		matrices: e.StmatrixX4, sync: func() { e.BarWarpSync(ptx.Int(-1)) },
	}
	lane := e.And(e.thread, 31)
	warp := e.ShflSyncIdxB32(e.B32(), e.Shr(e.thread, 5), ptx.Int(0))
	w.start = e.Mad(e.consumer, tileM*e.g.tiles, e.Shl(warp, 4))
	w.first = e.SetpEqS32(e.Pred(), lane, ptx.Int(0))
	w.buffer = e.Mad(e.Mad(e.consumer, 4, warp), 2*storeBytes, e.Add(e.smem, ptx.Int(e.g.staging)))
	// Lanes 0-15 have the rows of the first 8 of 16 columns, lanes 16-31 the rows of the others. Of a row, chunk c of 8
	// columns lies at chunk c xor (row mod 8).
	row := e.And(lane, storeM-1)
	chunk := e.XorB32(e.B32(), e.Shr(lane, 4), e.And(row, 7))
	at := e.Mad(row, rowBytes, w.buffer)
	var lanes [storeN / 16]ptx.Operand
	for i := range lanes {
		lanes[i] = e.Mad(e.XorB32(e.B32(), chunk, ptx.Int(2*i)), 16, at)
	}
	w.lane = func(i, buffer int) ptx.Operand { return ptx.Shared(lanes[i], buffer) }
	return w
}

// boxes returns the boxes that cover a tile's columns of C. Where 64 does not divide these, the last box ends with the
// tile and begins in the box before it: what both have is stored twice, to the same bits. A box of another width would
// need a tensor map of its own.
func boxes(columns int) (all []box) {
	for column := 0; column < columns; column += storeN {
		all = append(all, box{min(column, columns-storeN), storeN})
	}
	return all
}

// newTurnedWriter returns the writer of a warpgroup that has multiplied Cᵀ.
func (e *emitter) newTurnedWriter() *tileWriter {
	w := &tileWriter{
		emitter: e, mapC: e.mapAddress("c_map"), lines: storeRows(e.s.Config.BlockM), bytes: turnedBytes,
		matrices: e.StmatrixX4Trans, sync: func() { e.BarSyncThreads(e.group, ptx.Int(warpgroup)) },
	}
	for row := 0; row < e.s.Config.BlockM; row += turnedM {
		w.boxes = append(w.boxes, box{row, min(turnedM, e.s.Config.BlockM-row)})
	}
	w.start = e.Mul(e.consumer, ptx.Int(tileM*e.g.tilesC))
	w.first = e.SetpEqS32(e.Pred(), e.thread, ptx.Int(0))
	w.buffer = e.Mad(e.consumer, 2*turnedBytes, e.Add(e.smem, ptx.Int(e.g.staging)))
	// Lanes 0-15 have the first 8 of 16 rows of C, lanes 16-31 the others. Of each 16, the first 8 have the first 8 of the
	// warp's columns. Of a row, chunk c of 8 columns lies at chunk c xor (row mod 8).
	lane, row := e.And(e.thread, 31), e.And(e.thread, 7)
	half := e.And(e.Shr(lane, 3), 1)
	chunk := e.XorB32(e.B32(), e.Mad(e.Shr(e.thread, 5), 2, half), row)
	at := e.Mad(chunk, 16, e.Mad(e.Mad(e.Shr(lane, 4), 8, row), rowBytes, w.buffer))
	w.lane = func(i, buffer int) ptx.Operand { return ptx.Shared(at, buffer+16*i*rowBytes) }
	return w
}

// storeRows is how many rows of C a copy stores where Cᵀ was multiplied: block_m may end within a buffer.
func storeRows(blockM int) int { return min(blockM&-blockM, turnedM) }

// store writes the threads' part of an output tile. Rows and columns outside of C are not stored.
func (w *tileWriter) store(t tile, sums [][]ptx.Operand) {
	n, alongTiles, alongBoxes := 0, t.m0, t.n0
	if w.g.turned {
		alongTiles, alongBoxes = t.n0, t.m0
	}
	for i := range sums {
		y := w.Add(alongTiles, w.Add(w.start, ptx.Int(i*tileM)))
		for _, b := range w.boxes {
			buffer := n % 2 * w.bytes
			// The buffer is free when its last copy has read it: the one before the last, or one of the tile before.
			w.CpAsyncBulkWaitGroupRead(ptx.Int(min(n, 1)))
			w.sync()
			for j := range (b.lines + 15) / 16 {
				// Of each 8 lines: two sums of the upper 8 rows of the multiplication, two of the lower.
				packed := make([]ptx.Operand, 4)
				for k := range packed {
					at := b.first/2 + 8*j + 2*k
					if at >= len(sums[i]) { // the buffer has lines that are not stored
						packed[k] = packed[k-2]
						continue
					}
					packed[k] = w.Halves(w.value(sums[i][at]), w.value(sums[i][at+1]), w.s.Out)
				}
				w.matrices(w.lane(j, buffer), w.Vec(packed...))
			}
			w.FenceProxyAsyncShared()
			w.sync()
			for line := 0; line < b.lines; line += w.lines {
				place := []ptx.Operand{w.Add(alongBoxes, ptx.Int(b.first+line)), y}
				if w.g.turned {
					slices.Reverse(place)
				}
				to := w.Tensor(w.mapC, place[0], place[1], t.batch)
				w.If(w.first).CpAsyncBulkTensor3DStore(to, ptx.Shared(w.buffer, buffer+line*rowBytes))
			}
			w.If(w.first).CpAsyncBulkCommitGroup()
			n++
		}
	}
}
