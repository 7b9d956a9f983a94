package tablecmd

import (
	"context"
	"math/bits"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
)

// fitting returns a model whose candidates have room in shared memory as vLLM's kernel uses it.
func fitting(ctx context.Context, a arch.Architecture, kernel string) (arch.Architecture, error) {
	d := a.Describe()
	memory, ok := hw.Set(d.Params).Lookup("shared_memory_bytes")
	if !ok {
		return nil, diag.Inputf("nobody says how much shared memory %s has", d.ID()).Do("choose another device")
	}
	list, err := a.Candidates(ctx, linear(sizes[len(sizes)-1], 4096, 4096), arch.Space{Kernel: kernel})
	if err != nil {
		return nil, err
	}
	return arch.WithCandidates(a, slices.DeleteFunc(slices.Clone(list.Configs), func(c gemm.Config) bool {
		return float64(sharedBytes(&c, d.Arch)) > memory.Value || isTensor(&c, d.Arch) && c.BlockM*c.BlockN > mostSums
	})), nil
}

// isTensor reports whether the kernel has its sums in tensor memory. vLLM's kernel begins a tile while it stores the
// one before, so tensor memory has to hold two tiles, each of at most mostSums.
func isTensor(c *gemm.Config, id string) bool { return strings.HasPrefix(id, "sm10") && c.BlockM >= 64 }

const mostSums = 128 * 512 / 2

// sharedBytes is the shared memory of vLLM's kernel for bf16. The copies in flight need some, and so does the tile that
// is being stored. Triton runs the kernel's loops over tiles and over K as one, so both are live together. In the
// kernels that the models know, they share memory: the models' rule does not hold here.
// testdata/vllm-0.33.0/shared.csv has what the compiler says: this, for each tile.
func sharedBytes(c *gemm.Config, id string) int {
	wgmma, tensor := id == "sm90" && c.BlockM >= 64, isTensor(c, id)
	copies := max(c.NumStages-1, 1)
	if wgmma || tensor { // the instruction still reads a copy when the next one begins
		copies = c.NumStages
	}
	inFlight := bf16Bytes * copies * (c.BlockM + c.BlockN) * c.BlockK
	if tensor {
		return inFlight + barriers + tensorStagedBytes(c)
	}
	stmatrix := id != "sm80" && id != "sm86" && id != "sm89"
	return inFlight + stagedBytes(c, wgmma, stmatrix)
}

// barriers is the shared memory of the two barriers for which a tcgen05.mma arrives.
const barriers = 16

// tensorStagedBytes is stagedBytes of sums that come from tensor memory, a row per thread, at most: a quarter of the
// tile, or all of it for few sums per thread and narrow tiles, and half of that if threads have two rows.
func tensorStagedBytes(c *gemm.Config) int {
	staged := bf16Bytes * c.BlockM * c.BlockN
	if c.BlockM*c.BlockN >= 32*32*c.NumWarps && c.BlockN >= 32 {
		staged /= 4
	}
	if c.BlockM > 32*c.NumWarps {
		staged /= 2
	}
	return staged
}

const bf16Bytes = 2

// stagedBytes is the shared memory in which Triton brings the sums of a tile into the order of rows, as the plugin's
// triton.staging explains: the tile, halved for each bit of the row that selects between registers of one thread.
// stmatrix is the instruction that stores matrices.
func stagedBytes(c *gemm.Config, wgmma, stmatrix bool) int {
	warpsM, warpsN := 1, 1
	for left, right := c.BlockM/16, c.BlockN/8; warpsM*warpsN < c.NumWarps; {
		if wgmma && left > 1 || !wgmma && (left >= right || right <= 1) {
			warpsM, left = 2*warpsM, left/2
		} else {
			warpsN, right = 2*warpsN, right/2
		}
	}
	perThread := min(max(c.BlockM*c.BlockN/(32*c.NumWarps), 1), 16/bf16Bytes)
	lanes := min(max(c.BlockN/perThread, 1), 32)
	first := log2(32/lanes) + log2(c.NumWarps)
	halved := max(log2(c.BlockM)-max(first, 4+log2(warpsM)), 0)
	if first <= 3 {
		halved++
	}
	if !stmatrix && (warpsN > 1 || c.BlockN < 32) && (c.BlockN < 256 || warpsN > 4) {
		halved = max(halved-2, 0)
	}
	return bf16Bytes * c.BlockM * c.BlockN >> halved
}

// log2 is the exponent of the largest power of two up to v, which is at least one.
func log2(v int) int { return bits.Len(uint(v)) - 1 }
