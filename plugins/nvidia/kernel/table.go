package kernel

import (
	"strconv"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// Table is what a compiler reports of the kernels of one family on one architecture.
type Table map[tableKey]Resources

// tableKey is everything that the text of a kernel depends on.
type tableKey struct {
	blockM, blockN, blockK, stages, warps int16
	dtype                                 gemm.DType
	masked                                bool
}

func newTableKey(t gemm.DType, c *gemm.Config, masked bool) tableKey {
	return tableKey{
		int16(c.BlockM), int16(c.BlockN), int16(c.BlockK), int16(c.NumStages), int16(c.NumWarps),
		SameKernels(t), masked,
	}
}

// SameKernels returns the element type under which the kernels of a type are compiled and timed: fp16 for bf16 too,
// since the two differ in the type suffix of the matrix instruction alone. Any other type has kernels to itself.
func SameKernels(t gemm.DType) gemm.DType {
	if t == gemm.BF16 {
		return gemm.FP16
	}
	return t
}

// fileType is the element type of every kernel in the files that are read here: they have no column for it.
const fileType = gemm.FP16

// Find returns what the compiler reports of a kernel. A kernel that masks K and is not listed needs what it needs
// without masks, and the other way round.
func (t Table) Find(d gemm.DType, c *gemm.Config, masked bool) (Resources, bool) {
	if t == nil || c.Axes != (gemm.Axes{}) { // the file has no columns for axes: all are at their default
		return Resources{}, false
	}
	key := newTableKey(d, c, masked)
	r, ok := t[key]
	if !ok {
		key.masked = !masked
		r, ok = t[key]
	}
	return r, ok
}

// compiledFile is a kernels.csv (docs/measuring.md). With a column target, only the rows of the architecture count;
// with trans_a or trans_b, those of row-major operands.
var compiledFile = file{
	place: "the file of compiled kernels", remedy: "give a kernels.csv as docs/measuring.md describes it",
	columns: []string{"bm", "bn", "bk", "stages", "warps", "even_k", "n_regs", "n_spills", "shared", "status"},
}

// compiledIntegers is how many of its columns are numbers, kernelIntegers how many of these belong to the
// configuration.
const compiledIntegers, kernelIntegers = 9, 5

// wordBytes is the size of a register.
const wordBytes = 4

// ReadTable reads registers per thread, words spilled per thread and bytes of shared memory per CTA of each kernel.
// Rows without status "ok" were not built and are passed over.
func ReadTable(data []byte, sm *gpu.SM) (Table, error) {
	out, target := Table{}, strconv.Itoa(sm.Target.CC)
	err := compiledFile.each(data, func(r *row) error {
		if r.other("target", target) || r.other("trans_a", "0") || r.other("trans_b", "0") || r.other("status", "ok") {
			return nil
		}
		var v [compiledIntegers]int
		for i, name := range compiledFile.columns[:compiledIntegers] {
			var err error
			v[i], err = strconv.Atoi(r.text(name))
			if err != nil || v[i] < 0 || v[i] > 1<<24 || i < kernelIntegers && v[i] > 1<<14 {
				return r.fault(name).Do("give a number")
			}
		}
		c := gemm.Config{BlockM: v[0], BlockN: v[1], BlockK: v[2], NumStages: v[3], NumWarps: v[4]}
		out[newTableKey(fileType, &c, v[5] == 0)] =
			Resources{Registers: v[6], SpillBytes: v[7] * wordBytes, SharedMemory: unit.Bytes(v[8])}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, diag.Inputf("no kernel of %s", sm.ID).At("%s", compiledFile.place).
			Do("give the kernels of the architecture that is opened")
	}
	return out, nil
}
