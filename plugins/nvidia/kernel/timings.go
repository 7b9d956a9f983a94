package kernel

import (
	"bytes"
	"iter"
	"math"
	"strconv"

	"github.com/origami-gemm/origami/core/columns"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Timings has the result of a timing pass over the kernels of one family on one device. The pass times each kernel
// alone, independent of problems. It is packed.
type Timings []byte

// Timing has the times of one kernel in seconds, for the two lengths of K: ShortK and LongK.
type Timing struct {
	// CTAs is the occupancy.
	CTAs float64
	// One: one CTA on the whole device. Chip: one CTA on every SM. Full: as many CTAs on every SM as fit.
	One, Chip, Full [2]float64
}

// The lengths of K in the pass.
const (
	ShortK = 2048
	LongK  = 6144
)

// Find returns the times of a kernel. Masked loads were not timed and count like the others.
func (t Timings) Find(o Operands, c *gemm.Config) (Timing, bool) {
	if t == nil || o.AMajor != gemm.MajorK || o.Narrow() || c.SplitK != 1 || c.Axes != (gemm.Axes{}) {
		return Timing{}, false
	}
	var v [timingNumbers]float64
	if !find(t, keyOf(o.DType, c, o.BMajor == gemm.MajorK), v[:]) {
		return Timing{}, false
	}
	return timingOf(v[:]), true
}

// All returns the times of every kernel.
func (t Timings) All() iter.Seq[Timing] {
	return func(yield func(Timing) bool) {
		for v := range all(t, timingNumbers) {
			if !yield(timingOf(v)) {
				return
			}
		}
	}
}

// timingNumbers is the length of Timing.numbers.
const timingNumbers = 7

func (t Timing) numbers() []float64 {
	return []float64{t.CTAs, t.One[0], t.One[1], t.Chip[0], t.Chip[1], t.Full[0], t.Full[1]}
}

func timingOf(v []float64) Timing {
	return Timing{CTAs: v[0], One: [2]float64(v[1:3]), Chip: [2]float64(v[3:5]), Full: [2]float64(v[5:7])}
}

// timingsTable is a file that plugins/triton/tools/triton_characterize.py writes.
var timingsTable = columns.Table{
	Place: "the characterization", Fix: "give what triton_characterize.py writes", Split: "leave rows out",
	Columns: []string{
		"bm", "bn", "bk", "stages", "warps", "trans_b", "ctas",
		"one_2048", "one_6144", "chip_2048", "chip_6144", "full_2048", "full_6144",
	},
}

// timingsIntegers is the number of integer columns. The other columns are microseconds.
const timingsIntegers = 7

// ReadTimings reads the times of a pass.
func ReadTimings(data []byte) (Timings, error) {
	out := map[key]Timing{}
	err := timingsTable.Each(bytes.NewReader(data), func(r *columns.Row) error {
		var v [13]float64
		for i, name := range timingsTable.Columns {
			var err error
			v[i], err = strconv.ParseFloat(r.Text(name), 64)
			whole := i >= timingsIntegers || v[i] == math.Trunc(v[i]) && v[i] <= 1<<14
			positive := v[i] > 0 || name == "trans_b" && v[i] == 0
			if err != nil || !positive || !whole || math.IsInf(v[i], 0) {
				r.Fault(name, "%s is %q", name, r.Text(name))
				return r.Err()
			}
		}
		c := gemm.Config{
			BlockM: int(v[0]), BlockN: int(v[1]), BlockK: int(v[2]), NumStages: int(v[3]), NumWarps: int(v[4]),
		}
		for i := timingsIntegers; i < len(v); i++ {
			v[i] *= 1e-6
		}
		out[keyOf(fileType, &c, v[5] == 1)] = timingOf(v[6:])
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, diag.Inputf("no kernels").At("%s", timingsTable.Place).Do("%s", timingsTable.Fix)
	}
	return pack(out), nil
}
