package refined

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/refined/terms"
)

// Quantities returns the empirical numbers of the model and of its kernel families, as they are shipped.
func (m *Model) Quantities() []kernel.Quantity { return quantities(m.families) }

func quantities(families []*family) []kernel.Quantity {
	all := slices.Clone(terms.Quantities)
	for _, f := range families {
		o := f.Overhead()
		for _, q := range []kernel.Quantity{o.Slots, o.Latency} {
			q.Kernel = f.Name()
			all = append(all, q)
		}
	}
	return all
}

// constants are the model's numbers that no device file has. Values replace what is shipped, by name.
func constants(g *gpu.Device, families []*family, values map[string]float64) []arch.Constant {
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
		if v, ok := values[all[i].Name]; ok {
			all[i].Value = v
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
