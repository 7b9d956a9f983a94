package models

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
)

// Most is how many targets one question may have: their answers are in memory at once.
const Most = 64

// Parse reads the words of --arch: names, separated by commas, and behind a name a colon, options and hardware numbers,
// as in mi300x:release=early,clock=1.5GHz. A part that has a "=" and no name before it belongs to the name before it.
// device belongs to the one name that names no device itself, or is the only target. Find tells options from numbers.
func Parse(words []string, device string) ([]Target, error) {
	var targets []Target
	for _, word := range words {
		for part := range strings.SplitSeq(word, ",") {
			part = strings.TrimSpace(part)
			before, _, changes := strings.Cut(part, "=")
			if !changes {
				targets = append(targets, Target{Arch: part, named: part})
				continue
			}
			change := part
			if i := strings.LastIndexByte(before, ':'); i >= 0 {
				targets = append(targets, Target{Arch: part[:i], named: part[:i]})
				change = part[i+1:]
			}
			if len(targets) == 0 {
				return nil, diag.Inputf("%q changes no architecture", part).At("--arch %s", word).
					Do("write the architecture before it, as in h200:clock=1.5GHz")
			}
			if err := targets[len(targets)-1].change(change); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case len(targets) > Most:
		return nil, diag.Inputf("%d architectures are given, and one question takes up to %d", len(targets), Most).
			At("--arch").Do("ask about fewer at once")
	case device == "":
		return targets, nil
	case len(targets) == 0:
		return []Target{{Arch: device, named: device}}, nil
	}
	bare := -1
	for i := range targets {
		if strings.Contains(targets[i].Arch, "@") {
			continue
		}
		if bare >= 0 {
			bare = -1
			break
		}
		bare = i
	}
	if bare < 0 {
		first, _, _ := strings.Cut(targets[0].Arch, "@")
		return nil, diag.Inputf("it is not clear which --arch the device %q belongs to", device).At("--device").
			Do("write it behind its architecture, as in --arch %s@%s", first, device)
	}
	targets[bare].Device = device
	return targets, nil
}

// change adds an option or a hardware number.
func (t *Target) change(text string) error {
	name, _, _ := strings.Cut(text, "=")
	for _, other := range t.settings {
		if before, _, _ := strings.Cut(other, "="); before == name {
			return diag.Inputf("%s is given twice", name).At("--arch %s:%s,%s", t.named, t.whatIf(), text).Do("give it once")
		}
	}
	t.settings = append(t.settings, text)
	return nil
}

// whatIf are the options and the hardware numbers behind the name, as written.
func (t *Target) whatIf() string { return strings.Join(t.settings, ",") }

// settle adds the settings behind a name to the options of the request if the plugin declares them, and to the hardware
// numbers if not.
func (f *Found) settle(t *Target) error {
	r := &f.OpenRequest
	if len(t.settings) > 0 {
		r.Options, r.Overrides = map[string]string{}, map[string]hw.OverrideValue{}
		maps.Copy(r.Options, t.Options)
		maps.Copy(r.Overrides, t.Overrides)
	}
	for _, text := range t.settings {
		name, value, _ := strings.Cut(text, "=")
		if slices.ContainsFunc(f.Manifest.Options, func(o arch.Option) bool { return o.Key == name }) {
			r.Options[name] = value
			continue
		}
		name, number, err := hw.ParseOverride(text)
		var d *diag.Error
		if errors.As(err, &d) {
			if options := f.Manifest.Options; len(options) > 0 {
				names := make([]string, len(options))
				for i := range options {
					names[i] = options[i].Key
				}
				d = d.Do("write a number and its unit, as in clock=1.5GHz, or one of the options %s", strings.Join(names, ", "))
			}
			return d.At("--arch %s:%s", t.named, text)
		}
		r.Overrides[name] = number
	}
	return nil
}

// CutLive splits the name of a GPU of this machine: "auto", "auto:1", "sm90@auto" and "sm90@auto:1", where the number
// counts from 0 in the driver's order. number is empty if the name has none. live is false for another name.
func CutLive(name string) (archID, number string, live bool) {
	device := name
	if before, behind, ok := strings.Cut(name, "@"); ok {
		archID, device = before, behind
	}
	device, number, numbered := strings.Cut(device, ":")
	return archID, number, strings.EqualFold(device, arch.LiveID) && (number != "" || !numbered)
}

// IsLive reports whether a name means a GPU of this machine.
func IsLive(name string) bool {
	_, _, live := CutLive(name)
	return live
}
