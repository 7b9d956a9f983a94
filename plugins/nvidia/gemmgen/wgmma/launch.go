package wgmma

import (
	"math"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Launch implements gemmgen.Program.
func (s Spec) Launch(k *gemmgen.Kernel, call gemmgen.Call) (gemmgen.Launch, error) {
	return gemmgen.Start(k, call, s.Config, func() (any, *diag.Error) {
		need := SpecFor(call, s.Out, s.Config)
		need.TilesC, need.PairsC = need.TilesC && s.TilesC, need.PairsC && s.PairsC // what C has more is not needed
		return need.Key(), nil
	}, func(l *gemmgen.Launch, call *gemmgen.Call, t gemmgen.Tiling) (map[string]uint64, *diag.Error) {
		return s.complete(k, l, call, t)
	})
}

// complete makes as many CTAs as there are SMs take the tiles in turns.
func (s Spec) complete(
	k *gemmgen.Kernel, l *gemmgen.Launch, call *gemmgen.Call, t gemmgen.Tiling,
) (map[string]uint64, *diag.Error) {
	g, reason, detail := s.layout()
	if reason != "" {
		return nil, diag.Inputf("%s: %s", reason, detail).Do("choose another configuration")
	}
	p := call.Problem
	rows, columns := (t.TilesM+g.clusterM-1)/g.clusterM, (t.TilesN+g.clusterN-1)/g.clusterN // of clusters
	perSplit := rows * columns * t.Batch
	blocks, blocksPerSplit := (p.K+s.Config.BlockK-1)/s.Config.BlockK, t.KPerSplit/s.Config.BlockK
	splits := (blocks + blocksPerSplit - 1) / blocksPerSplit // none without a block
	tiles := perSplit * splits
	if tiles > math.MaxInt32/2 {
		return nil, diag.Inputf("%d tiles", tiles).Do("use a larger tile or split the batch")
	}
	resident := tiles
	if s.Processors > 0 {
		resident = max(1, min(tiles, Resident(s.Processors, g.cluster)))
	}
	leaves := Leaves(s.Config)
	if p.K%(leaves*s.Config.BlockK) != 0 && leaves > 1 {
		return nil, diag.Inputf("K = %d has no %d leaves of whole blocks of %d", p.K, leaves, s.Config.BlockK).
			Do("give fewer leaves")
	}
	if s.stacks(g) > 0 {
		if call.Partials == 0 {
			return nil, diag.Inputf("a tree needs a workspace").Do("allocate what Workspace says")
		}
		resident = min(resident, mostCTAs/g.cluster)
	}
	streams := Streams(s.Config)
	var shared shares
	if streams {
		if call.Partials == 0 || call.Counters == 0 {
			return nil, diag.Inputf("stream_k needs a workspace").Do("allocate what Workspace says")
		}
		resident = mostCTAs / g.cluster
		if s.Processors > 0 {
			resident = max(1, min(resident, Resident(s.Processors, g.cluster)))
		}
		shared = newShares(tiles, blocks, resident)
		if shared.shared > math.MaxInt32 {
			return nil, diag.Inputf("%d blocks along K are to be shared", shared.shared).
				Do("use split_k in place of stream_k")
		}
		resident = min(resident, max(tiles, (shared.shared+shared.share-1)/shared.share))
	}
	values := map[string]uint64{}
	for name, v := range map[string]int{
		"k_blocks": blocks, "blocks_per_split": blocksPerSplit, "per_split": perSplit, "splits": splits,
		"blocks_per_leaf": blocks / leaves, "whole": shared.whole, "share": shared.share, "shared": shared.shared,
		"tiles_m": rows, "tiles_n": columns, "tiles": tiles, "group_m": (t.GroupM + g.clusterM - 1) / g.clusterM,
	} {
		values[name] = uint64(v)
	}
	if !streams && Skewed(s.Config) {
		values["skew"] = uint64(skew(t, blocksPerSplit))
	}
	values["last_m"], values["last_n"] = s.lastTile(p, t, streams || values["skew"] != 0)
	maps, copied := s.maps(k.Kernel, call, g)
	values["copied"] = uint64(copied)
	l.GridX, l.GridY, l.GridZ, l.Maps = resident*g.cluster, 1, 1, maps
	for _, param := range k.Params {
		l.Offsets = append(l.Offsets, uintptr(param.Offset))
	}
	return values, nil
}

// Resident returns how many clusters run at the same time. The CTAs of a cluster are on one GPC, whose SMs larger
// clusters do not fill: of an H100's 132 SMs, clusters of four and of eight have 120 (cudaOccupancyMaxActiveClusters,
// 2026-11-27). A cluster more than that would begin when another has ended.
func Resident(processors, cluster int) int {
	if cluster > 2 {
		processors -= (processors + 10) / 11
	}
	return processors / cluster
}

// lastTile returns the first row and column of the last tiles. Where a tile would reach beyond C it begins earlier,
// and computes some elements that its neighbour computes too, to the same bits: rows outside of the matrices are
// copied more slowly than others. Tiles that begin at different places along K, or share it, add in another order, and
// what is added to C may be added once.
//
// The copy engine wants the first coordinate of every box at a multiple of 16 bytes, and stops the kernel with an
// illegal instruction otherwise (observed on an H200). So a tile begins earlier by whole multiples of 16 bytes along M
// if A is contiguous along it, and along N if B is, or if the engine stores C. Elsewhere the tile's row is another
// coordinate, which may be any. Pairs of C begin at even columns.
func (s Spec) lastTile(p gemm.Problem, t gemmgen.Tiling, skewed bool) (m, n uint64) {
	last := func(size, block, tiles, unit int) uint64 {
		if s.reads() || skewed || size < block || size%unit != 0 {
			return uint64((tiles - 1) * block)
		}
		return uint64(size - block)
	}
	unitM, unitN := 1, 1
	if s.AMajor == gemm.MajorM {
		unitM = mapAlign / s.DType.Bytes()
	}
	switch {
	case s.BMajor == gemm.MajorN:
		unitN = mapAlign / s.DType.Bytes()
	case s.TilesC:
		unitN = mapAlign / s.Out.Bytes()
	case s.PairsC:
		unitN = 2
	}
	m = last(p.M, s.Config.BlockM, t.TilesM, unitM)
	return m, last(p.Columns(), columnsOfC(s.Epilogue, s.Config), t.TilesN, unitN)
}

// skew returns how many blocks along K later each eight tiles begin than those before. All tiles of one row or column
// read the same part of A or B. If they did at the same time, as with a single row of tiles, they would wait for each
// other: the L2 delivers a line to one SM in about 6 cycles (observed on an H200: 132 CTAs with 8 rows of A take 800
// cycles per block, and 16 with more to copy take 500).
func skew(t gemmgen.Tiling, blocks int) int {
	if min(t.TilesM, t.TilesN) > 1 {
		return 0
	}
	return blocks / ((max(t.TilesM, t.TilesN)-1)>>skewShift + 1)
}

// maps describes A and B, and C if the copy engine stores it, and returns the bytes of the copies of a stage. A box of
// rows along K has the block's rows that one CTA of the cluster copies, and 128 bytes of each. If all rows are those of
// one block, it has no others: what shared memory has in their place only reaches rows and columns outside of C. Rows
// outside of a matrix cost as much as those inside (observed on an H200: 16×4096×7168 takes 125 µs with blocks of 256
// rows, and 51 µs with 64). A box of rows along M or N is 64 wide, and has the block's indices along K, or one CTA's
// part of them. With a gated activation, the rows of B are two matrices, the gates and what they are multiplied with: a
// box has as many rows of each, or, where two CTAs share the copies, of one. A box of C is what a warp stores at once.
func (s Spec) maps(k *ptx.Kernel, call *gemmgen.Call, g geometry) (maps []gemmgen.TensorMap, copied int) {
	p := call.Problem
	describe := func(name string, d gemm.DType, m gemmgen.Matrix, row, rows, box int) gemmgen.TensorMap {
		t := gemmgen.TensorMap{
			DType: d, Address: m.Address,
			Sizes:   [3]uint64{uint64(row), uint64(rows), uint64(p.Batch)},
			Strides: [2]uint64{uint64(m.LD * d.Bytes()), uint64(m.Stride * d.Bytes())},
			Box:     [3]uint32{uint32(rowBytes / d.Bytes()), uint32(box), 1},
		}
		if p.Batch == 1 {
			t.Strides[1] = t.Strides[0] // no matrix follows
		}
		for _, param := range k.Params {
			if param.Name == name {
				t.Offset = param.Offset
			}
		}
		return t
	}
	copied = g.stageBytes
	operand := func(name string, m gemmgen.Matrix, alongK bool, rows, block, sharers int) gemmgen.TensorMap {
		if !alongK {
			return describe(name, p.DType, m, rows, p.K, s.Config.BlockK/sharers)
		}
		box := block / sharers
		if sharers == 1 {
			box = min(box, rows)
			copied -= (block - box) * rowBytes * g.slabs
		}
		return describe(name, p.DType, m, p.K, rows, box)
	}
	maps = []gemmgen.TensorMap{operand("a", call.A, s.AMajor == gemm.MajorK, p.M, s.Config.BlockM, g.clusterN)}
	if s.Epilogue.Activation.Gated() {
		b := describe("b", p.DType, call.B, p.K, p.Columns(), g.blockC)
		b.Sizes[2], b.Strides[1], b.Box[2] = 2, b.Strides[0]*uint64(p.Columns()), uint32(2/g.clusterM)
		maps = append(maps, b)
	} else {
		maps = append(maps, operand("b", call.B, s.BMajor == gemm.MajorK, p.N, s.Config.BlockN, g.clusterM))
	}
	if s.TilesC {
		box := storeM
		if g.turned {
			box = storeRows(s.Config.BlockM)
		}
		maps = append(maps, describe("c_map", s.Out, call.C, p.Columns(), p.M, box))
	}
	return maps, copied
}
