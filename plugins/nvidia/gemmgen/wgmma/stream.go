package wgmma

import (
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// mostCTAs bounds the CTAs that stay resident where they share tiles along K, for the size of the workspace. Source:
// NVIDIA H100 white paper: a full GH100 has 144 SMs, and products have fewer.
const mostCTAs = 144

// leastShare is the least blocks along K that a cluster gets of the shared tiles.
const leastShare = 4

// shares is how the clusters share tiles along K (stream-K). The first whole tiles are computed one by one, in full
// waves. The blocks along K of the others stand in a row, tile by tile, and each cluster has an equal, contiguous part
// of the row. A cluster thus has at most two parts of tiles, and whole tiles between them.
//
// Where the last wave is less than half full, the wave before it is shared too: otherwise many clusters would have a
// short part of the same tile, and one of them would add up all of them.
type shares struct{ whole, share, shared int }

// newShares shares tiles of so many blocks along K.
func newShares(tiles, blocks, clusters int) shares {
	rest := tiles % clusters
	if rest > 0 && 2*rest < clusters && tiles > clusters {
		rest += clusters
	}
	s := shares{whole: tiles - rest, shared: rest * blocks}
	s.share = max(leastShare, (s.shared+clusters-1)/clusters)
	return s
}

// Workspace returns the device memory that a call needs beside its matrices. Where CTAs share tiles along K it is a
// block of fp32 sums for each of two parts per CTA, and a counter per shared tile and warp. With a tree, it begins with
// the stacks of the CTAs.
func (s Spec) Workspace(p gemm.Problem) (partials, counters unit.Bytes) {
	if !Streams(s.Config) {
		g, _, _ := s.layout()
		partials, counters = gemmgen.Workspace(p, s.Config)
		return partials + unit.Bytes(s.stacks(g)), counters
	}
	return unit.Bytes(2 * mostCTAs * s.Config.BlockM * s.Config.BlockN * 4),
		unit.Bytes(2 * mostCTAs * s.Config.NumWarps * 4)
}

// stream is a cluster's place in the row of the blocks of shared tiles.
type stream struct {
	// at is the next block, end the end of the cluster's part. shares says that the cluster is in the row.
	at, end, shares ptx.Operand
	worker          ptx.Operand
}

// streams reports whether the CTAs share the last tiles along K.
func (e *emitter) streams() bool { return Streams(e.s.Config) }

// newStream finds the part of a cluster of this number.
func (e *emitter) newStream(worker ptx.Operand) *stream {
	share := e.Param32("share")
	s := &stream{worker: e.MovB32(e.B32(), worker), at: e.Mul(worker, share)}
	s.end = e.MinU32(e.B32(), e.Add(s.at, share), e.Param32("shared"))
	return s
}

// ended returns whether the cluster has neither a whole tile nor a part of one left. at is its next whole tile.
func (e *emitter) ended(s *stream, at ptx.Operand) ptx.Operand {
	s.shares = e.SetpGeU32(e.Pred(), at, e.Param32("whole"))
	none := e.SetpGeU32(e.Pred(), s.at, s.end)
	return e.AndPred(none, none, s.shares)
}

// streamed fills in which blocks of which tile come next, moves on, and returns the number of the tile. at is the next
// whole tile.
func (e *emitter) streamed(s *stream, at ptx.Operand, t *tile) ptx.Operand {
	whole, blocks := e.Param32("whole"), e.Param32("k_blocks")
	t.worker = s.worker
	t.shared = e.DivU32(e.B32(), s.at, blocks)
	t.k0 = e.Mul(t.shared, blocks)
	e.SubS32(t.k0, s.at, t.k0) // in blocks
	t.blocks = e.MinU32(e.B32(), e.Sub(blocks, t.k0), e.Sub(s.end, s.at))
	e.SelpB32(s.at, e.Add(s.at, t.blocks), s.at, s.shares)
	in := e.Add(whole, t.shared)
	e.SelpB32(in, in, at, s.shares)
	e.SelpB32(t.k0, t.k0, ptx.Int(0), s.shares)
	e.MulLoS32(t.k0, t.k0, ptx.Int(e.s.Config.BlockK))
	e.SelpB32(t.blocks, t.blocks, blocks, s.shares)
	t.partial = e.SetpNeS32(e.Pred(), t.blocks, blocks)
	return in
}

// parts is where the sums of the parts of a tile along K lie in the workspace, in numbers of blocks, and how its warps
// count arrivals.
type parts struct {
	// tile is the number of the tile for the counters. mine is this part's block, first that of the first part, next that
	// of the second, and step from there on from one to the next.
	tile, mine, first, next ptx.Operand
	step                    int
	// arrives is what this part adds to the counter, all what the counter has in the end. count is the parts.
	arrives, all, count ptx.Operand
}

// streamParts are the parts of a tile that clusters share. Cluster w has the blocks 2w, for the part that its row
// begins with, and 2w + 1, for the part that it ends with.
func (e *emitter) streamParts(t tile) parts {
	blocks, share := e.Param32("k_blocks"), e.Param32("share")
	begin := e.Mul(t.shared, blocks)
	first := e.DivU32(e.B32(), begin, share)
	last := e.DivU32(e.B32(), e.Add(e.Add(begin, blocks), ptx.Int(-1)), share)
	all := e.MovB32(e.B32(), blocks)
	slot := func(worker ptx.Operand) ptx.Operand {
		later := e.SetpLtU32(e.Pred(), e.Mul(worker, share), begin)
		one := e.SelpB32(e.B32(), ptx.Int(1), ptx.Int(0), later)
		return e.Mad(e.Mad(worker, 2, one), e.g.cluster, e.rank)
	}
	return parts{
		tile: e.Mad(t.shared, e.g.cluster, e.rank), mine: slot(t.worker), first: slot(first),
		next: e.Mad(e.Mad(first, 2, ptx.Int(2)), e.g.cluster, e.rank), step: 2 * e.g.cluster,
		arrives: t.blocks, all: all, count: e.Add(e.Sub(last, first), ptx.Int(1)),
	}
}

// splitParts are the parts of an output tile whose K is split: the workspace has a block for each output tile and
// split.
func (e *emitter) splitParts(t tile) parts {
	splits := e.Param32("splits")
	count := func(size string, block int) ptx.Operand {
		return e.DivU32(e.B32(), e.Add(e.Param32(size), ptx.Int(block-1)), ptx.Int(block))
	}
	tilesM, tilesN := count("m", e.s.Config.BlockM), count("n", e.g.blockC)
	slot := e.MadLoS32(e.B32(), t.batch, tilesM, e.Mad(t.row, e.g.clusterM, e.rankM))
	e.MadLoS32(slot, slot, tilesN, e.Mad(t.column, e.g.clusterN, e.rankN))
	first, one := e.Mul(slot, splits), e.MovB32(e.B32(), ptx.Int(1))
	return parts{
		tile: slot, mine: e.Add(first, t.split), first: first, next: e.Add(first, ptx.Int(1)), step: 1,
		arrives: one, all: splits, count: splits,
	}
}
