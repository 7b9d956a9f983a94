package wgmma

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/asm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/emu"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Addresses for the kernels of reducer.
const (
	addressOut      = 1 << 32
	addressPartials = 2 << 32
	addressCounters = 3 << 32
)

// reducer is the part of a kernel that walks over its tiles and adds up the parts along K. In place of products, its
// sums say which blocks they are of. A lane has four of them: the number of blocks, the same times its thread, and
// twice a number that rounding makes depend on the order of additions. Of each complete tile, the lane writes to out
// how often it did so, and these four.
func reducer(t *testing.T, s Spec) *ptx.Kernel {
	t.Helper()
	g, reason, detail := s.layout()
	if reason != "" {
		t.Fatal(reason, detail)
	}
	e := &emitter{Builder: asm.New("reducer"), s: s, g: g}
	out := e.Param("out", ptx.U64)
	for _, param := range []struct {
		name string
		to   *ptx.Operand
	}{
		{"k_blocks", &e.p.kBlocks}, {"tiles_m", &e.p.tilesM}, {"tiles_n", &e.p.tilesN}, {"tiles", &e.p.tiles},
		{"group_m", &e.p.groupM}, {"m", &e.p.m}, {"n", &e.p.n}, {"last_m", &e.p.lastM}, {"last_n", &e.p.lastN},
		{"blocks_per_split", &e.p.blocksPerSplit}, {"per_split", &e.p.perSplit}, {"splits", &e.p.splits},
		{"whole", &e.p.whole}, {"share", &e.p.share}, {"shared", &e.p.shared},
	} {
		*param.to = e.Param(param.name, ptx.U32)
	}
	e.p.partials, e.p.counters = e.Param("partials", ptx.U64), e.Param("counters", ptx.U64)
	e.ranks()
	tid := e.Special(ptx.TidX)
	thread, consumer := e.And(tid, warpgroup-1), e.Shr(tid, 7)
	sums := make([][]ptx.Operand, g.tiles)
	for i := range sums {
		sums[i] = e.Regs(g.columns/2, e.F32)
	}
	e.eachTile("reduce", func(tile tile) {
		done, count, times, odd := e.Label("done"), e.F32(), e.B32(), e.F32()
		e.CvtF32S32(count, tile.blocks)
		e.MulLoS32(times, tile.blocks, tid)
		first := e.F32()
		e.CvtF32S32(first, times)
		e.CvtF32S32(odd, e.Add(tile.k0, ptx.Int(1)))
		e.MulF32(odd, odd, ptx.Float(0.1))
		for _, of := range sums {
			for i, v := range of {
				e.MovF32(v, []ptx.Operand{count, first, odd, odd}[i%4])
			}
		}
		if g.cluster > 1 {
			e.If(tile.outside).Bra(done)
		}
		e.reduce(tile, thread, consumer, sums, done)
		// A lane's place: its tile by row, column and matrix, then its thread.
		at, to, n := e.B32(), e.B64(), e.F32()
		e.MadLoS32(at, tile.batch, e.Param32(e.p.tilesM), tile.row)
		e.MadLoS32(at, at, ptx.Int(g.clusterM), e.rankM)
		e.MadLoS32(at, at, e.Param32(e.p.tilesN), tile.column)
		e.MadLoS32(at, at, ptx.Int(g.clusterN), e.rankN)
		e.MadLoS32(at, at, ptx.Int(warpgroup*g.consumers), tid)
		e.CvtaToGlobalU64(to, e.Param64(out))
		e.MadWideU32(to, at, ptx.Int(20), to)
		e.LdGlobalF32(n, ptx.Global(to, 0))
		e.AddF32(n, n, ptx.Float(1))
		e.StGlobalF32(ptx.Global(to, 0), n)
		last := sums[g.tiles-1]
		for i, v := range last[len(last)-4:] {
			e.StGlobalF32(ptx.Global(to, 4+4*i), v)
		}
		e.Place(done)
	})
	e.Ret()
	k, err := e.Build(hopper.Target)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestReduce: whatever the order in which CTAs arrive, each thread that multiplies stores each tile once, with the sum
// over all its blocks, to the same bits. The counters are zero afterwards, so that the next launch can use them.
// Nothing is read of the workspace that was not written before.
func TestReduce(t *testing.T) {
	for _, c := range []struct {
		config  string
		m, n, k int
		batch   int
		ctas    int
	}{
		{"64x16x64,warps=8,stages=2,stream_k=1", 64 * 3, 16 * 3, 64 * 7, 1, 4},
		{"64x16x64,warps=8,stages=2,stream_k=1", 64, 16, 64 * 40, 1, 5},
		{"64x16x64,warps=8,stages=2,stream_k=1", 64 * 2, 16 * 5, 64 * 9, 2, 7},
		{"128x16x64,warps=12,stages=2,stream_k=1,cluster=2", 128 * 3, 16 * 2, 64 * 11, 1, 6},
		{"192x32x64,warps=16,stages=2,stream_k=1", 192, 32 * 3, 64 * 13, 1, 2},
		{"64x16x64,warps=8,stages=2,split=3", 64 * 2, 16 * 2, 64 * 7, 2, 4},
		{"128x16x64,warps=8,stages=2,split=4,cluster=2", 128 * 3, 16, 64 * 8, 1, 4},
		{"64x16x64,warps=8,stages=2,split=3,cluster_n=2", 64 * 2, 16 * 3, 64 * 7, 2, 6},
		{"64x16x64,warps=8,stages=2,stream_k=1,cluster_n=2", 64 * 3, 16 * 3, 64 * 7, 1, 6},
		{"16x64x64,warps=8,stages=2,split=2,cluster_n=2", 16 * 3, 64 * 3, 64 * 7, 1, 8},
	} {
		t.Run(fmt.Sprintf("%s of %dx%dx%d", c.config, c.m, c.n, c.k), func(t *testing.T) {
			s := spec(t, c.config, "kk", gemm.FP16, gemm.FP32)
			s.TilesC, s.Processors = false, c.ctas
			call := gemmgen.NewCall(problem(c.m, c.n, c.k, c.batch, false, true))
			call.Partials, call.Counters = addressPartials, addressCounters
			l, err := s.Launch(emit(t, s), call)
			if err != nil {
				t.Fatal(err)
			}
			values := gentest.Params(emit(t, s).Kernel, l.Params)
			partials, counters := gemmgen.WorkspaceOf(s, call.Problem, s.Config)
			k := reducer(t, s)
			threads := warpgroup * (s.Config.NumWarps/4 - 1)
			tiles := c.m / s.Config.BlockM * (c.n / s.Config.BlockN) * c.batch
			alongM, alongN := Cluster(s.Config)
			room := int(values["tiles_m"]) * alongM * int(values["tiles_n"]) * alongN * c.batch
			memory := emu.Memory{
				addressPartials: slices.Repeat([]byte{0xFF}, int(partials)), addressCounters: make([]byte, int(counters)),
			}
			values["out"], values["m"], values["n"] = addressOut, uint64(c.m), uint64(c.n)
			var before []byte
			for _, backwards := range []bool{false, true, false} {
				out := make([]byte, room*threads*20)
				memory[addressOut] = out
				if err := emu.Run(emu.Launch{Text: k.Text, Params: gemmgen.Pack(k, values), Grid: [3]int{l.GridX, 1, 1},
					Threads: threads, Backwards: backwards}, memory); err != nil {
					t.Fatal(err)
				}
				if got := stored(t, out, threads, c.k/64); got != tiles {
					t.Fatalf("%d tiles are stored, want %d", got, tiles)
				}
				if before != nil && !bytes.Equal(before, out) {
					t.Fatal("another order of arrival gives other sums")
				}
				before = out
				if slices.ContainsFunc(memory[addressCounters], func(b byte) bool { return b != 0 }) {
					t.Fatal("a counter is not zero")
				}
			}
		})
	}
}

// stored checks what the lanes wrote of the tiles that are there, and counts these.
func stored(t *testing.T, out []byte, threads, blocks int) (tiles int) {
	t.Helper()
	for i := 0; i < len(out); i += 20 {
		var v [5]float32
		for j := range v {
			v[j] = math.Float32frombits(binary.LittleEndian.Uint32(out[i+4*j:]))
		}
		thread := i / 20 % threads
		if v == [5]float32{} && thread == 0 {
			i += (threads - 1) * 20 // a tile outside of C
			continue
		}
		if v[0] != 1 || v[1] != float32(blocks) || v[2] != float32(blocks*thread) || v[3] != v[4] || !(v[3] > 0) {
			t.Fatalf("thread %d of tile %d has %v, of %d blocks", thread, i/20/threads, v, blocks)
		}
		if thread == 0 {
			tiles++
		}
	}
	return tiles
}
