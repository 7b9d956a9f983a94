package calibratecmd

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/selector"
)

// calibrated is the answer of `calibrate`: the measured numbers beside those in use.
type calibrated struct {
	Name    string   `json:"driver_device_name"` // the driver's name of the GPU
	Arch    string   `json:"arch"`               // its architecture
	InUse   string   `json:"in_use"`             // the device whose numbers are in use, as `arch@device`
	Records string   `json:"records"`            // the file of what was measured
	Numbers []number `json:"numbers"`            // the numbers
	Probes  []probe  `json:"probes"`             // the microbenchmarks
	Picks   picks    `json:"picks"`              // what the numbers do to picks
}

// number is a measured number.
type number struct {
	Name      string   `json:"name"`  // its name
	Value     float64  `json:"value"` // what was measured, and its unit
	Unit      string   `json:"unit"`
	Parameter bool     `json:"parameter"` // whether models know it as a parameter of a device
	InUse     *float64 `json:"in_use"`    // the number in use
	Tier      string   `json:"in_use_tier,omitempty"`
	Method    string   `json:"method"`                 // how it was measured
	Date      string   `json:"date"`                   // the day of the last round
	Clock     float64  `json:"clock_hz,omitempty"`     // the clock meanwhile
	Spread    float64  `json:"spread" unit:"fraction"` // the largest coefficient of variation of the probes
	Probes    []string `json:"probes"`                 // the probes that it was computed from
}

// probe is a microbenchmark.
type probe struct {
	Name    string   `json:"name"`  // its name
	Value   *float64 `json:"value"` // the median of the rounds, `null` of too few, and its unit
	Unit    string   `json:"unit"`
	Clock   float64  `json:"clock_hz,omitempty"` // the clock meanwhile
	Spread  *float64 `json:"spread"`             // the coefficient of variation, `null` of too few
	Rounds  int      `json:"rounds"`             // how many there are
	Refused string   `json:"refused,omitempty"`  // why it has no value
}

// picks are the picks for the built-in sizes with the numbers in use and with the measured ones.
type picks struct {
	Model   string          `json:"model"` // as in `select`
	Class   arch.ModelClass `json:"model_class,omitempty"`
	Kernel  string          `json:"kernel"`
	Rung    arch.Rung       `json:"rung"`    // how much both sides know
	Sizes   int             `json:"sizes"`   // how many sizes have picks
	Changed []pick          `json:"changed"` // the picks that differ
}

// pick is what a problem gets with both.
type pick struct {
	Problem gemm.Record `json:"problem"` // the size
	Before  gemm.Config `json:"before"`  // the picks
	After   gemm.Config `json:"after"`
	// the times of both by the measured numbers
	SecondsBefore float64 `json:"predicted_before_seconds"`
	SecondsAfter  float64 `json:"predicted_after_seconds"`
}

// compare opens the GPU with the numbers in use and with the measured ones, and asks both for the built-in sizes.
func (o *CalibrateOptions) compare(ctx context.Context, r *outcome) (*calibrated, *arch.Description, error) {
	device := r.records.Device
	inUse, err := o.Factory.OpenGPU(ctx, device, nil)
	if err != nil {
		return nil, nil, err
	}
	d := inUse.Describe()
	overrides := r.overrides(d)
	measured, err := o.Factory.OpenGPU(ctx, device, func(q *arch.OpenRequest) { q.Overrides = overrides })
	if err != nil {
		return nil, nil, err
	}
	rung := measured.Describe().Rung
	// A timing pass that counts for the numbers in use alone would be compared, not the numbers.
	if rungs := arch.Rungs(); slices.Index(rungs, d.Rung) > slices.Index(rungs, rung) {
		if inUse, err = o.Factory.OpenGPU(ctx, device, func(q *arch.OpenRequest) { q.Rung = rung }); err != nil {
			return nil, nil, err
		}
	}
	c := &calibrated{Name: device.Name, Arch: device.Arch, InUse: d.ID(), Records: r.file, Numbers: r.beside(d),
		Picks: picks{Model: d.Model, Class: d.ModelClass, Rung: rung, Changed: []pick{}}}
	if len(d.Kernels) > 0 {
		c.Picks.Kernel = d.Kernels[0]
	}
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		v := r.values[name]
		one := probe{Name: name, Unit: v.Unit, Clock: float64(v.Clock), Rounds: v.Rounds, Refused: r.refused[name]}
		if v.Rounds >= calibrate.MinRounds {
			one.Value, one.Spread = &v.Value, &v.Spread
		}
		c.Probes = append(c.Probes, one)
	}
	return c, d, c.Picks.ask(ctx, inUse, measured)
}

// beside sets the numbers beside those in use.
func (r *outcome) beside(inUse *arch.Description) (list []number) {
	for _, n := range r.numbers {
		one := number{Name: n.Name, Value: n.Value, Unit: n.Unit, Parameter: n.Parameter, Method: n.Source, Date: n.Date,
			Clock: float64(n.Clock), Spread: n.Spread, Probes: n.Probes}
		if p, ok := hw.Set(inUse.Params).Lookup(n.Name); n.Parameter && ok {
			one.InUse, one.Tier = &p.Value, p.Tier.String()
		}
		list = append(list, one)
	}
	return list
}

// asked picks for the built-in sizes.
func (c *picks) ask(ctx context.Context, inUse, measured arch.Architecture) error {
	problems := measure.TritonBLASProblems()
	request := selector.Request{Problems: problems, Top: 1, Map: 1}
	before, err := selector.Rank(ctx, inUse, request)
	if err != nil {
		return err
	}
	after, err := selector.Rank(ctx, measured, request)
	if err != nil {
		return err
	}
	clock := measured.Describe().Clock
	for i, p := range problems {
		if len(before[i].Entries) == 0 || len(after[i].Entries) == 0 {
			continue
		}
		c.Sizes++
		estimates := make([]arch.Estimate, 1)
		was, is := before[i].Entries[0], after[i].Entries[0]
		if was.Config == is.Config {
			continue
		}
		if err := measured.Estimate(ctx, estimates, p, []gemm.Config{was.Config}); err != nil {
			return err
		}
		c.Changed = append(c.Changed, pick{p.Record(), was.Config, is.Config,
			float64(estimates[0].Cycles.At(clock)), float64(is.Estimate.Cycles.At(clock))})
	}
	return nil
}

// write writes the numbers, and says what they do to the picks. The methods are too long for people.
func (c *calibrated) write(s *iostreams.Streams, format show.Format) error {
	key := show.Key[number]
	err := show.Answer(s, format, c, func() {}, c.Numbers, key("name", "number"), key("value"), key("unit"), key("in_use"),
		key("in_use_tier", "tier"), key("spread"),
		show.Number("clock_ghz", func(n *number) float64 { return n.Clock / 1e9 }, digits.SixDigits))
	if err != nil || format == show.JSON {
		return err
	}
	s.Note(fmt.Sprintf("the numbers in use are those of %s; with the measured ones %d of %d picks of the model %s change "+
		"(%s)", c.InUse, len(c.Picks.Changed), c.Picks.Sizes, c.Picks.Model, c.Picks.Rung))
	for _, p := range c.Picks.Changed {
		s.Note(fmt.Sprintf("%s: %s, was %s, which takes %s longer by these numbers", p.Problem, p.After, p.Before,
			digits.Percent(p.SecondsBefore/p.SecondsAfter-1)))
	}
	return nil
}

// writeFile writes the device file, if one is asked for.
func (o *CalibrateOptions) writeFile(r *outcome, inUse *arch.Description) error {
	if o.DeviceFile == "" {
		return nil
	}
	text, err := r.deviceFile(inUse)
	if err == nil {
		err = session.Replace(o.DeviceFile, text)
	}
	if err == nil {
		o.Factory.Streams.Note(fmt.Sprintf("the device file is %s; --device-file %[1]s uses it", o.DeviceFile))
	}
	return err
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

// clockTolerance is how much the measured clock may differ from the one in use and count as the same. The driver gives
// whole MHz, and an override of the clock describes another chip.
const clockTolerance = 0.005

// overrides are the measured parameters that the models have a value of without.
func (r *outcome) overrides(inUse *arch.Description) map[string]hw.OverrideValue {
	out := map[string]hw.OverrideValue{}
	for _, n := range r.numbers {
		known, ok := hw.Set(inUse.Params).Lookup(n.Name)
		if !n.Parameter || !ok || n.Name == "clock" &&
			max(n.Value, known.Value) <= (1+clockTolerance)*min(n.Value, known.Value) {
			continue
		}
		out[n.Name] = hw.OverrideValue{Value: n.Value, Unit: n.Unit}
	}
	return out
}

// sheet returns the device file: the measured numbers, and below them the GPU's numbers that were not measured.
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
