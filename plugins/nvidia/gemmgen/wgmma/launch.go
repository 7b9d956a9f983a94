package wgmma

import (
	"math"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Launch implements gemmgen.Program. As many CTAs as there are SMs take the tiles in turns.
func (s Spec) Launch(k *gemmgen.Kernel, call gemmgen.Call) (gemmgen.Launch, error) {
	p := call.Problem
	if err := p.Validate(); err != nil {
		return gemmgen.Launch{}, err
	}
	where := func(err *diag.Error) (gemmgen.Launch, error) { return gemmgen.Launch{}, err.At("launch of %s", k.Name) }
	need := SpecFor(call, s.Out, s.Config)
	need.TilesC, need.PairsC = need.TilesC && s.TilesC, need.PairsC && s.PairsC // what C has more is not needed
	if need.Key() != k.Key {
		return where(diag.Inputf("the kernel is not for %s with config %s", p, s.Config).
			Do("emit a kernel for the call"))
	}
	g, reason, detail := s.layout()
	if reason != "" {
		return where(diag.Inputf("%s: %s", reason, detail).Do("choose another configuration"))
	}
	t, err := call.Tile(s.Config)
	if err != nil {
		return where(err)
	}
	rows := (t.TilesM + g.cluster - 1) / g.cluster // of clusters
	tiles := rows * t.TilesN * t.Batch
	if tiles > math.MaxInt32/2 {
		return where(diag.Inputf("%d tiles", tiles).Do("use a larger tile or split the batch"))
	}
	resident := tiles
	if s.Processors > 0 {
		resident = max(1, min(tiles, s.Processors/g.cluster))
	}
	values := map[string]uint64{
		"c": call.C.Address, "ldc": uint64(call.C.LD), "stride_c": uint64(call.C.Stride),
		"m": uint64(p.M), "n": uint64(p.N), "k_blocks": uint64((p.K + s.Config.BlockK - 1) / s.Config.BlockK),
		"tiles_m": uint64(rows), "tiles_n": uint64(t.TilesN), "tiles": uint64(tiles),
		"group_m": uint64((t.GroupM + g.cluster - 1) / g.cluster),
		"alpha":   uint64(math.Float32bits(call.Alpha)), "beta": uint64(math.Float32bits(call.Beta)),
	}
	l := gemmgen.Launch{
		GridX: resident * g.cluster, GridY: 1, GridZ: 1, Threads: k.Threads, SharedMemory: k.SharedMemory,
		Params: gemmgen.Pack(k.Kernel, values), Maps: s.maps(k.Kernel, call, g),
	}
	for _, param := range k.Params {
		l.Offsets = append(l.Offsets, uintptr(param.Offset))
	}
	return l, nil
}

// maps describes A and B. A box of rows along K has the block's rows, or of B those that one CTA of the cluster copies.
// A box of rows along M or N is 64 wide, and has the block's indices along K, or of B one CTA's part of them. A box of
// C is what a warp stores at once.
func (s Spec) maps(k *ptx.Kernel, call gemmgen.Call, g geometry) []gemmgen.TensorMap {
	p := call.Problem
	describe := func(name string, m gemmgen.Matrix, row, rows, box int) gemmgen.TensorMap {
		t := gemmgen.TensorMap{
			DType: p.DType, Address: m.Address,
			Sizes:   [3]uint64{uint64(row), uint64(rows), uint64(p.Batch)},
			Strides: [2]uint64{uint64(m.LD * p.DType.Bytes()), uint64(m.Stride * p.DType.Bytes())},
			Box:     [3]uint32{uint32(rowBytes / p.DType.Bytes()), uint32(box), 1},
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
	rowA, rowsA, boxA := p.K, p.M, s.Config.BlockM
	if s.AMajor == gemm.MajorM {
		rowA, rowsA, boxA = p.M, p.K, s.Config.BlockK
	}
	rowB, rowsB, boxB := p.K, p.N, s.Config.BlockN
	if s.BMajor == gemm.MajorN {
		rowB, rowsB, boxB = p.N, p.K, s.Config.BlockK
	}
	maps := []gemmgen.TensorMap{
		describe("a", call.A, rowA, rowsA, boxA), describe("b", call.B, rowB, rowsB, boxB/g.cluster),
	}
	if s.TilesC {
		c := describe("c_map", call.C, p.N, p.M, storeM)
		c.DType = s.Out
		maps = append(maps, c)
	}
	return maps
}
