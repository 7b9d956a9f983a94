package mma

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// TileSpace is the candidate list of a model that distinguishes only tiles. SortLaunches chooses among the launches
// of a tile.
func (f Family) TileSpace() arch.Space {
	s := f.Space()
	s.SplitK = []int{1}
	return s
}

// CheckTile is Check.
func (Family) CheckTile(d *gpu.Device, o kernel.Operands, c *gemm.Config) (arch.Reason, string) {
	_, reason, detail := check(d, o, *c)
	return reason, detail
}

// SortLaunches orders the configurations of each tile, which are adjacent, by warps and stages, the best first, for a
// model that does not distinguish them.
func (Family) SortLaunches(d *gpu.Device, o kernel.Operands, configs []gemm.Config) {
	for first := 0; first < len(configs); {
		end := first + 1
		for end < len(configs) && sameTile(&configs[end], &configs[first]) {
			end++
		}
		warps := suitableWarps(d, o, configs[first])
		slices.SortStableFunc(configs[first:end], func(a, b gemm.Config) int {
			if d := distance(a.NumWarps, warps) - distance(b.NumWarps, warps); d != 0 {
				return d
			}
			return stageRank(a.NumStages) - stageRank(b.NumStages)
		})
		first = end
	}
}

func sameTile(a, b *gemm.Config) bool {
	return a.BlockM == b.BlockM && a.BlockN == b.BlockN && a.BlockK == b.BlockK
}

func distance(a, b int) int { return max(a-b, b-a) }

// smBalance is the number of operations of an SM's tensor cores with mma.sync per byte from its shared memory: 2048
// FLOP/cycle (312 TFLOP/s ÷ 108 SMs ÷ 1.41 GHz; NVIDIA A100 data sheet 2188504) ÷ 128 B/cycle (32 banks of 4 B; CUDA
// C++ Programming Guide, Shared Memory).
const smBalance = 16

// suitableWarps returns the best number of warps for a tile. It is eight, two for each of the four schedulers of an
// SM, so that one warp's reads of shared memory overlap the other's matrix instructions. That needs enough
// operations: per k16 step a warp with a w_m × w_n part reads 32·(w_m + w_n) bytes and does 32·w_m·w_n operations.
// Below smBalance operations per byte, reading takes longer than computing, and four warps, with larger parts, are
// better.
func suitableWarps(d *gpu.Device, o kernel.Operands, c gemm.Config) int {
	c.NumWarps, c.NumStages = 8, enoughStages
	r, _, _ := check(d, o, c)
	if r.WarpsM == 0 || r.WarpsK > 1 {
		return 4
	}
	m, n := c.BlockM/r.WarpsM, c.BlockN/r.WarpsN
	if m*n < smBalance*(m+n) {
		return 4
	}
	return 8
}

// stageRank ranks pipeline depths: first the depths up to enoughStages, the deepest first, then deeper ones. Those
// hide no more latency and take more shared memory.
func stageRank(stages int) int {
	if stages <= enoughStages {
		return enoughStages - stages
	}
	return stages
}

// enoughStages is the depth beyond which a pipeline hides nothing more. With it three blocks are on their way while
// one is computed. By Little's law an SM needs as many bytes in flight as DRAM delivers to it in the time of one
// access, hbm_latency_penalty · dram_perf_ratio ÷ num_sms: 2 to 17 KiB on the devices of models that know tiles only.
// Three blocks of 64×64×32 and above are at least twice that, but 1.7 times on the H20, whose 78 SMs share 4 TB/s, and
// 1.4 times on the H20-3e, whose 78 SMs share 4.8 TB/s.
const enoughStages = 4
