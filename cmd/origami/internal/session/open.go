package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/here"
)

// Architecture resolves the settings to exactly one architecture and opens it.
func (f *Factory) Architecture(ctx context.Context) (arch.Architecture, error) {
	one, err := f.Side(ctx, &question.Search{}, false)
	return one.Model, err
}

// Side resolves the settings to exactly one architecture and opens it.
func (f *Factory) Side(ctx context.Context, s *question.Search, invariant bool) (ask.Contender, error) {
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return ask.Contender{}, err
	}
	if len(targets) > 1 {
		return ask.Contender{}, diag.Inputf("%d architectures are given, and this command answers for one", len(targets)).
			At("--arch").Do("leave one, or use `origami compare`")
	}
	sides, err := f.Sides(ctx, targets, s, invariant)
	if err != nil {
		return ask.Contender{}, err
	}
	return sides[0], nil
}

// Searched is the architecture of Side.
func (f *Factory) Searched(ctx context.Context, q *ProblemFlags) (arch.Architecture, error) {
	one, err := f.Side(ctx, &q.Search, q.Invariant)
	return one.Model, err
}

// Sides opens targets.
func (f *Factory) Sides(ctx context.Context, targets []models.Found, s *question.Search, invariant bool) (
	[]ask.Contender, error,
) {
	sides := make([]ask.Contender, len(targets))
	for i := range targets {
		var err error
		if sides[i], err = f.OpenSide(ctx, &targets[i], s, invariant); err != nil {
			return nil, err
		}
		f.WarnUnused(&targets[i], sides[i].Describe())
	}
	return sides, nil
}

// OpenSide opens a target with the candidates that are asked for. It may be called from several goroutines.
func (f *Factory) OpenSide(ctx context.Context, t *models.Found, s *question.Search, invariant bool) (
	ask.Contender, error,
) {
	if err := f.ReadCandidates(ctx, s); err != nil {
		return ask.Contender{}, err
	}
	a, err := f.Open(ctx, t)
	if err == nil && f.Corrected != nil {
		a, err = f.Corrected(ctx, a)
	}
	if err != nil {
		return ask.Contender{}, err
	}
	return s.Side(f.host, t, a, invariant)
}

// ReadCandidates reads the file of candidates, once. Several architectures may ask for it.
func (f *Factory) ReadCandidates(ctx context.Context, s *question.Search) error {
	f.reading.Lock()
	defer f.reading.Unlock()
	d := &s.Candidates
	if d.Name == "" || d.Text != "" {
		return nil
	}
	text, err := source{d.Name, "the file", "--candidates " + d.Name, limit.Kernels, "leave configurations out",
		"give a JSON or CSV file of configurations"}.readOr(ctx, f.Streams.In)
	d.Text = string(text)
	return err
}

// WarnUnused warns of overrides in vain: of parameters that the opened model does not use.
func (f *Factory) WarnUnused(t *models.Found, d *arch.Description) {
	for _, name := range slices.Sorted(maps.Keys(t.OpenRequest.Overrides)) {
		if d.Ignores(name) {
			f.Streams.Warn(fmt.Sprintf("%s is overridden, and the %s model of %s does not use it", name,
				d.Model, d.Arch))
		}
	}
}

// Open opens a target. It may be called from several goroutines.
func (f *Factory) Open(ctx context.Context, t *models.Found) (arch.Architecture, error) {
	a, err := t.Open(ctx, f.host)
	var d *diag.Error
	if !errors.As(err, &d) {
		return a, err
	}
	switch d.Where {
	case hw.OverridePlace:
		return nil, d.At("%s", f.overridePlace(t))
	case hw.FilePlace:
		return nil, d.At("%s", cmp.Or(f.Settings.DeviceFile, here.Devices()))
	case models.ModelPlace, models.KernelPlace, models.RungPlace, models.TimingPlace:
		return nil, d.At("--%s", d.Where)
	}
	return nil, err
}

// overridePlace says where the hardware numbers of a target come from.
func (f *Factory) overridePlace(t *models.Found) string {
	switch place := "--arch " + t.Named + ":" + t.WhatIf; {
	case t.WhatIf == "":
		return f.Settings.HWParams
	case f.Settings.HWParams == "":
		return place
	default:
		return place + " and " + f.Settings.HWParams
	}
}

// OpenGPU opens the model of a GPU that a driver describes, in this machine or in another one. change, which may be
// nil, changes the request.
func (f *Factory) OpenGPU(
	ctx context.Context, d exec.Device, change func(*arch.OpenRequest),
) (arch.Architecture, error) {
	if err := f.connect(ctx); err != nil {
		return nil, err
	}
	of, err := f.timing()
	if err != nil {
		return nil, err
	}
	found, err := models.Find(ctx, f.host, &models.Target{Arch: d.Arch, Timing: of,
		Live:  &arch.LiveDevice{Name: d.Name, Attributes: d.Attributes},
		Model: f.Settings.Model, Kernel: f.Settings.Kernel, Rung: arch.Rung(f.Settings.Rung)})
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(&found.OpenRequest)
	}
	return f.Open(ctx, &found)
}

// Executor opens the executor of the plugin of that name, or of the first plugin that runs kernels. It ends with the
// plugins.
func (f *Factory) Executor(ctx context.Context, name string) (exec.Executor, error) {
	if err := f.connect(ctx); err != nil {
		return nil, err
	}
	return f.host.Executor(ctx, name)
}

// pluginVersion returns the version of the plugin of that name, empty for an unknown plugin.
func (f *Factory) pluginVersion(name string) string {
	for _, p := range f.host.Known() {
		if p.Name == name {
			return p.Version
		}
	}
	return ""
}

// Tunable opens a target as a model whose constants can be fitted.
func (f *Factory) Tunable(ctx context.Context, t *models.Found) (fit.Tunable, error) {
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
