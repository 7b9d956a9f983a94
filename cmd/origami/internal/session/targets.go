package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/sdk/host"
)

// Session answers names with architectures.
type Session struct {
	host      Host
	manifests []arch.Manifest
	gpus      []exec.Device // of this machine, once asked for
}

// New asks the host what there is.
func New(h Host) *Session { return &Session{host: h, manifests: h.Manifests()} }

// Manifests returns what the working plugins provide.
func (s *Session) Manifests() []arch.Manifest { return s.manifests }

// Plugins lists every plugin that was found.
func (s *Session) Plugins() []host.PluginInfo { return s.host.Plugins() }

// Targets finds what --arch and --device mean. An --arch is an architecture ("sm90"), an architecture on a device
// ("sm90@h200"), or a device ("h200"); --device belongs to the one --arch that names no device itself, or stands alone.
// The device "auto" is a GPU of this machine.
func (s *Session) Targets(ctx context.Context, archs []string, device string) ([]arch.Match, error) {
	if len(archs) == 0 && device == "" {
		return nil, diag.Inputf("no architecture is given").Do("add --arch, as in --arch %s; `origami arch ls` lists them", s.example())
	}
	if len(archs) == 0 {
		archs, device = []string{device}, ""
	}
	if device != "" {
		var bare []int
		for i, a := range archs {
			if !strings.Contains(a, "@") {
				bare = append(bare, i)
			}
		}
		if len(bare) != 1 {
			return nil, diag.Inputf("it cannot be told which --arch the device %q belongs to", device).At("--device").
				Do("write it behind its architecture, as in --arch %s@%s", firstPart(archs[0]), device)
		}
		archs = slices.Clone(archs)
		archs[bare[0]] += "@" + device
	}
	targets := make([]arch.Match, len(archs))
	for i, a := range archs {
		var err error
		if own, number, live := cutLive(a); live {
			targets[i], err = s.live(ctx, a, own, number)
		} else {
			targets[i], err = s.Find(a)
		}
		if err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// Find looks up what an --arch means.
func (s *Session) Find(name string) (arch.Match, error) {
	m, err := arch.Find(s.manifests, name)
	var d *diag.Error
	if !errors.As(err, &d) {
		return m, err
	}
	if unusable := s.unusable(); len(unusable) > 0 {
		d = d.Do("%s; %s cannot be used, `origami plugin ls` says why", d.Fix, strings.Join(unusable, ", "))
	}
	return m, d.At("--arch %s", name)
}

// unusable names the plugins that might have had what was not found.
func (s *Session) unusable() []string {
	var names []string
	for _, p := range s.host.Plugins() {
		if p.State != host.OK {
			names = append(names, "plugin "+p.Name)
		}
	}
	return names
}

func (s *Session) example() string {
	for _, m := range s.manifests {
		for _, a := range m.Archs {
			return a.ID
		}
	}
	return "sm89"
}

func firstPart(s string) string { first, _, _ := strings.Cut(s, "@"); return first }

// OpenOptions say how to open.
type OpenOptions struct {
	// Model is the model's name; empty means the plugin's best.
	Model string
	// Options are all --option values, checked by CheckOptions; a plugin gets those that it declares.
	Options map[string]string
	// Overrides are the hardware numbers, checked by CheckOverrides; OverrideFile is where they come from.
	Overrides    hw.Overrides
	OverrideFile string
	// Rung is the rung that the model must stand on; empty means the highest that it reaches.
	Rung arch.Rung
	// Compiled and Characterization are files for the rungs of these names; nil means the plugin's own.
	Compiled, Characterization []byte
}

// Open opens a target.
func (s *Session) Open(ctx context.Context, t arch.Match, o OpenOptions) (arch.Architecture, error) {
	if o.Model != "" && !slices.Contains(t.Arch.Models, o.Model) {
		return nil, diag.Inputf("%s has no model %q", t.Arch.ID, o.Model).At("--model").Do("use one of %s", strings.Join(t.Arch.Models, ", "))
	}
	r := t.Request()
	r.Model, r.Overrides = o.Model, o.Overrides.For(t.Arch.ID, t.Device.ID)
	for key, value := range o.Options {
		if declares(t.Manifest, key) {
			if r.Options == nil {
				r.Options = map[string]string{}
			}
			r.Options[key] = value
		}
	}
	r.Rung, r.Compiled, r.Characterization = o.Rung, o.Compiled, o.Characterization
	a, err := s.host.Open(ctx, r)
	var d *diag.Error
	if errors.As(err, &d) && d.Where == hw.OverridePlace {
		return nil, d.At("%s", o.OverrideFile)
	}
	if err != nil {
		return nil, err
	}
	// A model that knows more, or less, than it was asked to would be scored under a wrong name.
	if d := a.Describe(); o.Rung != "" && d.Rung != o.Rung {
		return nil, diag.Inputf("the %s model of %s stands on rung %s and not on %s", d.Model, d.ID(), d.Rung, o.Rung).At("--rung").Do("leave it out")
	}
	return a, nil
}

// CommonModel returns the best model that all targets have, in the first one's order, and the empty string if there is none.
func CommonModel(targets []arch.Match) string {
	for _, model := range targets[0].Arch.Models {
		everywhere := true
		for _, t := range targets[1:] {
			everywhere = everywhere && slices.Contains(t.Arch.Models, model)
		}
		if everywhere {
			return model
		}
	}
	return ""
}

// ParseOptions reads "key=value" words. A key may be given once.
func ParseOptions(words []string) (map[string]string, error) {
	options := map[string]string{}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			return nil, diag.Inputf("%q is not key=value", w).At("--option").Do("write it as in --option key=value; `origami arch show ID` lists the options")
		}
		if _, again := options[key]; again {
			return nil, diag.Inputf("%s is given twice", key).At("--option").Do("give each key once")
		}
		options[key] = value
	}
	return options, nil
}

// CheckOptions refuses a key that none of the targets' plugins declares.
func CheckOptions(options map[string]string, targets []arch.Match) error {
	var known []string
	for _, t := range targets {
		for _, o := range t.Manifest.Options {
			if !slices.Contains(known, o.Key) {
				known = append(known, o.Key)
			}
		}
	}
	keys := make([]string, 0, len(options))
	for key := range options {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
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

func declares(m *arch.Manifest, key string) bool {
	return slices.ContainsFunc(m.Options, func(o arch.Option) bool { return o.Key == key })
}

// CheckOverrides resolves the architectures that an override file names, so that its numbers find their place under
// any of a device's names. The bare form is for one architecture only.
func (s *Session) CheckOverrides(file string, o hw.Overrides, targets []arch.Match) (hw.Overrides, error) {
	if len(o.Bare) > 0 && len(targets) > 1 {
		return hw.Overrides{}, diag.Inputf("the file names no architecture, and %d are selected", len(targets)).At("%s", file).
			Do("put the numbers under their architecture, as in {%q:{…}}", targets[0].Arch.ID)
	}
	out := hw.Overrides{ByArch: map[string]map[string]hw.OverrideValue{}, Bare: o.Bare}
	for key, values := range o.ByArch {
		t, err := s.Find(key)
		var d *diag.Error
		if errors.As(err, &d) {
			return hw.Overrides{}, d.At("%s", file)
		}
		canonical := t.Arch.ID
		if !strings.EqualFold(key, canonical) {
			canonical = t.ID()
		}
		if _, again := out.ByArch[canonical]; again {
			return hw.Overrides{}, diag.Inputf("%s is named twice, once as %q", canonical, key).At("%s", file).Do("put its numbers in one place")
		}
		out.ByArch[canonical] = values
	}
	return out, nil
}
