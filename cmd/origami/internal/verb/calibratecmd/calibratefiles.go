package calibratecmd

import (
	"encoding/json"
	"fmt"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
)

// files writes the device file and the overrides.
func (o *CalibrateOptions) files(r *outcome, inUse *arch.Description) error {
	for _, out := range []struct {
		name, what string
		text       func(*arch.Description) ([]byte, error)
	}{
		{o.DeviceFile, "the device file is %s; --device-file %[1]s uses it", r.deviceFile},
		{o.Overrides, "the overrides are in %s; --hw-params %[1]s uses them", r.overrideFile},
	} {
		if out.name == "" {
			continue
		}
		text, err := out.text(inUse)
		if err == nil {
			err = session.Replace(out.name, text)
		}
		if err != nil {
			return err
		}
		o.Factory.Streams.Note(fmt.Sprintf(out.what, out.name))
	}
	return nil
}

// deviceFile returns the YAML, behind a comment on where it comes from.
func (r *outcome) deviceFile(inUse *arch.Description) ([]byte, error) {
	text, err := hw.EncodeSheet(r.sheet(inUse))
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "# %s, calibrated by %s.\n# Numbers under calibrated are measured, the others are "+
		"those that origami would use without.\n", r.records.Device.Name, r.records.Host), text...), nil
}

// overrideFile returns the JSON: under the device if origami has its file, otherwise bare, for the device that is
// selected.
func (r *outcome) overrideFile(inUse *arch.Description) ([]byte, error) {
	type value struct {
		Value float64 `json:"value"`
		Unit  string  `json:"unit"`
	}
	values := map[string]value{}
	for name, n := range r.overrides(inUse) {
		values[name] = value{n.Value, n.Unit}
	}
	var content any = values
	if inUse.Device != arch.LiveID {
		content = map[string]any{inUse.ID(): values}
	}
	text, err := json.MarshalIndent(content, "", "  ")
	return append(text, '\n'), err
}

// clockTolerance is how much the measured clock may differ from the one in use and count as the same. The driver gives
// whole MHz, and an override of the clock describes another chip.
const clockTolerance = 0.005

// overrides are the measured parameters that a file for --hw-params has: those that the models have a value of without.
func (r *outcome) overrides(inUse *arch.Description) map[string]hw.Number {
	out := map[string]hw.Number{}
	for _, n := range r.numbers {
		known, ok := hw.Set(inUse.Params).Lookup(n.Name)
		if !n.Parameter || !ok || n.Name == "clock" &&
			max(n.Value, known.Value) <= (1+clockTolerance)*min(n.Value, known.Value) {
			continue
		}
		out[n.Name] = n.Number
	}
	return out
}

// sheet returns the device file: the measured numbers, and below them those of the GPU without measurements.
func (r *outcome) sheet(inUse *arch.Description) *hw.Sheet {
	device := r.records.Device
	day := ""
	for _, n := range r.numbers {
		day = max(day, n.Date)
	}
	s := hw.SheetOf(hw.Header{Arch: device.Arch, Device: slug(device.Name), Name: device.Name, Vendor: inUse.Vendor},
		inUse.Params, day, "driver, when the GPU was calibrated")
	for _, n := range r.numbers {
		if n.Parameter {
			s.Calibrated[n.Name] = n.Number
		}
	}
	s.Atoms = r.atoms
	return s
}
