package wgmma

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/emu"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// part is what a cluster does next: which blocks along K of which tile, and where its sums go.
type part struct{ tile, k0, blocks, partial, mine, first, next, count, counter, arrives, all uint32 }

const partWords = 11

// walk runs the instructions that share tiles among clusters in the emulator, and returns the parts of each cluster.
func walk(t *testing.T, s shares, tiles, blocks, clusters int) [][]part {
	t.Helper()
	spec := spec(t, "64x16x64,warps=8,stages=2,stream_k=1", "kk", gemm.FP16, gemm.FP32)
	g, reason, _ := spec.layout()
	if reason != "" {
		t.Fatal(reason)
	}
	e := &emitter{Builder: asm.New("walk"), s: spec, g: g}
	out := e.Param("out", ptx.U64)
	e.p.kBlocks, e.p.whole = e.Param("k_blocks", ptx.U32), e.Param("whole", ptx.U32)
	e.p.share, e.p.shared = e.Param("share", ptx.U32), e.Param("shared", ptx.U32)
	most := e.Param("most", ptx.U32)
	at, to, none := e.Special(ptx.CtaidX), e.B64(), e.Pred()
	e.rank = e.And(at, 0)
	row := e.B32()
	e.MulLoS32(row, at, e.Param32(most))
	e.CvtaToGlobalU64(to, e.Param64(out))
	e.MadWideU32(to, row, ptx.Int(4*partWords), to)
	st := e.newStream(at)
	loop, end := e.Label("loop"), e.Label("end")
	e.Place(loop)
	e.ended(st, at, none)
	e.If(none).Bra(end)
	one := tile{k0: e.B32(), blocks: e.B32()}
	in := e.streamed(st, at, &one)
	p, partial := e.streamParts(one), e.B32()
	e.SelpB32(partial, ptx.Int(1), ptx.Int(0), one.partial)
	words := []ptx.Operand{in, one.k0, one.blocks, partial, p.mine, p.first, p.next, p.count, p.tile, p.arrives, p.all}
	for i, v := range words {
		e.StGlobalB32(ptx.Global(to, 4*i), v)
	}
	e.AddS64(to, to, ptx.Int(4*partWords))
	e.AddS32(at, at, e.Special(ptx.NctaidX))
	e.BraUni(loop)
	e.Place(end)
	e.Ret()
	k, err := e.Build(hopper.Target)
	if err != nil {
		t.Fatal(err)
	}
	const address = 1 << 32
	room := (s.whole+clusters-1)/clusters + s.share/blocks + 3
	memory := make([]byte, clusters*room*4*partWords)
	params := binary.LittleEndian.AppendUint64(nil, address)
	for _, v := range []int{blocks, s.whole, s.share, s.shared, room} {
		params = binary.LittleEndian.AppendUint32(params, uint32(v))
	}
	if err := emu.Run(emu.Launch{Text: k.Text, Params: params, Grid: [3]int{clusters, 1, 1}, Threads: 1},
		emu.Memory{address: memory}); err != nil {
		t.Fatal(err)
	}
	all := make([][]part, clusters)
	for i := range all {
		for j := range room {
			var p part
			at := memory[(i*room+j)*4*partWords:]
			for n, to := range []*uint32{&p.tile, &p.k0, &p.blocks, &p.partial, &p.mine, &p.first, &p.next, &p.count,
				&p.counter, &p.arrives, &p.all} {
				*to = binary.LittleEndian.Uint32(at[4*n:])
			}
			if p.blocks > 0 {
				all[i] = append(all[i], p)
			}
		}
	}
	return all
}

// TestStream: whatever the numbers of tiles, blocks and clusters, each block of each tile is multiplied once, the
// parts of a tile have blocks of the workspace of their own, which are added in the order of K, and no cluster has
// much more to do than another.
func TestStream(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 60 {
		clusters, blocks := 1+random.IntN(66), 1+random.IntN(90)
		tiles := 1 + random.IntN(4*clusters)
		s := newShares(tiles, blocks, clusters)
		if s.share > 1+leastShare+2*blocks || s.whole%clusters != 0 {
			t.Fatalf("%d tiles on %d clusters: %+v", tiles, clusters, s)
		}
		covered := make([][]*part, tiles) // by block
		taken := map[uint32]bool{}
		arrived := map[uint32]uint32{}
		for _, parts := range walk(t, s, tiles, blocks, clusters) {
			for i := range parts {
				p := &parts[i]
				if int(p.tile) >= tiles || p.partial == 0 != (int(p.blocks) == blocks) {
					t.Fatalf("%d tiles of %d blocks on %d clusters: %+v", tiles, blocks, clusters, *p)
				}
				if covered[p.tile] == nil {
					covered[p.tile] = make([]*part, blocks)
				}
				for b := range p.blocks {
					at := int(p.k0)/64 + int(b)
					if covered[p.tile][at] != nil {
						t.Fatalf("block %d of tile %d is multiplied twice", at, p.tile)
					}
					covered[p.tile][at] = p
				}
				if p.partial == 0 {
					continue
				}
				if taken[p.mine] || p.mine >= uint32(2*clusters) {
					t.Fatalf("%d tiles of %d blocks on %d clusters: block %d of the workspace", tiles, blocks, clusters, p.mine)
				}
				taken[p.mine] = true
				if arrived[p.counter] += p.arrives; arrived[p.counter] > p.all || int(p.all) != blocks {
					t.Fatalf("counter %d has %d of %d", p.counter, arrived[p.counter], p.all)
				}
			}
		}
		checkTiles(t, covered)
	}
}

// checkTiles checks that nothing is missing, and that the parts of a tile are added in the order of K.
func checkTiles(t *testing.T, covered [][]*part) {
	t.Helper()
	for tile, row := range covered {
		var in []*part
		for at, p := range row {
			if p == nil {
				t.Fatalf("block %d of tile %d is missing", at, tile)
			}
			if len(in) == 0 || in[len(in)-1] != p {
				in = append(in, p)
			}
		}
		if row == nil {
			t.Fatalf("tile %d is missing", tile)
		}
		if in[0].partial == 0 {
			continue
		}
		for i, p := range in {
			want := p.first
			if i > 0 {
				want = p.next + 2*uint32(i-1)
			}
			if p.mine != want || int(p.count) != len(in) {
				t.Fatalf("part %d of %d of tile %d is in block %d, want %d of %d", i, len(in), tile, p.mine, want, p.count)
			}
		}
	}
}

// TestLaunchStream: the launch has the shares, and the workspace is large enough for any device.
func TestLaunchStream(t *testing.T) {
	s := spec(t, "128x128x64,warps=12,stages=3,cluster=2,stream_k=1", "kn", gemm.FP16, gemm.FP16)
	s.Processors = 132
	k := emit(t, s)
	call := gemmgen.NewCall(problem(1032, 2408, 5432, 1, false, false))
	if _, err := s.Launch(k, call); err == nil {
		t.Error("tiles are shared without a workspace")
	}
	call.Partials, call.Counters = 1<<43, 1<<44
	l, err := s.Launch(k, call)
	if err != nil {
		t.Fatal(err)
	}
	got := gentest.Params(k.Kernel, l.Params)
	// 5 × 19 pairs of tiles on 66 clusters: a wave of 66, and 29 that are shared with it, as they are less than half.
	if got["whole"] != 0 || got["shared"] != 95*85 || got["share"] != 123 || l.GridX != 132 {
		t.Errorf("%v", got)
	}
	if partials, counters := s.Workspace(call.Problem); partials < 132*2*128*128*4 || counters < 95*2*8*4 {
		t.Errorf("workspace of %v and %v", partials, counters)
	}
	s = spec(t, "64x16x64,warps=8,stages=2,stream_k=1", "kn", gemm.FP16, gemm.FP32)
	call = gemmgen.NewCall(problem(64, 16*130, 1<<31-1088, 1, false, false))
	call.Partials, call.Counters = 1<<43, 1<<44
	if _, err := s.Launch(emit(t, s), call); err == nil || !strings.Contains(err.Error(), "blocks along K") {
		t.Errorf("more blocks than 32 bits can count: %v", err)
	}
}
