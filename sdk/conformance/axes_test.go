package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/wire"
)

// A family with two named axes passes, and a value that it does not honour is found.
func TestAxes(t *testing.T) {
	for finding, broken := range map[string]named[axesModel]{
		"": {},
		"Candidates of a space with the axis undeclared_0 at 1 is accepted": {"overlooks spaces",
			axesModel{deafSpace: true}},
		"asked for cluster at 4x1, it lists 32x32x32 w1 s1, which": {"overlooks spaces",
			axesModel{deafSpace: true}},
		"Estimate of a configuration with the axis vector at no.such-value is accepted": {"overlooks values",
			axesModel{deafConfig: true}},
		"Mapping of a configuration with the axis undeclared_0 at 1 is accepted": {"overlooks axes",
			axesModel{deafConfig: true}},
		"the axis cluster has no explanation": {"says nothing", axesModel{silent: true}},
	} {
		provider := provider{open: func(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
			a, err := sound.Open(ctx, r)
			m := broken.value
			m.Architecture = a
			return &m, err
		}}
		provider.describe = func(d *arch.Description) {
			d.Families = []arch.Family{{Name: "tiled",
				Axes: broken.value.axes()}}
			for i := range d.Constants {
				d.Constants[i].Low, d.Constants[i].High = 0, 0 // nothing to fit
			}
		}
		names, text, _ := failing(t, wire.ArchService(&provider), ArchitectureChecks(), quick)
		want := []string{"axes"}
		if finding == "" {
			want = nil
		}
		must.That(t, slices.Equal(names, want) && strings.Contains(text, finding),
			"%s: the checks %v fail, want %q: %s", broken.what, names, finding, text)
	}
}

// axesModel is the example with two named axes that change nothing.
type axesModel struct {
	arch.Architecture
	deafSpace, deafConfig, silent bool
}

func (m *axesModel) axes() []gemm.Axis {
	axes := []gemm.Axis{
		{Name: "cluster", Doc: "CTAs per cluster", Type: gemm.Enumeration, Values: []string{"1x1", "2x1", "4x1"},
			Default: "1x1"},
		{Name: "vector", Unit: "elements", Doc: "width of a load", Type: gemm.Integer, Default: "4"},
	}
	if m.silent {
		axes[0].Doc = ""
	}
	return axes
}

func (m *axesModel) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	named := s
	one := []int{1}
	named.BlockM, named.BlockN, named.BlockK = one, one, one
	if m.deafSpace {
		named.Axes = nil
	}
	s.Axes = nil
	list, err := m.Architecture.Candidates(ctx, p, s)
	if err != nil {
		return nil, err
	}
	values, err := named.Enumerate(arch.Space{Kernel: "tiled", NumWarps: one, NumStages: one, SplitK: one,
		Axes: []arch.AxisValues{{Name: "cluster", Values: []string{"1x1", "2x1"}}}}, m.axes()...)
	if err != nil {
		return nil, err
	}
	all := &arch.Candidates{}
	for _, c := range list.Configs {
		for _, v := range values {
			c.Axes = v.Axes
			all.Configs = append(all.Configs, c)
		}
	}
	return all, nil
}

// plain checks the named axes of configurations and removes them.
func (m *axesModel) plain(cfgs []gemm.Config) ([]gemm.Config, error) {
	out := slices.Clone(cfgs)
	for i := range out {
		err := out[i].Validate(m.axes()...)
		if m.deafConfig {
			err = out[i].ValidateNumbers()
		}
		if err != nil {
			return nil, err
		}
		out[i].Axes = gemm.Axes{}
	}
	return out, nil
}

func (m *axesModel) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	cfgs, err := m.plain(cfgs)
	if err != nil {
		return err
	}
	return m.Architecture.Estimate(ctx, dst, p, cfgs)
}

func (m *axesModel) Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	cfgs, err := m.plain(cfgs)
	if err != nil {
		return err
	}
	return m.Architecture.Terms(ctx, dst, p, cfgs)
}

func (m *axesModel) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	cfgs, err := m.plain([]gemm.Config{c})
	if err != nil {
		return arch.Mapping{}, err
	}
	return m.Architecture.Mapping(ctx, p, cfgs[0])
}
