// Package models names, finds and opens models. A Target is a plain value; a Source has the architectures: plugins in
// their processes, or Providers in this one.
package models

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/timing"
)

// Target is a model of a device. Empty fields mean the default.
type Target struct {
	// "sm90", "sm90@h200" or "h200"
	Arch string
	// the device of an architecture that names none
	Device string
	// a model or a class of models
	Model  string
	Kernel string
	// how much the model may know
	Rung arch.Rung
	// what times are of; model otherwise
	Timing timing.Timing
	// settings of the architecture's plugin
	Options map[string]string
	// hardware numbers that win over all others
	Overrides Overrides
	// the GPU of this machine as its driver describes it, instead of Device
	Live *arch.LiveDevice
	// the text of a device file. It wins over a plugin's device of the same name, and is the target if Arch is empty
	DeviceFile string
	// the texts of files about the kernels, as in arch.OpenRequest
	Compiled         string
	Characterization string

	// named is what a user called the device, settings the options and hardware numbers behind that name, as written.
	// Parse sets them.
	named    string
	settings []string
}

// Overrides are hardware numbers by parameter.
type Overrides map[string]hw.OverrideValue

// Name returns what the target calls its device: "arch", "arch@device" or "device".
func (t *Target) Name() string {
	if t.Device == "" {
		return t.Arch
	}
	return t.Arch + "@" + t.Device
}

// Space restricts axes of a model's space of configurations. An axis without values here keeps the model's. Axes that
// every configuration has take numbers, axes of a kernel family take texts.
type Space []Axis

// Axis has the values on one axis.
type Axis struct {
	Name   string
	Values []string

	place string // for errors
}

// ParseSpace reads words of the form axis=value,value.
func ParseSpace(place string, words []string) (Space, error) {
	var s Space
	for _, word := range words {
		name, text, _ := strings.Cut(word, "=")
		axis := Axis{Name: name, Values: strings.Split(text, ","), place: place + " " + word}
		if text == "" || slices.Contains(axis.Values, "") {
			return nil, diag.Inputf("the axis %s has no values", name).At("%s", axis.place).
				Do("write AXIS=VALUE,VALUE, as in split_k=1,2,4,8")
		}
		s = append(s, axis)
	}
	return s, nil
}

// Of returns the space of a kernel family of a model. An axis that the family does not have is an error.
func (s Space) Of(d *arch.Description, kernel string) (arch.Space, error) {
	space := arch.Space{Kernel: kernel}
	var seen []string
	for _, axis := range s {
		name, err := space.Set(axis.Name, axis.Values, d.Axes(kernel))
		if err != nil {
			return space, diag.Within(axis.place, err)
		}
		if slices.Contains(seen, name) {
			return space, diag.Inputf("the axis %s is given twice", name).At("%s", axis.place).
				Do("give all its values in one list")
		}
		seen = append(seen, name)
	}
	return space, nil
}
