package emulated

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/wgmma"
)

// limits are what devices of today let a kernel use.
var limits = gemmgen.Limits{RegistersPerThread: 255, RegisterFile: 65536, SharedMemory: 227 << 10}

// warpgroup is the threads that execute wgmma together.
const warpgroup = 128

// part reads the text of a part of a kernel, which TestParts of package wgmma keeps up to date: the emulator does not
// have wgmma, nor copies of the engine.
func part(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile("../wgmma/testdata/part-" + name + ".sm_90a.ptx"))(t)
	return string(text)
}

// pack returns the parameter buffer of a kernel.
func pack(text string, values map[string]uint64) []byte {
	var b []byte
	for _, m := range params.FindAllStringSubmatch(text, -1) {
		bits, _ := strconv.Atoi(m[1])
		for len(b)%(bits/8) > 0 {
			b = append(b, 0)
		}
		b = append(b, binary.LittleEndian.AppendUint64(nil, values[m[2]])[:bits/8]...)
	}
	return b
}

func wgmmaConfig(t *testing.T, config string) gemm.Config {
	t.Helper()
	c := must.Get(gemm.ParseConfig(config, gemm.Config{SplitK: 1}, wgmma.Family{}.Axes()...))(t)
	c.Kernel = wgmma.Name
	return c
}

// launchOf returns the launch of a problem of fp16 on so many SMs, with its parameters by name.
func launchOf(t *testing.T, p gemm.Problem, config string, sms int) (
	gemmgen.Launch, gemmgen.Program, gemm.Config, map[string]uint64,
) {
	t.Helper()
	c, hopper := wgmmaConfig(t, config), limits
	hopper.Processors, hopper.Target = sms, wgmma.Family{}.Target()
	call := gemmgen.NewCall(p)
	call.Partials, call.Counters = addressPartials, addressCounters
	s, reason, detail := wgmma.Family{}.Program(call, gemm.FP32, c, hopper)
	must.Need(t, reason == "", "%s: %s: %s", config, reason, detail)
	k := must.Get(s.Emit(hopper.Target))(t)
	l := must.Get(s.Launch(k, call))(t)
	return l, s, c, gentest.Params(k.Kernel, l.Params)
}

// Addresses for the part reduce.
const (
	addressOut      = 1 << 32
	addressPartials = 2 << 32
	addressCounters = 3 << 32
)

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
		{"64x16x64,warps=8,stages=4,split=2,cluster=2x2", 64 * 3, 16 * 3, 64 * 7, 1, 8},
		{"16x64x64,warps=8,stages=2,split=2,cluster_n=2", 16 * 3, 64 * 3, 64 * 7, 1, 8},
		{"64x16x64,warps=8,stages=2,split=4,tree=4", 64 * 2, 16 * 2, 64 * 12, 1, 4},
		{"16x64x64,warps=8,stages=2,split=2,cluster_n=2,tree=8", 16 * 3, 64 * 3, 64 * 16, 1, 8},
		{"128x32x64,warps=12,stages=2,tree=8", 128 * 3, 32 * 2, 64 * 24, 1, 4},
		{"64x256x64,warps=8,stages=2,tree=8", 64 * 3, 256, 64 * 8, 1, 2},
		{"64x256x64,warps=8,stages=4,tree=8", 64 * 3, 256, 64 * 8, 1, 2},
	} {
		t.Run(fmt.Sprintf("%s of %dx%dx%d", c.config, c.m, c.n, c.k), func(t *testing.T) {
			p := gemm.New(c.m, c.n, c.k)
			p.Batch = c.batch
			p.SetTrans(false, true)
			l, program, config, values := launchOf(t, p, c.config, c.ctas)
			partials, counters := gemmgen.WorkspaceOf(program, p, config)
			text := part(t, "reduce-"+c.config)
			threads := warpgroup * (config.NumWarps/4 - 1)
			tiles := c.m / config.BlockM * (c.n / config.BlockN) * c.batch
			alongM, alongN := wgmma.Cluster(config)
			room := int(values["tiles_m"]) * alongM * int(values["tiles_n"]) * alongN * c.batch
			memory := Memory{
				addressPartials: slices.Repeat([]byte{0xFF}, int(partials)), addressCounters: make([]byte, int(counters)),
			}
			values["out"], values["m"], values["n"] = addressOut, uint64(c.m), uint64(c.n)
			var before []byte
			for _, backwards := range []bool{false, true, false} {
				out := make([]byte, room*threads*20)
				memory[addressOut] = out
				must.Do(t, Run(Launch{Text: text, Params: pack(text, values), Grid: [3]int{l.GridX, 1, 1},
					Threads: threads, Shared: int(limits.SharedMemory), Backwards: backwards}, memory))
				if got := reduced(t, out, threads, c.k/64); got != tiles {
					t.Fatalf("%d tiles are stored, want %d", got, tiles)
				}
				must.Need(t, before == nil || bytes.Equal(before, out), "another order of arrival gives other sums")
				before = out
				if leaves := wgmma.Leaves(config); leaves > 1 {
					got, want := math.Float32frombits(binary.LittleEndian.Uint32(out[12:])), treeOf(0, leaves, c.k/leaves)
					must.Need(t, got == want, "the tree has %v, want %v", got, want)
				}
				must.Need(t, !slices.ContainsFunc(memory[addressCounters], func(b byte) bool { return b != 0 }),
					"a counter is not zero")
			}
		})
	}
}

// treeOf is the sum of leaves in a binary tree, in a plain recursion: the upper half is added to the lower. A leaf has
// what the part reduce gives a block whose first index is that of the leaf.
func treeOf(first, leaves, width int) float32 {
	if leaves == 1 {
		return float32(first*width+1) * float32(0.1)
	}
	half := leaves / 2
	return treeOf(first, half, width) + treeOf(first+half, half, width)
}

// reduced checks what the lanes wrote of the tiles that are there, and counts these.
func reduced(t *testing.T, out []byte, threads, blocks int) (tiles int) {
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

// share is what a cluster does next: which blocks along K of which tile, and where its sums go.
type share struct{ tile, k0, blocks, partial, mine, first, next, count, counter, arrives, all uint32 }

const shareWords = 11

// walk runs the instructions that share tiles among clusters, and returns the shares of each cluster.
func walk(t *testing.T, values map[string]uint64, blocks, clusters int) [][]share {
	t.Helper()
	const address = 1 << 32
	room := (int(values["whole"])+clusters-1)/clusters + int(values["share"])/blocks + 3
	memory := make([]byte, clusters*room*4*shareWords)
	text := part(t, "walk")
	values["out"], values["most"] = address, uint64(room)
	must.Do(t, Run(Launch{Text: text, Params: pack(text, values), Grid: [3]int{clusters, 1, 1}, Threads: 1},
		Memory{address: memory}))
	all := make([][]share, clusters)
	for i := range all {
		for j := range room {
			var p share
			at := memory[(i*room+j)*4*shareWords:]
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
		p := gemm.New(64, 16*tiles, 64*blocks)
		p.SetTrans(false, true)
		l, _, _, values := launchOf(t, p, "64x16x64,warps=8,stages=2,stream_k=1", clusters)
		if clusters = min(clusters, l.GridX); values["whole"]%uint64(clusters) != 0 {
			t.Fatalf("%d tiles on %d clusters: %v", tiles, clusters, values)
		}
		covered := make([][]*share, tiles) // by block
		taken := map[uint32]bool{}
		arrived := map[uint32]uint32{}
		for _, parts := range walk(t, values, blocks, clusters) {
			for i := range parts {
				p := &parts[i]
				if int(p.tile) >= tiles || p.partial == 0 != (int(p.blocks) == blocks) {
					t.Fatalf("%d tiles of %d blocks on %d clusters: %+v", tiles, blocks, clusters, *p)
				}
				if covered[p.tile] == nil {
					covered[p.tile] = make([]*share, blocks)
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
				must.Need(t, !taken[p.mine] && p.mine < uint32(2*clusters),
					"%d tiles of %d blocks on %d clusters: block %d of the workspace", tiles, blocks, clusters, p.mine)
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
func checkTiles(t *testing.T, covered [][]*share) {
	t.Helper()
	for tile, row := range covered {
		var in []*share
		for at, p := range row {
			must.Need(t, p != nil, "block %d of tile %d is missing", at, tile)
			if len(in) == 0 || in[len(in)-1] != p {
				in = append(in, p)
			}
		}
		must.Need(t, row != nil, "tile %d is missing", tile)
		if in[0].partial == 0 {
			continue
		}
		for i, p := range in {
			want := p.first
			if i > 0 {
				want = p.next + 2*uint32(i-1)
			}
			must.Need(t, p.mine == want && int(p.count) == len(in),
				"part %d of %d of tile %d is in block %d, want %d of %d", i, len(in), tile, p.mine, want, p.count)
		}
	}
}

// TestOrderAlongK: whatever M, every tile is the sum of the same blocks along K in the same order if the launch does
// not skew them. With a skew, a single row of tiles has other orders than several rows. No block is left out, or
// taken twice.
func TestOrderAlongK(t *testing.T) {
	for _, config := range []string{
		"64x16x64,warps=8,stages=2", "8x64x128,warps=8,stages=2", "128x32x64,warps=12,stages=2,cluster=2",
		"64x16x64,warps=8,stages=2,cluster_n=2",
	} {
		c := wgmmaConfig(t, config)
		blocks, skewed := 17, 0
		for _, m := range []int{1, 3, 8, 9, 64, 65, 128, 129, 200, 1000} {
			for _, skew := range []string{",skew=0", ""} {
				p := gemm.New(m, 40*c.BlockN, c.BlockK*blocks-8)
				p.SetTrans(false, true)
				p.Batch = 2
				l, _, _, values := launchOf(t, p, config+skew, 8)
				alongM, alongN := wgmma.Cluster(c)
				tiles := int(values["tiles_m"]) * alongM * int(values["tiles_n"]) * alongN * p.Batch
				out := make([]byte, 4*tiles*blocks)
				values["out"] = addressOut
				text := part(t, "order-"+config)
				must.Do(t, Run(Launch{Text: text, Params: pack(text, values), Grid: [3]int{l.GridX, 1, 1}, Threads: 1},
					Memory{addressOut: out}))
				for tile := range tiles {
					first := int(binary.LittleEndian.Uint32(out[4*tile*blocks:])) - 1
					if first > 0 {
						skewed++
					}
					for turn := range blocks {
						k := int(binary.LittleEndian.Uint32(out[4*(tile*blocks+turn):])) - 1
						must.Need(t, k == (first+turn*c.BlockK)%(blocks*c.BlockK),
							"%s of %s: block %d of tile %d begins at %d of K, the first at %d", config+skew, p, turn, tile, k, first)
					}
					must.Need(t, skew == "" || first == 0, "%s of %s: tile %d begins at %d of K", config+skew, p, tile, first)
				}
			}
		}
		must.That(t, skewed != 0, "%s: no tile begins at another place, so that skew=0 changes nothing", config)
	}
}
