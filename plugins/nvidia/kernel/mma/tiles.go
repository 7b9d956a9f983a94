package mma

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// TileSpace is the candidate list of a model that knows tiles only: it leaves the choice among a tile's launches to
// SortLaunches.
func (f Family) TileSpace() arch.Space { return f.Space() }

// CheckTile is Check.
func (Family) CheckTile(d *gpu.Device, o kernel.Operands, c *gemm.Config) (arch.Reason, string) {
	_, reason, detail := check(d, o, *c)
	return reason, detail
}

// RejectTiles applies CheckTile to a list.
func (f Family) RejectTiles(d *gpu.Device, o kernel.Operands, dst []arch.Estimate, configs []gemm.Config) {
	for i := range configs {
		dst[i].Reject, _ = f.CheckTile(d, o, &configs[i])
	}
}

// SortLaunches orders the configurations of each tile, which stand together, by how sensible their warps and stages
// are, for a model that does not tell them apart.
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

// smBalance is how many operations the tensor cores of an SM do, with mma.sync, in the time in which its shared
// memory delivers a byte: 2048 FLOP/cycle (312 TFLOP/s ÷ 108 SMs ÷ 1.41 GHz; NVIDIA A100 data sheet 2188504) ÷ 128
// B/cycle (32 banks of 4 B; CUDA C++ Programming Guide, Shared Memory).
const smBalance = 16

// suitableWarps returns how many warps suit a tile. Eight, two for each of an SM's four schedulers, so that one's
// reads of shared memory hide behind the other's matrix instructions – if they can: per k16 step a warp with a w_m ×
// w_n part reads 32·(w_m + w_n) bytes and does 32·w_m·w_n operations, and below smBalance operations per byte reading
// takes longer than computing. Then four, whose parts are larger.
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

// stageRank ranks pipeline depths: the deepest up to enoughStages, then deeper ones, which hide nothing more and take
// shared memory.
func stageRank(stages int) int {
	if stages <= enoughStages {
		return enoughStages - stages
	}
	return stages
}

// enoughStages is the depth beyond which a pipeline hides nothing more. With it three blocks are on their way while
// one is computed. By Little's law an SM needs as many bytes in flight as DRAM delivers to it in the time of one
// access, hbm_latency_penalty · dram_perf_ratio ÷ num_sms: 2 to 10 KiB on the devices of models that know tiles only.
// Three blocks of 64×64×32 and above are at least twice that.
const enoughStages = 4
