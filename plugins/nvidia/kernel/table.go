package kernel

import (
	"bytes"
	"strconv"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// Table has a compiler's report on the kernels of one family for one architecture, packed.
type Table []byte

// resourceNumbers is the length of Resources.numbers.
const resourceNumbers = 3

func (r Resources) numbers() []float64 {
	return []float64{float64(r.Registers), float64(r.SpillBytes), float64(r.SharedMemory)}
}

func resourcesOf(v []float64) Resources {
	return Resources{Registers: int(v[0]), SpillBytes: int(v[1]), SharedMemory: unit.Bytes(v[2])}
}

// SameKernels returns the element type under which the kernels of a type are compiled and timed. For bf16 it is fp16,
// because they differ only in the type suffix of the matrix instruction. Any other type has separate kernels.
func SameKernels(t gemm.DType) gemm.DType {
	if t == gemm.BF16 {
		return gemm.FP16
	}
	return t
}

// fileType is the element type of every kernel in these files, which have no column for it.
const fileType = gemm.FP16

// Find returns the compiler's report on a kernel. The kernels of a file make the widest accesses. If the kernel is only
// listed with masks of K, or only without, that report is used.
func (t Table) Find(o Operands, c *gemm.Config, masked bool) (Resources, bool) {
	if t == nil || o.Narrow() || c.Axes != (gemm.Axes{}) { // the file has no columns for axes: all are at their default
		return Resources{}, false
	}
	var v [resourceNumbers]float64
	if !find(t, keyOf(o.DType, c, masked), v[:]) && !find(t, keyOf(o.DType, c, !masked), v[:]) {
		return Resources{}, false
	}
	return resourcesOf(v[:]), true
}

// compiledPlace is the name of a file of compiled kernels in errors.
const compiledPlace = "the file of compiled kernels"

// ReadTable reads the built kernels of a kernels.csv (docs/measuring.md). If it has a column target, only the rows of
// the architecture count. If it has trans_a or trans_b, only the rows of row-major operands count.
func ReadTable(data []byte, sm *gpu.SM) (Table, error) {
	only := map[string]string{"target": strconv.Itoa(sm.Target.CC), "trans_a": "0", "trans_b": "0"}
	out := map[key]Resources{}
	err := dataset.EachCompiled(bytes.NewReader(data), compiledPlace, only, func(c *dataset.Compiled) error {
		r := &c.Resources
		if !c.Built {
			return nil
		}
		out[keyOf(fileType, &c.Config, !c.EvenK)] =
			Resources{Registers: r.Registers, SpillBytes: int(r.SpillBytes), SharedMemory: r.SharedMemory}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, diag.Inputf("no kernel of %s", sm.ID).At("%s", compiledPlace).
			Do("give the kernels of the architecture that is opened")
	}
	return pack(out), nil
}
