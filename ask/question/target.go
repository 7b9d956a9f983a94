package question

import (
	"context"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/core/timing"
)

// Target says which models answer.
type Target struct {
	Arch      []string `json:"arch" arg:"ID" help:"architecture, as ID, ID@DEVICE or DEVICE, with options and other hardware numbers behind a colon, as in mi300x:release=early,clock=1.5GHz; several with commas, or repeat it"`
	Device    string   `json:"device" arg:"ID" help:"device of the architecture; its first device otherwise"`
	Model     string   `json:"model" arg:"NAME" help:"name of the model, or a class: refined or reference; the architecture's best otherwise"`
	Rung      string   `json:"rung" arg:"RUNG" help:"how much the model may know: spec, calibrated, compiled, characterized; the highest one otherwise"`
	Timing    string   `json:"timing" arg:"TIMING" help:"what predicted times are of (default model)"`
	Options   []string `json:"options" arg:"KEY=VALUE" help:"setting that only one plugin knows; repeatable"`
	Overrides []string `json:"overrides" arg:"NAME=NUMBER" help:"hardware number that wins over all others"`
	// the GPU of this machine as its driver describes it, in place of a device
	Live Live `json:"live" file:"yes"`

	DeviceFile       Document `json:"device_file" arg:"FILE" file:"yes" rare:"yes" help:"YAML file of a device, as calibrate writes it"`
	Compiled         Document `json:"compiled" arg:"FILE" file:"yes" rare:"yes" help:"file of what the compiler reports about each kernel"`
	Characterization Document `json:"characterization" arg:"FILE" file:"yes" rare:"yes" help:"file of a timing pass over the kernels"`
}

// Live is the GPU of this machine.
type Live struct{ *arch.LiveDevice }

// UnmarshalJSON reads a live device.
func (l *Live) UnmarshalJSON(value []byte) error { return strictjson.Unmarshal(value, &l.LiveDevice) }

// Set reads the JSON of a live device.
func (l *Live) Set(text string) error { return l.UnmarshalJSON([]byte(text)) }

// String implements fmt.Stringer.
func (l *Live) String() string {
	if l.LiveDevice == nil {
		return ""
	}
	return l.Name
}

// Found finds the devices of the targets.
func (q *Target) Found(ctx context.Context, s models.Source, kernel string) ([]models.Found, error) {
	targets, err := models.Parse(q.Arch, q.Device)
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		if q.DeviceFile.Text == "" {
			return nil, diag.Inputf("no architecture is given").At("arch").Do(`name one, as in {"arch":"h200"}`)
		}
		targets = []models.Target{{}}
	}
	options, err := ByKey("options", "key=value", q.Options)
	if err != nil {
		return nil, err
	}
	overrides := models.Overrides{}
	for _, word := range q.Overrides {
		name, number, err := hw.ParseOverride(word)
		if err != nil {
			return nil, diag.Within("overrides", err)
		}
		overrides[name] = number
	}
	found := make([]models.Found, len(targets))
	for i := range targets {
		t := &targets[i]
		t.Model, t.Kernel, t.Rung, t.Options, t.Overrides = q.Model, kernel, arch.Rung(q.Rung), options, overrides
		t.Live, t.DeviceFile = q.Live.LiveDevice, q.DeviceFile.Text
		t.Compiled, t.Characterization = q.Compiled.Text, q.Characterization.Text
		if q.Timing != "" {
			if t.Timing, err = timing.Parse(q.Timing); err != nil {
				return nil, diag.Within("timing", err)
			}
		}
		if found[i], err = models.Find(ctx, s, t); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Sides opens the targets with the candidates that are asked for. If reach is set, they answer with what their devices
// reach (models.Found.Reach).
func (q *Target) Sides(ctx context.Context, s models.Source, search *Search, kernel string, invariant, reach bool) (
	[]ask.Contender, error,
) {
	found, err := q.Found(ctx, s, kernel)
	if err != nil {
		return nil, err
	}
	if reach {
		search.Reach(found, invariant)
	}
	sides := make([]ask.Contender, len(found))
	for i := range found {
		a, err := found[i].Open(ctx, s)
		if err != nil {
			return nil, err
		}
		if sides[i], err = search.Side(s, &found[i], a, invariant); err != nil {
			return nil, err
		}
	}
	return sides, nil
}
