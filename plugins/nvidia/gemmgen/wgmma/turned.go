package wgmma

import "github.com/origami-gemm/origami/plugins/nvidia/ptx"

// turnedTiles stores Cᵀ of a warpgroup through the copy engine: 32 rows of 64 columns of C at a time go to one of its
// two buffers, from which the engine stores them while the warpgroup goes on. A warp has 16 of the 64 columns.
type turnedTiles struct {
	*emitter
	mapC ptx.Operand
	// column is the warpgroup's first column in the CTA's tile.
	column ptx.Operand
	// buffer is the first buffer, lane the address in it that the lane writes for the first 16 rows.
	buffer, lane ptx.Operand
	// first says that this is the warpgroup's first thread, which issues the copies.
	first ptx.Operand
}

func (e *emitter) newTurnedTiles(thread, consumer ptx.Operand) *turnedTiles {
	w := &turnedTiles{emitter: e, mapC: e.mapAddress(e.p.cMap), column: e.B32(), first: e.Pred()}
	e.MulLoS32(w.column, consumer, ptx.Int(tileM*e.g.tilesC))
	e.SetpEqS32(w.first, thread, ptx.Int(0))
	w.buffer = e.Mad(consumer, 2*turnedBytes, e.Add(e.smem, ptx.Int(e.g.staging)))
	// Lanes 0-15 have the first 8 of 16 rows of C, lanes 16-31 the others. Of each 16, the first 8 have the first 8 of the
	// warp's columns. Of a row, chunk c of 8 columns lies at chunk c xor (row mod 8).
	lane, row := e.And(thread, 31), e.And(thread, 7)
	half := e.And(e.Shr(lane, 3), 1)
	chunk := e.XorB32(e.B32(), e.Mad(e.Shr(thread, 5), 2, half), row)
	w.lane = e.Mad(chunk, 16, e.Mad(e.Mad(e.Shr(lane, 4), 8, row), rowBytes, w.buffer))
	return w
}

// storeRows is how many rows of C a copy stores: block_m may end within a buffer.
func storeRows(blockM int) int { return min(blockM&-blockM, turnedM) }

// store writes the warpgroup's part of an output tile. Rows and columns outside of C are not stored.
func (w *turnedTiles) store(t tile, sums [][]ptx.Operand, alpha ptx.Operand) {
	n, box := 0, storeRows(w.s.Config.BlockM)
	for i := range sums {
		x := w.Add(t.n0, w.Add(w.column, ptx.Int(i*tileM)))
		for first := 0; first < w.s.Config.BlockM; first += turnedM {
			rows, buffer := min(turnedM, w.s.Config.BlockM-first), n%2*turnedBytes
			// The buffer is free when its last copy has read it: the one before the last, or one of the tile before.
			w.CpAsyncBulkWaitGroupRead(ptx.Int(min(n, 1)))
			w.BarSyncThreads(w.group, ptx.Int(warpgroup))
			for row := 0; row < rows; row += 16 {
				// Of each 8 rows of C: two of the upper 8 columns, two of the lower.
				packed := make([]ptx.Operand, 4)
				for k := range packed {
					at := (first+row)/2 + 2*k
					if at >= len(sums[i]) { // the buffer has rows that are not stored
						packed[k] = packed[k-2]
						continue
					}
					packed[k] = w.Halves(w.value(sums[i][at], alpha), w.value(sums[i][at+1], alpha), w.s.Out)
				}
				w.StmatrixX4Trans(ptx.Shared(w.lane, buffer+row*rowBytes), w.Vec(packed...))
			}
			w.FenceProxyAsyncShared()
			w.BarSyncThreads(w.group, ptx.Int(warpgroup))
			for row := 0; row < rows; row += box {
				y := w.Add(t.m0, ptx.Int(first+row))
				w.If(w.first).CpAsyncBulkTensor3DStore(w.Tensor(w.mapC, x, y, t.batch),
					ptx.Shared(w.buffer, buffer+row*rowBytes))
			}
			w.If(w.first).CpAsyncBulkCommitGroup()
			n++
		}
	}
}

// rowsTurned calls write for each sum of Cᵀ of one thread. Thread t of a warpgroup has, of each 8 rows of C, the rows
// 2(t mod 4) and the next.
func (w *writer) rowsTurned(
	sums [][]ptx.Operand, write func(at ptx.Operand, column int, inside ptx.Operand, v []ptx.Operand),
) {
	at := w.AddS64(w.B64(), w.pointer, ptx.Int(0))
	one := w.MulLoS64(w.B64(), w.ldc, ptx.Int(w.s.Out.Bytes()))
	seven := w.MulLoS64(w.B64(), one, ptx.Int(7))
	for row := 0; row < w.s.Config.BlockM; row += 8 {
		for i, next := range []ptx.Operand{one, seven} {
			inside := w.SetpGtS32(w.Pred(), w.rowsLeft, ptx.Int(row+i))
			for j := range sums {
				for half := range 2 {
					k := row/2 + 2*half + i
					write(at, j*tileM+8*half, inside, sums[j][k:k+1])
				}
			}
			w.AddS64(at, at, next)
		}
	}
}
