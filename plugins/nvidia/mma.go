package nvidia

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/mma"
)

// KernelMMA is the family of kernels that gemmgen/mma generates.
const KernelMMA = mma.Name

// mmaSpec is what a kernel of the family is generated from. Whether that can be does not depend on the sizes of the
// problem, so operands are taken to be aligned.
func mmaSpec(p *gemm.Problem, c *gemm.Config) mma.Spec {
	return mma.Spec{DType: p.DType, Out: p.DType, AMajor: p.AMajor, BMajor: p.BMajor, AlignA: 16, AlignB: 16, AlignC: 16, Config: *c}
}

// limits are what a device lets a kernel use.
func limits(d *arch.Description) gemmgen.Limits {
	return gemmgen.Limits{
		RegistersPerThread: d.RegistersPerThread, RegisterFile: d.RegisterFile, SharedMemory: d.SharedMemory,
	}
}

// sortMMA orders the configurations of each tile, which stand together, by how sensible their warps and stages are. The
// model does not tell them apart, so this is what decides between them.
func sortMMA(p *gemm.Problem, configs []gemm.Config) {
	for first := 0; first < len(configs); {
		end := first + 1
		for end < len(configs) && sameTile(&configs[end], &configs[first]) {
			end++
		}
		warps := mmaWarps(p, configs[first])
		slices.SortStableFunc(configs[first:end], func(a, b gemm.Config) int {
			if d := distance(a.NumWarps, warps) - distance(b.NumWarps, warps); d != 0 {
				return d
			}
			return mmaDepth(a.NumStages) - mmaDepth(b.NumStages)
		})
		first = end
	}
}

func sameTile(a, b *gemm.Config) bool {
	return a.BlockM == b.BlockM && a.BlockN == b.BlockN && a.BlockK == b.BlockK
}

func distance(a, b int) int { return max(a-b, b-a) }

// smBalance is how many operations the tensor cores of an SM do, with mma.sync, in the time in which its shared memory
// delivers a byte: 2048 FLOP/cycle (312 TFLOP/s ÷ 108 SMs ÷ 1.41 GHz; NVIDIA A100 data sheet 2188504) ÷ 128 B/cycle (32 banks
// of 4 B; CUDA C++ Programming Guide, Shared Memory).
const smBalance = 16

// mmaWarps returns how many warps suit a tile. Eight, two for each of an SM's four schedulers, so that one's reads of
// shared memory hide behind the other's matrix instructions – if they can: per k16 step a warp with a w_m × w_n part
// reads 32·(w_m + w_n) bytes and does 32·w_m·w_n operations, and below smBalance operations per byte reading takes longer
// than computing. Then four, whose parts are larger.
func mmaWarps(p *gemm.Problem, c gemm.Config) int {
	c.NumWarps, c.NumStages = 8, mmaStages
	r, _, _ := mmaSpec(p, &c).Resources()
	if r.WarpsM == 0 || r.WarpsK > 1 {
		return 4
	}
	m, n := c.BlockM/r.WarpsM, c.BlockN/r.WarpsN
	if m*n < smBalance*(m+n) {
		return 4
	}
	return 8
}

// mmaDepth ranks pipeline depths: the deepest up to mmaStages, then deeper ones, which hide nothing more and take shared
// memory.
func mmaDepth(stages int) int {
	if stages <= mmaStages {
		return mmaStages - stages
	}
	return stages
}

// mmaStages is the depth beyond which a pipeline hides nothing more. With it three blocks are on their way while one is
// computed. By Little's law an SM needs as many bytes in flight as DRAM delivers to it in the time of one access,
// hbm_latency_penalty · dram_perf_ratio ÷ num_sms: 2 to 10 KiB on the devices of configs/. Three blocks of 64×64×32 and
// above are at least twice that.
const mmaStages = 4
