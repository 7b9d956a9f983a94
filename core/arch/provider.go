package arch

import (
	"context"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
)

// Provider is what an architecture plugin implements: it says what it can model and opens one of those.
type Provider interface {
	// Manifest says what the plugin provides. It is cheap and needs no device.
	Manifest() Manifest
	// Open returns an architecture. An unknown architecture, device, model or option, or an override that does not
	// fit, is an error of kind diag.Input that names the alternatives.
	Open(ctx context.Context, r OpenRequest) (Architecture, error)
}

// Manifest lists what an architecture plugin provides.
type Manifest struct {
	// Name is the plugin's name, Version its own version.
	Name, Version string
	Archs         []ArchEntry
	Options       []Option
	// Calibrates and Ladder say which optional interfaces the plugin has beside Provider: calibrate.Planner and
	// ladder.Provider.
	Calibrates, Ladder bool
}

// ArchEntry is one architecture of a manifest.
type ArchEntry struct {
	ID     string `json:"id"` // "sm89"
	Vendor string `json:"vendor"`
	// Models are the models, the default first.
	Models []string `json:"models"`
	// Classes are the classes of Models, nil if no model has one: other names for them in requests.
	Classes []ModelClass `json:"model_classes,omitempty"`
	// Kernels are the kernel families, the default first: the family that answers where a user names none. It has
	// configurations that a user can set and reaches the matrix units; without such a family, it is the vendor's library.
	// Not every model predicts all of them.
	Kernels []string `json:"kernels"`
	// Fitted are the models whose constants can be fitted to measurements (core/fit.Tunable).
	Fitted []string `json:"-"`
	// Devices are the devices of this architecture, the default first.
	Devices []DeviceEntry `json:"devices"`
}

// ModelClass says what a model is for. It is a second name for the model in requests: of the models of a class, it
// means the best that predicts the kernel family asked for.
type ModelClass string

// The classes of models.
const (
	ClassRefined   ModelClass = "refined"   // origami's own prediction for a kernel family
	ClassReference ModelClass = "reference" // a published model, bit for bit: the yardstick, never tuned
)

// Class returns the class of a model by its position. A model without one is a class by itself.
func (e *ArchEntry) Class(i int) ModelClass {
	if i < len(e.Classes) && e.Classes[i] != "" {
		return e.Classes[i]
	}
	return ModelClass(e.Models[i])
}

// Has reports whether a request may name a model so: by its name, or by its class.
func (e *ArchEntry) Has(model string) bool {
	for i, name := range e.Models {
		if model == name || ModelClass(model) == e.Class(i) {
			return true
		}
	}
	return false
}

// DeviceEntry is one device of a manifest.
type DeviceEntry struct {
	ID      string   `json:"id"`   // "rtx4090"
	Name    string   `json:"name"` // "NVIDIA GeForce RTX 4090"
	Aliases []string `json:"aliases,omitempty"`
}

// Option is a setting that only this plugin knows, a key and a value.
type Option struct {
	Key     string `json:"key"`
	Default string `json:"default"` // as text; may depend on the architecture, then Doc says so
	// Values lists the accepted values; empty means that Doc describes the form.
	Values []string `json:"values,omitempty"`
	Doc    string   `json:"doc"`
}

// Check refuses a value that the option does not list.
func (o *Option) Check(value string) error {
	if len(o.Values) == 0 || slices.Contains(o.Values, value) {
		return nil
	}
	return diag.Inputf("%s=%s is unknown", o.Key, value).At("option").Do("use one of %s", strings.Join(o.Values, ", "))
}

// OptionValue is an option in force.
type OptionValue struct{ Key, Value string }

// OpenRequest names what to open. Empty fields mean the default.
type OpenRequest struct {
	Arch, Device string
	// Model is the name of a model or its class.
	Model string
	// Kernel is the kernel family that the model has to predict. A plugin may have several models of one class, each for
	// some families.
	Kernel    string
	Overrides map[string]hw.OverrideValue
	Options   map[string]string
	// Rung is how much the model may know; empty means all that is available.
	Rung Rung
	// Compiled and Characterization replace the plugin's files for the rungs of these names; nil keeps those. Compiled is
	// what the compiler reports for each kernel of a family, Characterization a timing pass over the kernels that does
	// not depend on problems.
	Compiled, Characterization []byte
	// Live is the GPU in the machine, when that is what to open. Its attributes are the lowest tier of hardware numbers.
	// Device is empty then, or names the device of the catalogue that it is (see FindLive).
	Live *LiveDevice
	// DeviceFile is a device file (hw.DecodeSheet) in the place of one of the plugin's own; nil means its own. Arch is
	// the file's, and Device is empty then.
	DeviceFile []byte
}

// LiveDevice is a GPU as its driver describes it.
type LiveDevice struct {
	Name string `json:"name"`
	// Attributes are hardware numbers by parameter name, in base units (Hz, B, B/s, W). A provider passes over those that
	// it does not know.
	Attributes map[string]float64 `json:"attributes,omitempty"`
}
