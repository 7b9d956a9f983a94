package session

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/host"
)

// Target is an architecture on a device that the user named, and the request that opens it.
type Target struct {
	arch.Match
	OpenRequest arch.OpenRequest
	// Named is what the user called it, WhatIf the hardware numbers behind that name, as in "clock=1.5GHz".
	Named, WhatIf string
}

// Label tells a target from others on the same device.
func (t *Target) Label() string {
	if t.WhatIf == "" {
		return t.ID()
	}
	return t.ID() + ":" + t.WhatIf
}

// Targets resolves the names of architectures and the device, and completes a request for each from the settings.
// archs and device are the settings' or, for `arch show`, arguments. The numbers behind a name win over --hw-params.
func (f *Factory) Targets(ctx context.Context, archs []string, device string) ([]Target, error) {
	options, err := parseOptions(f.PluginOptions)
	if err != nil {
		return nil, err
	}
	sides, err := parseSides(archs)
	if err != nil {
		return nil, err
	}
	if err := f.connect(ctx); err != nil {
		return nil, err
	}
	if err := f.readDeviceFile(ctx); err != nil {
		return nil, err
	}
	if len(sides) == 0 && device == "" && f.file != nil {
		sides = []side{{name: f.file.header.Arch + "@" + f.file.header.Device}}
	}
	if len(sides) == 0 && device != "" {
		sides, device = []side{{name: device}}, ""
	}
	names := make([]string, len(sides))
	for i := range sides {
		names[i] = sides[i].name
	}
	matches, err := f.match(ctx, names, device)
	if named := checkNamedPlugins(f.host.Known()); named != nil {
		return nil, named
	}
	if err != nil {
		return nil, err
	}
	if err := checkOptions(options, matches); err != nil {
		return nil, err
	}
	common, err := f.commonRequest(ctx, matches)
	if err != nil {
		return nil, err
	}
	overrides, err := f.overrides(ctx, matches)
	if err != nil {
		return nil, err
	}
	targets := make([]Target, len(matches))
	for i, m := range matches {
		r, named := common, m.Request()
		r.Arch, r.Device, r.Live, r.DeviceFile = named.Arch, named.Device, named.Live, named.DeviceFile
		r.Options = declared(m.Manifest, options)
		r.Overrides = overrides.For(m.Arch.ID, m.Device.ID)
		maps.Copy(r.Overrides, sides[i].values)
		targets[i] = Target{Match: m, OpenRequest: r, Named: sides[i].name, WhatIf: sides[i].whatIf}
	}
	return targets, nil
}

// commonRequest fills in what the settings ask of every target. A setting that plugins should see is copied here and
// nowhere else.
func (f *Factory) commonRequest(ctx context.Context, matches []arch.Match) (r arch.OpenRequest, err error) {
	r = arch.OpenRequest{Model: f.Settings.Model, Kernel: f.Settings.Kernel, Rung: arch.Rung(f.Settings.Rung)}
	if r.Compiled, err = readTable(ctx, "--compiled", f.Settings.CompiledFile, len(matches)); err != nil {
		return r, err
	}
	r.Characterization, err = readTable(ctx, "--characterization", f.Settings.CharacterizationFile, len(matches))
	return r, err
}

// readTable reads a file about the kernels of one device; nil without a file.
func readTable(ctx context.Context, flag, file string, targets int) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	if targets > 1 {
		return nil, diag.Inputf("the file is about the kernels of one device, and %d are selected", targets).
			At("%s %s", flag, file).Do("leave it out")
	}
	data, err := readFile(ctx, file, limit.Kernels, "leave rows out")
	if err != nil && limit.Exceeded(err) == nil {
		err = diag.Inputf("it cannot be read: %v", err).At("%s %s", flag, file).Do("check the file")
	}
	return data, err
}

// overrides reads --hw-params.
func (f *Factory) overrides(ctx context.Context, matches []arch.Match) (hw.Overrides, error) {
	file := f.Settings.HWParams
	if file == "" {
		return hw.Overrides{}, nil
	}
	data, err := readFile(ctx, file, limit.Text, "give a file of hardware numbers")
	if limit.Exceeded(err) != nil {
		return hw.Overrides{}, err
	} else if err != nil {
		return hw.Overrides{}, diag.Inputf("the hardware numbers cannot be read: %v", err).At("%s", file).
			Do("check --hw-params, ORIGAMI_HW_PARAMS and TRITONBLAS_HW_PARAMS")
	}
	overrides, err := hw.ParseOverrides(file, data)
	if err != nil {
		return hw.Overrides{}, err
	}
	return f.checkOverrides(ctx, file, overrides, matches)
}

// checkOverrides resolves the architectures that an override file names, so that its numbers find their place under
// any of a device's names. The bare form is for one architecture only.
func (f *Factory) checkOverrides(
	ctx context.Context, file string, o hw.Overrides, matches []arch.Match,
) (hw.Overrides, error) {
	if len(o.Bare) > 0 && len(matches) > 1 {
		return hw.Overrides{}, diag.Inputf("the file names no architecture, and %d are selected", len(matches)).
			At("%s", file).Do("put the numbers under their architecture, as in {%q:{…}}", matches[0].Arch.ID)
	}
	out := hw.Overrides{ByArch: map[string]map[string]hw.OverrideValue{}, Bare: o.Bare}
	for _, key := range slices.Sorted(maps.Keys(o.ByArch)) {
		m, err := f.find(ctx, key)
		var d *diag.Error
		if errors.As(err, &d) {
			return hw.Overrides{}, d.At("%s", file)
		}
		canonical := m.Arch.ID
		if !strings.EqualFold(key, canonical) {
			canonical = m.ID()
		}
		if _, again := out.ByArch[canonical]; again {
			return hw.Overrides{}, diag.Inputf("%s is named twice, once as %q", canonical, key).At("%s", file).
				Do("put its numbers in one place")
		}
		out.ByArch[canonical] = o.ByArch[key]
	}
	return out, nil
}

// readFile reads a whole file, through gzip if its name ends in .gz. The error does not repeat the name, unless the
// file is too large.
func readFile(ctx context.Context, name string, most limit.Size, fix string) ([]byte, error) {
	file, err := OpenFile(ctx, name)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer func() { _ = file.Close() }()
	in := io.Reader(file)
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			return nil, withoutPath(err)
		}
	}
	data, err := limit.ReadAll(in, name, most, fix)
	return data, withoutPath(err)
}

// withoutPath drops the operation and the path, which the message has anyway.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// checkNamedPlugins fails if a plugin that the user named does not work: another plugin might answer in its place.
func checkNamedPlugins(plugins []host.PluginInfo) error {
	for _, p := range plugins {
		if err := p.Err(); p.Named && err != nil {
			return err.At("plugin %s", p.Path)
		}
	}
	return nil
}

// parseOptions reads "key=value" words. A key may be given once.
func parseOptions(words []string) (map[string]string, error) {
	options := map[string]string{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			return nil, diag.Inputf("%q is not key=value", w).At("--option").
				Do("write it as in --option key=value; `origami arch show ID` lists the options")
		}
		if _, again := options[key]; again {
			return nil, diag.Inputf("%s is given twice", key).At("--option").Do("give each key once")
		}
		options[key] = value
	}
	return options, nil
}

// checkOptions refuses a key that none of the plugins declares.
func checkOptions(options map[string]string, matches []arch.Match) error {
	var known []string
	for _, m := range matches {
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

// declared returns the options that a plugin declares, nil if there are none.
func declared(m *arch.Manifest, options map[string]string) map[string]string {
	var declares map[string]string
	for _, o := range m.Options {
		if value, ok := options[o.Key]; ok {
			if declares == nil {
				declares = map[string]string{}
			}
			declares[o.Key] = value
		}
	}
	return declares
}
