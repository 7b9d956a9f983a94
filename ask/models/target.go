// Package models names, finds and opens models. A Target is a plain value; a Source has the architectures: plugins in
// their processes, or Providers in this one.
package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/core/timing"
)

// Target is a model of a device. Its JSON is the open request of the C library. Empty fields mean the default.
type Target struct {
	// "sm90", "sm90@h200" or "h200"
	Arch string `json:"arch"`
	// the device of an architecture that names none
	Device string `json:"device,omitempty"`
	// a model or a class of models
	Model  string `json:"model,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	// how much the model may know
	Rung arch.Rung `json:"rung,omitempty"`
	// what times are of; model otherwise
	Timing timing.Timing `json:"timing,omitempty"`
	// settings of the architecture's plugin
	Options map[string]string `json:"options,omitempty"`
	// hardware numbers that win over all others
	Overrides Overrides `json:"overrides,omitempty"`
	// the configurations to choose from
	Space Space `json:"space,omitempty"`
	// leaves out the configurations whose order of sums depends on M
	Invariant bool `json:"invariant,omitempty"`
	// the GPU of this machine as its driver describes it, instead of Device
	Live *arch.LiveDevice `json:"live,omitempty"`
	// the text of a device file. It wins over a plugin's device of the same name, and is the target if Arch is empty
	DeviceFile string `json:"device_file,omitempty"`
	// the texts of files about the kernels, as in arch.OpenRequest
	Compiled         string `json:"compiled,omitempty"`
	Characterization string `json:"characterization,omitempty"`

	// named is what a user called the device, settings the options and hardware numbers behind that name, as written.
	// Parse sets them.
	named    string
	settings []string
}

// Overrides are hardware numbers by parameter.
type Overrides map[string]hw.OverrideValue

// UnmarshalJSON reads an object of numbers or of objects with a value and a unit.
func (o *Overrides) UnmarshalJSON(text []byte) error {
	const place = "overrides"
	read, err := hw.ParseOverrides(place, text)
	if err == nil && len(read.ByArch) > 0 {
		err = diag.Inputf("the numbers stand under an architecture").At(place).
			Do(`a request is for one device: write {"clock":1.5e9}`)
	}
	*o = read.Bare
	return err
}

// Decode reads the JSON of a target.
func Decode(text []byte) (t Target, err error) {
	err = strictjson.Unmarshal(text, &t)
	var d *diag.Error
	switch {
	case err == nil:
		return t, nil
	case errors.As(err, &d):
		return t, d
	case errors.Is(err, strictjson.ErrTrailing):
		err = errors.New("data follows the first JSON object")
	}
	return t, diag.Inputf("not understood: %v", err).At("open request").Do(`write a JSON object, as in {"arch":"sm90"}`)
}

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

// UnmarshalJSON reads an object with a list of values for each axis.
func (s *Space) UnmarshalJSON(text []byte) error {
	var axes map[string]json.RawMessage
	if err := json.Unmarshal(text, &axes); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(axes)) {
		axis := Axis{Name: name, place: "space." + name}
		isNumber := slices.ContainsFunc(gemm.Fields(), func(f gemm.Field) bool { return f.Name == name })
		var err error
		if isNumber {
			axis.Values, err = decoded[json.Number](axes[name])
		} else {
			axis.Values, err = decoded[string](axes[name])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", axis.place, err)
		}
		*s = append(*s, axis)
	}
	return nil
}

func decoded[T ~string](text []byte) (texts []string, err error) {
	var values []T
	err = json.Unmarshal(text, &values)
	for _, v := range values {
		texts = append(texts, string(v))
	}
	return texts, err
}

// MarshalJSON writes the object that UnmarshalJSON reads.
func (s Space) MarshalJSON() ([]byte, error) {
	axes := map[string]any{}
	for _, axis := range s {
		axes[axis.Name] = axis.Values
		if slices.ContainsFunc(gemm.Fields(), func(f gemm.Field) bool { return f.Name == axis.Name }) {
			numbers := make([]json.Number, len(axis.Values))
			for i, v := range axis.Values {
				numbers[i] = json.Number(v)
			}
			axes[axis.Name] = numbers
		}
	}
	return json.Marshal(axes)
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
