package pipelined

import (
	"context"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/model"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined/terms"
)

// Quantities returns the empirical numbers of the model and of its kernel families, as they are shipped.
func (m *Model) Quantities() []model.Quantity { return quantities(m.families) }

func quantities(families []*family) []model.Quantity {
	all, of := slices.Clone(terms.Quantities), map[string]string{}
	for _, f := range families {
		if f.Traits().Resident {
			of[terms.Resident] = f.Name()
		}
		if f.Traits().Persistent {
			of[terms.Persistent] = f.Name()
		}
		o := f.Overhead()
		for _, q := range []model.Quantity{o.Slots, o.Latency} {
			if slices.ContainsFunc(all, func(other model.Quantity) bool { return other.Name == q.Name }) {
				continue // families of one loop share it
			}
			q.Kernel = f.Name()
			all = append(all, q)
		}
	}
	for i := range all {
		if k := all[i].Kernel; k == terms.Resident || k == terms.Persistent {
			all[i].Kernel = of[k]
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

// constants are the model's numbers that no device file sets one by one. What was fitted to measurements of the device
// replaces what is shipped, and values replace both, by name.
func constants(g *gpu.Device, families []*family, values map[string]float64) ([]arch.Constant, error) {
	var all []arch.Constant
	if _, known := g.Params.Lookup("tdp"); !known {
		all = append(all, arch.Constant{Name: "tdp", Unit: "W", Doc: "power limit of the board", Source: "unknown"})
	}
	for _, c := range terms.Constants {
		all = append(all, c.On(g))
	}
	rung := rungOf(g, families)
	for _, q := range quantities(families) {
		all = append(all, q.Constant(q.On(rung, "")))
	}
	if err := fit.Use(all, g.Sheet, Name); err != nil {
		return nil, err
	}
	model.Override(all, values)
	return all, nil
}
