package nvidia

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
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
func intervalsOf(id, device, model string, rung arch.Rung) []arch.Uncertainty {
	begin := fmt.Sprintf(`{"arch":%q,"device":%q,"model":%q,"rung":%q,`, id, device, model, rung)
	if known, ok := intervals.Load(begin); ok {
		return known.([]arch.Uncertainty)
	}
	var found []arch.Uncertainty
	for line := range bytes.Lines(data.Intervals) {
		if !bytes.HasPrefix(line, []byte(begin)) {
			continue
		}
		var one struct{ Uncertainty arch.Uncertainty }
		if err := json.Unmarshal(line, &one); err != nil {
			panic(fmt.Sprintf("intervals.jsonl: %v", err)) // a test reads it
		}
		one.Uncertainty.Contain()
		found = append(found, one.Uncertainty)
	}
	intervals.Store(begin, found)
	return found
}

// Factors of errors that other devices have besides the ranges of a measured one.
const (
	// sisterWidening is for other devices of the architecture. It is assumed: the times of an H100 need none
	// (TestSisters).
	sisterWidening = 1.05
	// otherWidening is for other generations, and for sisters of devices of which one layout of one type was timed. Of
	// three devices on which nothing was fitted, RTX 4090, RTX 3090 and H100, the medians of predicted ÷ measured times
	// of triton differ by 7 % (standard deviation of the logs); that of a fourth lies within this factor of 1 with a
	// probability of 90 %, by Student's t (TestOtherGenerations).
	otherWidening = 1.29
)

// uncertaintyOf returns the uncertainty of an opened model's times, from measurements of the device, of a sister or of
// another generation.
func uncertaintyOf(d *arch.Description) []arch.Uncertainty {
	var uncertainty []arch.Uncertainty
	for _, m := range data.Measured {
		rung := d.Rung
		if d.Arch != m.Arch {
			rung = arch.RungSpec
		}
		lines := intervalsOf(m.Arch, m.Device, d.Model, rung)
		if lines == nil { // nothing more than the data sheet is known of it
			rung = arch.RungSpec
			lines = intervalsOf(m.Arch, m.Device, d.Model, rung)
		}
		for _, one := range lines {
			u := one
			u.Source = strings.ReplaceAll(u.Source, folder, "")
			u.Checked.DataSet = strings.TrimPrefix(u.Checked.DataSet, folder)
			from := fmt.Sprintf("times of %s@%s: %s", m.Arch, m.Device, u.Checked.DataSet)
			switch {
			case d.Arch != m.Arch && (u.Sigma == 0 || !slices.Contains(d.Kernels, u.Kernel)):
				continue
			case d.Arch != m.Arch:
				u = elsewhere(&u, arch.EvidenceUnchecked, from, otherWidening)
				u.Sigma, u.PlanSigma = 0, 0 // the order of candidates was not compared on these
			case d.Device != m.Device && u.Sigma == 0 && slices.ContainsFunc(uncertainty, func(v arch.Uncertainty) bool {
				return v.Kernel == u.Kernel && v.Evidence != arch.EvidenceUnchecked
			}):
				continue // a sweep says more
			case d.Device != m.Device && u.Sigma == 0:
				u = elsewhere(&u, arch.EvidenceSister, from, otherWidening)
			case d.Device != m.Device:
				u = elsewhere(&u, arch.EvidenceSister, from, sisterWidening)
			case d.Rung != rung:
				from = fmt.Sprintf("times of rung %s: %s", rung, u.Checked.DataSet)
				u = elsewhere(&u, arch.EvidenceRelated, from, sisterWidening)
			}
			uncertainty = append(uncertainty, u)
		}
	}
	return uncertainty
}

// spread gives a device of which one configuration of each problem was timed the spread among candidates of its sister.
func spread(list []arch.Uncertainty) {
	for i := range list {
		u := &list[i]
		alike := slices.IndexFunc(list, func(v arch.Uncertainty) bool {
			return v.Evidence == arch.EvidenceSister && v.Kernel == u.Kernel && v.Sigma > 0
		})
		if u.Evidence == "" && u.Sigma == 0 && alike >= 0 {
			u.Sigma, u.PlanSigma = list[alike].Sigma, list[alike].PlanSigma
		}
	}
}

// elsewhere returns an uncertainty with another evidence, and wider ranges. How far a kernel is from the others of a
// device, and how far devices are from each other, are independent errors: the squares of their logarithms add up.
func elsewhere(u *arch.Uncertainty, grade arch.Evidence, source string, widening float64) arch.Uncertainty {
	out := *u
	out.Evidence, out.Source, out.Ranges = grade, source, slices.Clone(u.Ranges)
	for i := range out.Ranges {
		r := &out.Ranges[i]
		// Rounded, since the last digits of these functions are others in a browser.
		high := math.Exp(math.Hypot(math.Log(r.High), math.Log(widening)))
		r.High = math.Round(high*1e9) / 1e9
		r.Low = 1 / r.High
	}
	return out
}

// otherLayouts returns what times say of the layouts in which none of the types were compared. Of the device itself it
// is another kind of problem.
func otherLayouts(list []arch.Uncertainty) (out []arch.Uncertainty) {
	for i := range list {
		if list[i].Evidence == arch.EvidenceUnchecked {
			continue
		}
		u := elsewhere(&list[i], list[i].Evidence, list[i].Source+", in another layout", 1) // TestOtherLayouts
		if u.Evidence == "" {
			u.Evidence, u.Source = arch.EvidenceRelated, "times in another layout: "+u.Checked.DataSet
		}
		u.Checked.Layouts = nil
		for _, l := range list[i].Checked.Layouts {
			for _, a := range []gemm.Major{gemm.MajorK, gemm.MajorM} {
				for _, b := range []gemm.Major{gemm.MajorK, gemm.MajorN} {
					other := arch.Layout{Types: l.Types, AMajor: a, BMajor: b}
					if !timed(list, &list[i], other) && !slices.Contains(u.Checked.Layouts, other) {
						u.Checked.Layouts = append(u.Checked.Layouts, other)
					}
				}
			}
		}
		if len(u.Checked.Layouts) > 0 {
			out = append(out, u)
		}
	}
	return out
}

// timed reports whether times in a layout were compared, of all problems and splits that an uncertainty is of.
func timed(list []arch.Uncertainty, u *arch.Uncertainty, l arch.Layout) bool {
	return slices.ContainsFunc(list, func(v arch.Uncertainty) bool {
		return v.Kernel == u.Kernel && v.Evidence == u.Evidence && slices.Contains(v.Checked.Layouts, l) &&
			v.Checked.Divisor.Low <= u.Checked.Divisor.Low && v.Checked.Split.High >= u.Checked.Split.High
	})
}

// twins returns what times of operands or results of a 16-bit type say of the other one, where that was not timed in a
// layout: since Ampere both have the same rates, and their kernels differ in nothing else.
func twins(list []arch.Uncertainty) (out []arch.Uncertainty) {
	twin := func(t gemm.DType) gemm.DType {
		return cmp.Or(map[gemm.DType]gemm.DType{gemm.FP16: gemm.BF16, gemm.BF16: gemm.FP16}[t], t)
	}
	for i := range list {
		u := list[i]
		var layouts []arch.Layout
		for _, l := range u.Checked.Layouts {
			other := l
			other.Types.In, other.Types.Out = twin(l.Types.In), twin(l.Types.Out)
			if other != l && !timed(list, &u, other) {
				layouts = append(layouts, other)
			}
		}
		if len(layouts) > 0 {
			if u.Checked.Layouts[0].Types.In != layouts[0].Types.In {
				u.Checked.TimedType = u.Checked.Layouts[0].Types.In.String()
			}
			u.Checked.Layouts = layouts
			out = append(out, u)
		}
	}
	return out
}
