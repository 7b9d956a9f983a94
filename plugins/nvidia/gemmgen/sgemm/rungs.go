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

// Rungs returns the ladder from the bottom. The first five are those of LessUp/sgemm-optimization, the others those of
// siboehm/SGEMM_CUDA with its block sizes, and a pipelined kernel at the top.
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

var ladder = []struct{ name, doc, config string }{
	{
		RungNaive, "one element of C per thread, operands from global memory",
		"32x32x4,warps=32,stages=1,staging=none" + oneElement,
	},
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
		"64x64x8,warps=16,stages=1,staging=registers,lanes_m=1,lane_map=block,shared_a=k,copy_width=1,read_width=1",
	},
	{
		"register-2d", "8x8 elements of C per thread",
		"128x128x8,warps=8,stages=1,staging=registers,lanes_m=2,lane_map=block,shared_a=k,copy_width=1,read_width=1",
	},
	{
		"vectorised", "copies and reads of four elements; A transposed in shared memory",
		"128x128x8,warps=8,stages=1,staging=registers,lanes_m=2,lane_map=block",
	},
	{
		"warp-tile", "warps have square parts of the tile, lanes take turns; 8x16 elements per thread",
		"128x128x16,warps=4,stages=1,staging=registers,lanes_m=8",
	},
	{
		"pipelined", "two buffers, the next block on its way while this one is multiplied; rows of A padded",
		"128x256x16,warps=8,stages=2,staging=registers,lanes_m=8,pad=4,group=8",
	},
}
