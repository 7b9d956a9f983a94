package nvidia

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// folder is the place of the data sets as `make intervals` names them.
const folder = "plugins/nvidia/data/"

// intervals are the decoded lines of the embedded file, by how these lines begin.
var intervals sync.Map

// intervalsOf reads the lines of the embedded file about a model. Reading all of them would be a tenth of the time of a
// command.
func intervalsOf(id, device, model string, rung arch.Rung) []arch.UncertaintyRecord {
	begin := fmt.Sprintf(`{"arch":%q,"device":%q,"model":%q,"rung":%q,`, id, device, model, rung)
	if known, ok := intervals.Load(begin); ok {
		return known.([]arch.UncertaintyRecord)
	}
	var found []arch.UncertaintyRecord
	for line := range bytes.Lines(data.Intervals) {
		if !bytes.HasPrefix(line, []byte(begin)) {
			continue
		}
		var one struct{ Uncertainty arch.UncertaintyRecord }
		if err := json.Unmarshal(line, &one); err != nil {
			panic(fmt.Sprintf("intervals.jsonl: %v", err)) // a test reads it
		}
		found = append(found, one.Uncertainty)
	}
	intervals.Store(begin, found)
	return found
}

// sisterWidening is the factor by which ranges of the measured device grow at both ends for its sisters. It is assumed:
// the times of an H100 need none, but they are of one device, one type and one layout (TestSisters).
const sisterWidening = 1.05

// uncertaintyOf returns the uncertainty of an opened model's times, from measurements of the device or of a sister. It
// is empty if the model was compared with neither.
func uncertaintyOf(d *arch.Description) []arch.Uncertainty {
	var uncertainty []arch.Uncertainty
	for _, m := range data.Measured {
		rung := cmp.Or(m.Only, d.Rung)
		for _, one := range intervalsOf(d.Arch, m.Device, d.Model, rung) {
			u, err := one.Uncertainty()
			if err != nil {
				panic(fmt.Sprintf("intervals.jsonl: %v", err))
			}
			u.Source = strings.ReplaceAll(u.Source, folder, "")
			u.Checked.DataSet = strings.TrimPrefix(u.Checked.DataSet, folder)
			if d.Device != m.Device || d.Rung != rung {
				u.Evidence = arch.EvidenceSister
				u.Source = fmt.Sprintf("times of %s@%s: %s", d.Arch, m.Device, u.Checked.DataSet)
				for i := range u.Ranges {
					u.Ranges[i].Low, u.Ranges[i].High = u.Ranges[i].Low/sisterWidening, u.Ranges[i].High*sisterWidening
				}
			}
			uncertainty = append(uncertainty, u)
		}
	}
	return uncertainty
}

// twins returns what times of a 16-bit type say of the other one, where that was not timed in a layout: since Ampere
// both have the same rates, and their kernels differ in nothing else.
func twins(list []arch.Uncertainty) (out []arch.Uncertainty) {
	other := map[gemm.DType]gemm.DType{gemm.FP16: gemm.BF16, gemm.BF16: gemm.FP16}
	for i := range list {
		u := list[i]
		var layouts []arch.Layout
		for _, l := range u.Checked.Layouts {
			twin := l
			twin.Types.In, twin.Types.Out = other[l.Types.In], other[l.Types.Out]
			timed := slices.ContainsFunc(list, func(v arch.Uncertainty) bool {
				return v.Kernel == u.Kernel && slices.Contains(v.Checked.Layouts, twin) &&
					v.Checked.Divisor.Low <= u.Checked.Divisor.Low && v.Checked.Split.High >= u.Checked.Split.High
			})
			if twin.Types.In != 0 && twin.Types.Out != 0 && !timed {
				layouts = append(layouts, twin)
			}
		}
		if len(layouts) > 0 {
			u.Checked.TimedType = u.Checked.Layouts[0].Types.In.String()
			u.Checked.Layouts = layouts
			out = append(out, u)
		}
	}
	return out
}
