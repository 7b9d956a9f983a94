package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/hw"
)

// Architecture resolves the settings to exactly one architecture and opens it.
func (f *Factory) Architecture(ctx context.Context) (arch.Architecture, error) {
	targets, err := f.Targets(ctx, f.Settings.Arch, f.Settings.Device)
	if err != nil {
		return nil, err
	}
	if len(targets) > 1 {
		return nil, diag.Inputf("%d architectures are given, and this command answers for one", len(targets)).
			At("--arch").Do("leave one, or use `origami compare`")
	}
	a, err := f.Open(ctx, &targets[0])
	if err != nil {
		return nil, err
	}
	f.WarnUnused(&targets[0], a.Describe())
	return a, nil
}

// WarnUnused warns of overrides in vain: of parameters that the opened model does not use.
func (f *Factory) WarnUnused(t *Target, d *arch.Description) {
	for _, name := range slices.Sorted(maps.Keys(t.OpenRequest.Overrides)) {
		if d.Ignores(name) {
			f.Streams.Warn(fmt.Sprintf("%s is overridden, and the %s model of %s does not use it", name,
				d.Model, d.Arch))
		}
	}
}

// Searched is Architecture with the candidates that the flags ask for.
func (f *Factory) Searched(ctx context.Context, s *SearchFlags) (arch.Architecture, error) {
	a, err := f.Architecture(ctx)
	if err != nil {
		return nil, err
	}
	return s.Restrict(ctx, a, f.Settings.Kernel, f.Streams.In)
}

// Open opens a target. It may be called from several goroutines.
func (f *Factory) Open(ctx context.Context, t *Target) (arch.Architecture, error) {
	r := t.OpenRequest
	if r.Model != "" && !t.Arch.Has(r.Model) {
		return nil, diag.Inputf("%s has no model %q", t.Arch.ID, r.Model).At("--model").
			Do("use one of %s", strings.Join(t.Arch.Models, ", "))
	}
	if r.Kernel != "" && !slices.Contains(t.Arch.Kernels, r.Kernel) {
		return nil, diag.Inputf("no model of %s predicts the kernel family %q", t.Arch.ID, r.Kernel).At("--kernel").
			Do("use one of %s", strings.Join(t.Arch.Kernels, ", "))
	}
	a, err := f.host.Open(ctx, r)
	var d *diag.Error
	if errors.As(err, &d) && d.Where == hw.OverridePlace {
		return nil, d.At("%s", f.overridePlace(t))
	}
	if errors.As(err, &d) && d.Where == hw.FilePlace {
		return nil, d.At("%s", f.Settings.DeviceFile)
	}
	if err != nil {
		return nil, err
	}
	// The answer of a model on another rung would be reported under a wrong name.
	if d := a.Describe(); r.Rung != "" && d.Rung != r.Rung {
		is := "rung " + string(d.Rung)
		if d.RungReason != "" {
			is += " " + d.RungReason
		}
		return nil, diag.Inputf("the %s model of %s is on %s, and %s was asked for", d.Model, d.ID(), is, r.Rung).
			At("--rung").Do("leave it out")
	}
	return a, nil
}

// overridePlace says where the hardware numbers of a target come from.
func (f *Factory) overridePlace(t *Target) string {
	switch place := "--arch " + t.Named + ":" + t.WhatIf; {
	case t.WhatIf == "":
		return f.Settings.HWParams
	case f.Settings.HWParams == "":
		return place
	default:
		return place + " and " + f.Settings.HWParams
	}
}

// CommonModel returns the class of the best model of the first target that all targets have a model of. It is empty if
// they have no class in common.
func CommonModel(targets []Target) string {
	for m := range targets[0].Arch.Models {
		class := string(targets[0].Arch.Class(m))
		if !slices.ContainsFunc(targets, func(t Target) bool { return !t.Arch.Has(class) }) {
			return class
		}
	}
	return ""
}

// OpenGPU opens the model of a GPU that a driver describes, in this machine or in another one. change, which may be
// nil, changes the request.
func (f *Factory) OpenGPU(
	ctx context.Context, d exec.Device, change func(*arch.OpenRequest),
) (arch.Architecture, error) {
	if err := f.connect(ctx); err != nil {
		return nil, err
	}
	m, err := f.host.FindLive(ctx, d.Arch, &arch.LiveDevice{Name: d.Name, Attributes: d.Attributes})
	if err != nil {
		return nil, err
	}
	t := Target{Match: m, OpenRequest: m.Request(), Named: m.ID()}
	t.OpenRequest.Model, t.OpenRequest.Kernel = f.Settings.Model, f.Settings.Kernel
	t.OpenRequest.Rung = arch.Rung(f.Settings.Rung)
	if change != nil {
		change(&t.OpenRequest)
	}
	return f.Open(ctx, &t)
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
