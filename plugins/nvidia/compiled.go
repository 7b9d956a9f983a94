package nvidia

import (
	"strconv"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/records"
)

// kernelTable is what a compiler reports of the kernels of triton, by what their text depends on.
type kernelTable map[compiledKey]resources

type compiledKey struct {
	blockM, blockN, blockK, stages, warps int16
	ragged                                bool
}

// find returns what the compiler reports of a kernel. A kernel that masks K and is not listed needs what it needs
// without masks, and the other way round.
func (k kernelTable) find(c *gemm.Config, ragged bool) (resources, bool) {
	if k == nil || c.Kernel == KernelMMA {
		return resources{}, false
	}
	key := compiledKey{int16(c.BlockM), int16(c.BlockN), int16(c.BlockK), int16(c.NumStages), int16(c.NumWarps), ragged}
	r, ok := k[key]
	if !ok {
		key.ragged = !ragged
		r, ok = k[key]
	}
	return r, ok
}

// compiledFile is a kernels.csv (docs/measuring.md). With a column target, only the rows of the architecture count; with
// trans_a or trans_b, those of row-major operands.
var compiledFile = kernelFile{
	place: "the file of compiled kernels", remedy: "give a kernels.csv as docs/measuring.md describes it",
	columns: []string{"bm", "bn", "bk", "stages", "warps", "even_k", "n_regs", "n_spills", "shared", "status"},
}

// readCompiled reads registers per thread, words spilled per thread and bytes of shared memory per CTA of each kernel. Rows
// without status "ok" were not built and are passed over.
func readCompiled(data []byte, target int) (kernelTable, error) {
	out, own := kernelTable{}, strconv.Itoa(target)
	err := compiledFile.each(data, func(row *kernelRow) error {
		if row.other("target", own) || row.other("trans_a", "0") || row.other("trans_b", "0") || row.other("status", "ok") {
			return nil
		}
		var v [9]int
		for i, name := range compiledFile.columns[:9] {
			var err error
			if v[i], err = strconv.Atoi(row.text(name)); err != nil || v[i] < 0 || v[i] > 1<<24 || i < 5 && v[i] > 1<<14 {
				return row.fault(name).Do("give a number")
			}
		}
		out[compiledKey{int16(v[0]), int16(v[1]), int16(v[2]), int16(v[3]), int16(v[4]), v[5] == 0}] =
			resources{Registers: v[6], SpillBytes: v[7] * wordBytes, SharedMemory: unit.Bytes(v[8])}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, diag.Inputf("no kernel of sm%d", target).At("%s", compiledFile.place).Do("give the kernels of the architecture that is opened")
	}
	return out, nil
}

// wordBytes is the size of a register.
const wordBytes = 4

// compiledFor returns the compiler's report for an opened architecture: the caller's file, or what is shipped, nil if
// there is none or the rung does not have it. Rungs build on each other: what is shipped counts where the device's
// bandwidths are measured.
func compiledFor(target int, params hw.Set, rung arch.Rung, file []byte) (kernelTable, error) {
	switch {
	case rung == arch.RungSpec || rung == arch.RungCalibrated:
		return nil, nil
	case file != nil:
		return readCompiled(file, target)
	case target == 90 && bandwidthsMeasured(params):
		return readCompiled(records.TritonH200, target)
	}
	return nil, nil
}
