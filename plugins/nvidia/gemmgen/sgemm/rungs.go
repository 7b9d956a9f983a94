package sgemm

import (
	"github.com/origami-gemm/origami/core/gemm"
)

// Rung is a configuration that a public SGEMM ladder made known.
type Rung struct {
	// Name is the name of the rung, Doc what it adds to those before.
	Name, Doc string
	Config    gemm.Config
}

// The names of the first rungs, which others refer to.
const (
	RungNaive        = "naive"
	RungTiled        = "tiled"
	RungPadded       = "padded"
	RungDoubleBuffer = "double-buffer"
	RungWMMA         = "wmma"
)

// Rungs returns the ladder from the bottom. Naive to wmma come from LessUp/sgemm-optimization. The first and the
// others come from siboehm/SGEMM_CUDA with its block sizes, with a pipelined kernel at the top.
func Rungs() []Rung {
	rungs := make([]Rung, len(ladder))
	for i, r := range ladder {
		c, err := gemm.ParseConfig(r.config, gemm.Config{GroupM: 1, SplitK: 1, Kernel: Name}, axes...)
		if err != nil {
			panic(err) // the table is wrong, which a test would have seen
		}
		rungs[i] = Rung{Name: r.name, Doc: r.doc, Config: c}
	}
	return rungs
}

// FindRung returns the rung of a name.
func FindRung(name string) (r Rung, ok bool) {
	for _, r := range Rungs() {
		if r.Name == name {
			return r, true
		}
	}
	return r, false
}

const (
	oneElement = ",thread_m=1,lanes_m=1"
	oneTile    = "32x32x32,warps=32,staging=registers" + oneElement + ",shared_a=k,copy_width=1"
)

const (
	naive   = ",warps=32,stages=1,staging=none,thread_m=1"
	tile2D  = "128x128x8,warps=8,stages=1,staging=registers,lanes_m=2"
	warped  = "128x128x16,warps=4,staging=registers,lanes_m=8"
	topRung = warped + ",stages=2,pad=a4,group=8"
)

var ladder = []struct{ name, doc, config string }{
	{
		"naive-uncoalesced", "one element of C per thread; neighbours along M, so that each reads another row of B's line",
		"32x32x4" + naive + ",lanes_m=32",
	},
	{RungNaive, "one element of C per thread, operands from global memory", "32x32x8" + naive + ",lanes_m=1"},
	{RungTiled, "tiles of 32x32 in shared memory", oneTile + ",stages=1"},
	{RungPadded, "rows of 33 words in shared memory", oneTile + ",stages=1,pad=1"},
	{
		RungDoubleBuffer, "two padded buffers; the next tile is loaded before this one is multiplied",
		oneTile + ",stages=2,pad=1",
	},
	{
		RungWMMA, "tensor cores in fp16, a tile of 16x16 per warp, fragments from global memory",
		"16x16x16,warps=1,stages=1,staging=none,math=wmma",
	},
	{
		"register-1d", "eight rows of C per thread",
		"64x64x8,warps=16,stages=1,staging=registers,lanes_m=1,lane_map=block,shared_a=k,copy_width=1",
	},
	{
		"register-2d", "8x8 elements of C per thread",
		tile2D + ",lane_map=block,shared_a=k,copy_width=1,read_width=a1b4",
	},
	{"vectorised", "copies of four elements; A transposed in shared memory", tile2D + ",lane_map=block"},
	{"linearised", "lanes read side by side in B, one word each", tile2D + ",read_width=a4b1"},
	{"offset", "rows of B are 133 words apart, so that lanes read other banks", tile2D + ",lane_map=block,pad=b5"},
	{
		"autotuned", "16 indices along K per block",
		"128x128x16,warps=8,stages=1,staging=registers,lanes_m=2,lane_map=block",
	},
	{"warp-tile", "warps have square parts of the tile, lanes take turns; 8x16 elements per thread", warped + ",stages=1"},
	{"warp-tile-double", "two buffers; the next block is loaded before this one is multiplied", warped + ",stages=2"},
	{"pipelined", "no bank conflicts beyond two, and a launch order for the L2", topRung},
}
