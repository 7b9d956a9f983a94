package refined

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/refined/terms"
)

// Quantities returns the empirical numbers of the model and of its kernel families, as they are shipped.
func (m *Model) Quantities() []kernel.Quantity { return quantities(m.families) }

func quantities(families []*family) []kernel.Quantity {
	all := slices.Clone(terms.Quantities)
	for _, f := range families {
		if _, is := f.Family.(kernel.Resident); is {
			for i := range all {
				if all[i].Resident {
					all[i].Kernel = f.Name()
				}
			}
		}
		o := f.Overhead()
		for _, q := range []kernel.Quantity{o.Slots, o.Latency} {
			q.Kernel = f.Name()
			all = append(all, q)
		}
	}
	return all
}

// EstimateWith implements fit.Tunable.
func (m *Model) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) ([][]unit.Seconds, error) {
	with := func(v map[string]float64) (arch.Architecture, error) { return m.With(v), nil }
	return fit.EstimateEach(ctx, with, values, sample)
}

// fittedOn returns what was fitted to measurements of the device, nil if nothing was.
func fittedOn(g *gpu.Device) *hw.Fitted {
	if g.Sheet != nil && g.Sheet.Fitted != nil && g.Sheet.Fitted.Model == Name {
		return g.Sheet.Fitted
	}
	return nil
}

// checkFitted reports numbers of the device file that the model cannot have.
func checkFitted(g *gpu.Device, families []*family) error {
	f := fittedOn(g)
	if f == nil {
		return nil
	}
	all := quantities(families)
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		v := f.Values[name]
		i := slices.IndexFunc(all, func(q kernel.Quantity) bool { return q.Name == name })
		if i < 0 {
			return diag.Inputf("fitted: the %s model of %s has no quantity %q", Name, g.Sheet.Arch, name).
				At("%s", g.Sheet.File).Do("fit the model again")
		}
		if q := &all[i]; v.Unit != q.Unit || v.Value < q.Low || v.Value > q.High {
			return diag.Inputf("fitted: %s is %v %s, and the model takes %v to %v %s", name, v.Value, v.Unit, q.Low, q.High,
				q.Unit).At("%s", g.Sheet.File).Do("fit the model again")
		}
	}
	return nil
}

// constants are the model's numbers that no device file sets one by one. What was fitted to measurements of the device
// replaces what is shipped, and values replace both, by name.
func constants(g *gpu.Device, families []*family, values map[string]float64) []arch.Constant {
	fitted := fittedOn(g)
	var all []arch.Constant
	if _, known := g.Params.Lookup("tdp"); !known {
		all = append(all, arch.Constant{Name: "tdp", Unit: "W", Doc: "power limit of the board", Source: "unknown"})
	}
	for _, c := range terms.Constants {
		all = append(all, c.On(g))
	}
	for _, q := range quantities(families) {
		all = append(all, q.Constant())
	}
	for i := range all {
		c := &all[i]
		if fitted != nil {
			if v, ok := fitted.Values[c.Name]; ok {
				c.Value = v.Value
				c.Source = fmt.Sprintf("%s; over folds %.4g–%.4g", fitted.Source, v.Low, v.High)
			}
		}
		if v, ok := values[c.Name]; ok {
			c.Value = v
		}
	}
	return all
}

// valuesOf returns the parameters of a description and its constants, by name.
func valuesOf(d *arch.Description) map[string]float64 {
	values := make(map[string]float64, len(d.Params)+len(d.Constants))
	for _, p := range d.Params {
		values[p.Name] = p.Value
	}
	for _, c := range d.Constants {
		values[c.Name] = c.Value
	}
	return values
}
