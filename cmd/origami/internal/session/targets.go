package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/sdk/here"
	"github.com/origami-gemm/origami/sdk/host/info"
)

// Targets finds the devices that names of architectures and the device mean, with a request for each from the settings.
// archs and device are the settings' or, for `arch show`, arguments. The device "auto" is a GPU of this machine. The
// options and numbers behind a name win over --option and --hw-params.
func (f *Factory) Targets(ctx context.Context, archs []string, device string) ([]models.Found, error) {
	options, err := question.ByKey("--option", "--option key=value; `origami arch show ID` lists the options",
		f.PluginOptions)
	if err != nil {
		return nil, err
	}
	of, err := f.timing()
	if err != nil {
		return nil, err
	}
	targets, err := models.Parse(archs, device)
	if err != nil {
		return nil, err
	}
	for i := range targets {
		targets[i].Timing = of
	}
	if err := f.connect(ctx); err != nil {
		return nil, err
	}
	if err := f.readDeviceFile(ctx); err != nil {
		return nil, err
	}
	if len(targets) == 0 && f.deviceFile != "" {
		targets = []models.Target{{Timing: of}}
	}
	found, err := f.findAll(ctx, targets)
	if broken := checkNamedPlugins(f.host.Known()); broken != nil {
		return nil, broken
	}
	if err != nil {
		return nil, err
	}
	if err := checkOptions(options, found); err != nil {
		return nil, err
	}
	compiled, err := readTable(ctx, "--compiled", f.Settings.CompiledFile, len(found))
	if err != nil {
		return nil, err
	}
	characterization, err := readTable(ctx, "--characterization", f.Settings.CharacterizationFile, len(found))
	if err != nil {
		return nil, err
	}
	overrides, err := f.overrides(ctx, found)
	if err != nil {
		return nil, err
	}
	for i := range found {
		one, r := &found[i], &found[i].OpenRequest
		r.Compiled, r.Characterization, r.Options = compiled, characterization, declared(one, options)
		numbers := overrides.For(one.Arch.ID, one.Device.ID)
		maps.Copy(numbers, r.Overrides)
		r.Overrides = numbers
	}
	return found, nil
}

// timing returns what predicted times are of, as the settings and the options say, empty if they do not.
func (f *Factory) timing() (timing.Timing, error) {
	if f.Settings.Timing == "" {
		return "", nil
	}
	of, err := timing.Parse(f.Settings.Timing)
	return of, diag.Within("--timing", err)
}

// Beside returns a model whose predicted times are of the timing of measured times beside them: a itself, or the one
// that open opens. a is nil before any is opened. A --timing that differs is an error.
func (f *Factory) Beside(of timing.Timing, a arch.Architecture, open func() (arch.Architecture, error)) (
	arch.Architecture, error,
) {
	s := &f.Settings
	if strings.HasPrefix(s.Source("timing"), "--") && s.Timing != string(of) {
		return nil, diag.Inputf("the measured times are of %s", of).At("--timing %s", s.Timing).Do("leave it out")
	}
	if a == nil {
		if s.Timing == string(of) {
			s.Timing = "" // a model may not state its timing
		}
		var err error
		if a, err = open(); err != nil {
			return nil, err
		}
	}
	if d := a.Describe(); d.Timing == "" || d.RanksOnly || d.Timing == string(of) {
		return a, nil
	}
	s.Timing = string(of)
	return open()
}

// Nearby opens a model again with a value of the option of times near a problem, unless the user gave one or the model
// has none.
func (f *Factory) Nearby(value string, a arch.Architecture, open func() (arch.Architecture, error)) (
	arch.Architecture, error,
) {
	given := arch.OptionValue{Key: residual.Nearby, Value: residual.Option.Default}
	if !slices.Contains(a.Describe().Options, given) {
		return a, nil
	}
	f.PluginOptions = append(f.PluginOptions, residual.Nearby+"="+value)
	return open()
}

// readDeviceFile reads --device-file, once.
func (f *Factory) readDeviceFile(ctx context.Context) error {
	name := f.Settings.DeviceFile
	if name == "" || f.deviceFile != "" {
		return nil
	}
	data, err := source{name, "the device file", name, limit.Device, "give the file of one device",
		"check --device-file and ORIGAMI_DEVICE_FILE"}.read(ctx)
	if err != nil {
		return err
	}
	_, err = hw.DecodeSheet(name, data)
	f.deviceFile = string(data)
	return err
}

// findAll finds the devices of targets.
func (f *Factory) findAll(ctx context.Context, targets []models.Target) (found []models.Found, err error) {
	if len(targets) == 0 {
		return nil, diag.Inputf("no architecture is given").
			Do("add --arch, as in --arch %s; `origami arch ls` lists them", f.exampleArch())
	}
	found = make([]models.Found, len(targets))
	for i := range targets {
		t := &targets[i]
		t.Model, t.Kernel, t.Rung = f.Settings.Model, f.Settings.Kernel, arch.Rung(f.Settings.Rung)
		t.DeviceFile = f.deviceFile
		name := t.Name()
		live := models.IsLive(name)
		if live {
			err = f.setLive(ctx, t)
		}
		if err == nil && t.DeviceFile == "" {
			t.DeviceFile, err = here.FileOf(t)
		}
		if err == nil && !live {
			found[i], err = f.find(ctx, t)
		} else if err == nil {
			found[i], err = models.Find(ctx, f.host, t)
		}
		if live {
			err = diag.Within("--device "+name, err)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// find finds the device of a target that is not a GPU of this machine.
func (f *Factory) find(ctx context.Context, t *models.Target) (models.Found, error) {
	found, err := models.Find(ctx, f.host, t)
	var d *diag.Error
	switch {
	case !errors.As(err, &d):
		return found, err
	case d.Where == hw.FilePlace:
		return found, d.At("%s", f.Settings.DeviceFile)
	case d.Where != "": // behind the name
		return found, d
	}
	// One of the plugins that cannot be used might have the name.
	var failed []string
	reason := ""
	for _, p := range f.host.Known() {
		if p.State == info.Skipped || p.State == info.Error {
			failed, reason = append(failed, "plugin "+p.Name), p.Reason
		}
	}
	switch len(failed) {
	case 0:
	case 1:
		d = d.Also("%s cannot be used: %s", failed[0], reason)
	default:
		d = d.Also("%s cannot be used", strings.Join(failed, ", ")).Coded(diag.CodeUnusablePlugins, "")
	}
	return found, d.At("--arch %s", t.Name())
}

// Examples in hints and forms.
const (
	ExampleDevice, archOfExample = "h200", "sm90"
	OtherDevice                  = "mi300x"
)

// exampleArch is an architecture to show in a hint.
func (f *Factory) exampleArch() string {
	var ids []string
	for _, p := range f.host.Known() {
		ids = append(ids, p.Archs...)
	}
	if len(ids) == 0 || slices.Contains(ids, archOfExample) {
		return ExampleDevice
	}
	return ids[0]
}

// setLive makes the GPU of this machine that a target names its live device: the GPU with the number, or the first GPU
// of the architecture, or the first GPU.
func (f *Factory) setLive(ctx context.Context, t *models.Target) error {
	archID, number, _ := models.CutLive(t.Name())
	gpus, err := f.listGPUs(ctx)
	if err != nil {
		return err
	}
	var found []string
	for i, g := range gpus {
		if (archID == "" || strings.EqualFold(archID, g.Arch)) && (number == "" || number == strconv.Itoa(i)) {
			t.Arch, t.Device, t.Live = g.Arch, "", &arch.LiveDevice{Name: g.Name, Attributes: g.Attributes}
			return nil
		}
		found = append(found, strconv.Itoa(i)+" "+g.Name+" ("+g.Arch+")")
	}
	return &diag.Error{Kind: diag.Device, What: "this machine has no such GPU", Fix: "it has " + strings.Join(found, ", ")}
}

// listGPUs asks the executor for the GPUs of this machine, once. Without an executor, a driver or a GPU the error is of
// kind diag.Device.
func (f *Factory) listGPUs(ctx context.Context) ([]exec.Device, error) {
	if f.gpus != nil {
		return f.gpus, nil
	}
	e, err := f.host.Executor(ctx, "")
	if err != nil {
		return nil, err
	}
	gpus, err := e.Devices(ctx)
	if closed := e.Close(); err == nil {
		err = closed
	}
	if err == nil && len(gpus) == 0 {
		err = &diag.Error{Kind: diag.Device, What: "this machine has no GPU that can be used",
			Fix: "name the device, as in --arch sm90@h200; `origami arch ls` lists them"}
	}
	f.gpus = gpus
	return gpus, err
}

// readTable reads a file about the kernels of one device; nil without a file.
func readTable(ctx context.Context, flag, file string, targets int) ([]byte, error) {
	place := flag + " " + file
	switch {
	case file == "":
		return nil, nil
	case targets > 1:
		return nil, diag.Inputf("the file is about the kernels of one device, and %d are selected", targets).
			At("%s", place).Do("leave it out")
	}
	return source{file, "it", place, limit.Kernels, "leave rows out", "check the file"}.read(ctx)
}

// overrides reads --hw-params. It resolves the architectures that the file names, so that its numbers find their place
// under any of a device's names. The bare form is for one architecture only.
func (f *Factory) overrides(ctx context.Context, found []models.Found) (out hw.Overrides, err error) {
	file := f.Settings.HWParams
	if file == "" {
		return out, nil
	}
	data, err := source{file, "the hardware numbers", file, limit.Text, "give a file of hardware numbers",
		"check --hw-params, ORIGAMI_HW_PARAMS and TRITONBLAS_HW_PARAMS"}.read(ctx)
	if err != nil {
		return out, err
	}
	read, err := hw.ParseOverrides(file, data)
	if err != nil {
		return out, err
	}
	if len(read.Bare) > 0 && len(found) > 1 {
		return out, diag.Inputf("the file names no architecture, and %d are selected", len(found)).
			At("%s", file).Do("put the numbers under their architecture, as in {%q:{…}}", found[0].Arch.ID)
	}
	out = hw.Overrides{ByArch: map[string]map[string]hw.OverrideValue{}, Bare: read.Bare}
	for _, key := range slices.Sorted(maps.Keys(read.ByArch)) {
		m, err := f.find(ctx, &models.Target{Arch: key, DeviceFile: f.deviceFile})
		var d *diag.Error
		if errors.As(err, &d) {
			return out, d.At("%s", file)
		} else if err != nil {
			return out, err
		}
		canonical := m.Arch.ID
		if !strings.EqualFold(key, canonical) {
			canonical = m.ID()
		}
		if _, again := out.ByArch[canonical]; again {
			return out, diag.Inputf("%s is named twice, once as %q", canonical, key).At("%s", file).
				Do("put its numbers in one place")
		}
		out.ByArch[canonical] = read.ByArch[key]
	}
	return out, nil
}

// checkNamedPlugins fails if a plugin that the user named does not work: another plugin might answer in its place.
func checkNamedPlugins(plugins []info.Plugin) error {
	for _, p := range plugins {
		if err := p.Err(); p.Named && err != nil {
			return err.At("plugin %s", p.Path)
		}
	}
	return nil
}

// checkOptions refuses a key that none of the plugins declares.
func checkOptions(options map[string]string, targets []models.Found) error {
	var known []string
	for _, m := range targets {
		for _, o := range m.Manifest.Options {
			if !slices.Contains(known, o.Key) {
				known = append(known, o.Key)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if slices.Contains(known, key) {
			continue
		}
		err := diag.Inputf("no selected plugin has an option %q", key).At("--option")
		if len(known) == 0 {
			return err.Do("leave it out: these architectures have no options")
		}
		if near := diag.Nearest(key, known, 1); len(near) > 0 {
			return err.Do("did you mean %s? the options: %s", near[0], strings.Join(known, ", "))
		}
		return err.Do("the options: %s", strings.Join(known, ", "))
	}
	return nil
}

// declared returns the options of a target: its own, which win, and the words of --option that its plugin declares. It
// is nil if there are none.
func declared(f *models.Found, options map[string]string) map[string]string {
	all := maps.Clone(f.OpenRequest.Options)
	for key, value := range options {
		declares := slices.ContainsFunc(f.Manifest.Options, func(o arch.Option) bool { return o.Key == key })
		if _, own := all[key]; own || !declares {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[key] = value
	}
	return all
}
