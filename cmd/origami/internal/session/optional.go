package session

import (
	"context"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/ladder"
)

// Tunable opens a target as a model whose constants can be fitted.
func (f *Factory) Tunable(ctx context.Context, t *Target) (fit.Tunable, error) {
	a, err := f.Open(ctx, t)
	if err != nil {
		return nil, err
	}
	d := a.Describe()
	m, ok := a.(fit.Tunable)
	if ok && slices.ContainsFunc(d.Constants, func(c arch.Constant) bool { return c.Fits() }) {
		return m, nil
	}
	none := diag.Inputf("the %s model of %s has no quantities to fit", d.Model, d.Arch)
	if len(t.Arch.Fitted) > 0 {
		none = none.Do("use --model %s", strings.Join(t.Arch.Fitted, " or "))
	}
	return nil, none
}

// Calibration returns the microbenchmarks of a device, from the plugin that has its architecture.
func (f *Factory) Calibration(ctx context.Context, d exec.Device) (*calibrate.Plan, error) {
	if err := f.connect(ctx); err != nil {
		return nil, err
	}
	m, err := f.host.FindLive(ctx, d.Arch, &arch.LiveDevice{Name: d.Name, Attributes: d.Attributes})
	if err != nil {
		return nil, err
	}
	if !m.Manifest.Calibrates {
		return nil, diag.Inputf("there are no microbenchmarks for %s (%s)", d.Name, d.Arch).
			Do("the plugin %s has none", m.Manifest.Name)
	}
	p, err := f.host.Optional(ctx, m.Manifest.Name)
	if err != nil {
		return nil, err
	}
	return p.Calibration(ctx, d)
}

// Ladder returns the ladder of kernels of the plugin that has the architecture of the settings. If they name none, it
// is the first ladder of any plugin, and the settings name the device of its claims from then on.
func (f *Factory) Ladder(ctx context.Context) (*ladder.Ladder, error) {
	s := &f.Settings
	anywhere := len(s.Arch) == 0 && s.Device == "" && s.DeviceFile == ""
	var plugin *arch.Manifest
	if anywhere {
		all, err := f.Manifests(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(m arch.Manifest) bool { return m.Ladder })
		if i < 0 {
			return nil, diag.Inputf("no plugin has a ladder of kernels")
		}
		plugin = &all[i]
	} else {
		targets, err := f.Targets(ctx, s.Arch, s.Device)
		if err != nil {
			return nil, err
		}
		if plugin = targets[0].Manifest; !plugin.Ladder {
			return nil, diag.Inputf("there is no ladder of kernels for %s", targets[0].Arch.ID).
				Do("the plugin %s has none", plugin.Name)
		}
	}
	p, err := f.host.Optional(ctx, plugin.Name)
	if err != nil {
		return nil, err
	}
	l, err := p.Ladder(ctx)
	if err == nil && anywhere {
		s.Arch = []string{l.Device}
	}
	return l, err
}
