package calibratecmd

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
)

// FitOptions are what the command line says.
type FitOptions struct {
	Factory *session.Factory
	Records []string `json:"records" arg:"FOLDER" help:"FOLDER of a data set to fit to; may be repeated; the shipped one otherwise"`
	Name    string   `json:"name" arg:"NAME" help:"NAME of the device in that file; the device's and -fitted otherwise"`
	Write   string   `json:"output" short:"o" arg:"FILE" help:"write a device file to FILE, for --device-file"`
}

// NewFit returns the command.
func NewFit(f *session.Factory) *cobra.Command {
	o := &FitOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "fit --arch ARCH --records FOLDER",
		Short: "Fit the model's constants to measurements of your own GPU",
		Long: "Fit the constants of the model to measured times, as `origami bench --executor` records them: at\n" +
			"least 100 times of 10 sizes, in five folds. Constants are adopted that the times determine and all\n" +
			"folds move in one direction, and only if the model then predicts the sizes left out better, by\n" +
			"more than the scatter, and picks no slower kernels there. --output makes a device file of the\n" +
			"device and the adopted constants, for --device-file. docs/fitting.md says how to read the answer.",
		Example: `  origami bench --arch a100 --executor triton --records ./a100-sweep
  origami fit --arch a100 --records ./a100-sweep --output my-a100.yaml
  origami --device-file my-a100.yaml select -m 4096 -n 4096 -k 4096
  origami fit --device-file calibrated.yaml --records ./sweep --records ./more --output fitted.yaml
  origami fit --arch h200 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return Fit(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	session.Register(flags, o)
	flags.String("kernel", "", "kernel `FAMILY` of the measurements; the architecture's first otherwise")
	return cmd
}

// Fit answers.
func Fit(ctx context.Context, o *FitOptions) error {
	targets, err := o.Factory.Targets(ctx, o.Factory.Settings.Arch, o.Factory.Settings.Device)
	if err != nil {
		return err
	}
	if len(targets) > 1 {
		return diag.Inputf("%d architectures are given, and one is fitted", len(targets)).At("--arch").Do("leave one")
	}
	if err := session.Writable(o.Write); err != nil {
		return err
	}
	targets[0].OwnTiming = true // measured times are converted to it
	current, err := o.Factory.Open(ctx, &targets[0])
	if err != nil {
		return err
	}
	d := current.Describe()
	sets, err := datastore.Folders(ctx, d, o.Factory.Settings.Kernel, "--records", o.Records)
	if err != nil {
		return err
	}
	sheet, err := o.sheet(d, &targets[0])
	if err != nil {
		return err
	}
	tunable, err := o.open(ctx, targets[0], sheet)
	if err != nil {
		return err
	}
	sample, problems, err := sampleOf(ctx, tunable, sets)
	if err != nil {
		return err
	}
	adoption, err := o.adopt(ctx, sample, tunable, current)
	if err != nil {
		return err
	}
	a := newFitted(d, sets, adoption)
	if o.Write != "" && a.Adopted {
		sheet.Fitted = a.section(sheet.Fitted, adoption, problems)
		if err := write(o.Write, sheet); err != nil {
			return err
		}
		a.File = o.Write
	}
	return a.write(o.Factory.Streams, o.Factory.Format(), o.Write != "")
}

// fittedSuffix follows the name of a device of origami's in the name of the fitted one.
const fittedSuffix = "-fitted"

// sheet returns the device file without the fitted constants: the numbers in use, under a name that no
// shipped device has. The name in use is an alias, since measurements bear it.
func (o *FitOptions) sheet(d *arch.Description, t *models.Found) (*hw.Sheet, error) {
	h := hw.Header{Arch: d.Arch, Device: o.Name, Name: d.DeviceName, Vendor: d.Vendor}
	var given *hw.Sheet
	if t.OpenRequest.DeviceFile != nil {
		var err error
		if given, err = hw.DecodeSheet(o.Factory.Settings.DeviceFile, t.OpenRequest.DeviceFile); err != nil {
			return nil, err
		}
		h.Aliases = slices.Clone(given.Aliases)
	}
	switch {
	case h.Device == "" && given != nil:
		h.Device = d.Device
	case h.Device == "":
		h.Device = d.Device + fittedSuffix
	}
	if h.Device != d.Device && !slices.Contains(h.Aliases, d.Device) {
		h.Aliases = append(h.Aliases, d.Device)
	}
	s := hw.SheetOf(h, d.Params, time.Now().UTC().Format(time.DateOnly), "driver, when the model was fitted")
	if given != nil {
		s.Atoms, s.Fitted = given.Atoms, given.Fitted
		return s, nil
	}
	for _, a := range d.Atoms {
		s.Atoms = append(s.Atoms, hw.Atom{Type: a.DType.String(), M: a.M, N: a.N, K: a.K, Cycles: float64(a.Latency),
			Source: "as of " + d.ID(), Method: hw.Assumed, Date: time.Now().UTC().Format(time.DateOnly)})
	}
	return s, nil
}

// open opens the model with the numbers of a sheet.
func (o *FitOptions) open(ctx context.Context, t models.Found, sheet *hw.Sheet) (fit.Tunable, error) {
	text, err := hw.EncodeSheet(sheet)
	if err != nil {
		return nil, err
	}
	r := &t.OpenRequest
	r.Device, r.DeviceFile, r.Live, r.Overrides = "", text, nil, nil
	return o.Factory.Tunable(ctx, &t)
}

// perProblem is how many kernels of a problem are fitted to. The fastest of a larger sweep count, and of the others as
// many as are left, evenly spread over their times.
const perProblem, fastestOfProblem = 200, 50

// sampleOf returns the times to fit to.
func sampleOf(
	ctx context.Context, m arch.Architecture, sets []*dataset.Dataset,
) (s *fit.Sample, problems []gemm.Problem, err error) {
	s = &fit.Sample{}
	for _, set := range sets {
		for _, p := range set.Problems() {
			var configs []gemm.Config
			var seconds []float64
			kept, err := usable(ctx, m, p, set.Sweep(p))
			if err != nil {
				return nil, nil, err
			}
			for _, k := range thinned(kept) {
				configs, seconds = append(configs, k.Config), append(seconds, float64(k.Median))
			}
			if len(configs) == 0 {
				continue
			}
			if err := s.Add(p, configs, own(m, &p, set.Timing(), seconds)); err != nil {
				return nil, nil, err
			}
			problems = append(problems, p)
		}
	}
	return s, problems, nil
}

// own converts measured times to the timing of the model, if it states one.
func own(m arch.Architecture, p *gemm.Problem, of timing.Timing, seconds []float64) []float64 {
	to := timing.Timing(m.Describe().Timing)
	if to == of || to == "" {
		return seconds
	}
	device := timing.New(m)
	for i, s := range seconds {
		seconds[i] = float64(device.Convert(unit.Seconds(s), p, of, to))
	}
	return seconds
}

// usable returns the measured kernels that the model has a time for.
func usable(
	ctx context.Context, m arch.Architecture, p gemm.Problem, sweep []dataset.Measurement,
) (kept []dataset.Measurement, err error) {
	sweep = slices.DeleteFunc(sweep, func(k dataset.Measurement) bool { return k.Status != dataset.OK || k.Median <= 0 })
	rows, err := score.Predict(ctx, m, p, sweep)
	if diag.KindOf(err) == diag.Input {
		return nil, nil // a type or a layout that the model does not take
	}
	for i := range rows {
		if rows[i].Reject == "" {
			kept = append(kept, sweep[i])
		}
	}
	return kept, err
}

// thinned leaves out kernels of a problem that has more than perProblem.
func thinned(all []dataset.Measurement) []dataset.Measurement {
	if len(all) <= perProblem {
		return all
	}
	slices.SortStableFunc(all, func(a, b dataset.Measurement) int {
		switch {
		case a.Median < b.Median:
			return -1
		case a.Median > b.Median:
			return 1
		}
		return strings.Compare(a.Config.String(), b.Config.String())
	})
	out := slices.Clone(all[:fastestOfProblem])
	rest, others := all[fastestOfProblem:], perProblem-fastestOfProblem
	for i := range others {
		out = append(out, rest[i*len(rest)/others])
	}
	return out
}

// adopt fits, with progress on a terminal.
func (o *FitOptions) adopt(
	ctx context.Context, s *fit.Sample, m fit.Tunable, current arch.Architecture,
) (*fit.Adoption, error) {
	p := show.NewBar(o.Factory.Streams, "fitting")
	defer p.Stop()
	return fit.Adopt(ctx, s, m, current, func(at fit.Stage) {
		p.Set(int64(at.Done), int64(at.Total))
		p.SetMessage(fmt.Sprintf("%d/%d fits, %s", at.Done, at.Total, at.Name))
	})
}

// fitted is the answer of `fit`.
type fitted struct {
	Device     string          `json:"device"` // as `arch@device`, and the model as in `select`
	Model      string          `json:"model"`
	Class      arch.ModelClass `json:"model_class,omitempty"`
	Kernel     string          `json:"kernel"`
	Records    []string        `json:"records"`  // the data sets
	Problems   int             `json:"problems"` // how many problems and times they have
	Times      int             `json:"times"`
	Adopted    bool            `json:"adopted"`           // whether constants are adopted
	Refused    string          `json:"refused,omitempty"` // why not
	Before     fit.Outcome     `json:"before"`            // the model on problems left out of the fit, as it was
	After      fit.Outcome     `json:"after"`             // and with the fitted constants
	Quantities []quantity      `json:"quantities"`        // the constants
	File       string          `json:"file,omitempty"`    // the device file, if one was written
}

// quantity is a constant of the model.
type quantity struct {
	Name   string  `json:"name"` // its name, its unit, and what it means
	Unit   string  `json:"unit"`
	Doc    string  `json:"doc"`
	Before float64 `json:"before"` // the value before and after
	After  float64 `json:"after"`
	// the range over the folds
	Low  ask.Number `json:"fold_low"`
	High ask.Number `json:"fold_high"`
	// the standard error ÷ the value
	Error   ask.Number `json:"relative_standard_error" unit:"fraction"`
	Adopted bool       `json:"adopted"`                // whether it is adopted
	Kept    string     `json:"kept_because,omitempty"` // why not
}

func newFitted(d *arch.Description, sets []*dataset.Dataset, of *fit.Adoption) *fitted {
	a := &fitted{Device: d.ID(), Model: d.Model, Class: d.ModelClass, Kernel: sets[0].Kernel,
		Records: make([]string, len(sets)), Problems: of.Problems, Times: of.Times, Adopted: of.Refused == "",
		Refused: of.Refused, Before: of.Before, After: of.After, Quantities: make([]quantity, len(of.Quantities))}
	for i, s := range sets {
		a.Records[i] = s.Name
	}
	for i, q := range of.Quantities {
		low, high := q.FoldLow, q.FoldHigh
		if high == 0 {
			low, high = math.NaN(), math.NaN()
		}
		a.Quantities[i] = quantity{q.Name, q.Unit, q.Doc, q.Value, q.New, ask.Number(low), ask.Number(high),
			ask.Number(math.Expm1(q.Error)), q.Kept == "", q.Kept}
	}
	return a
}

// write writes the answer. asked says that a device file was to be written.
func (a *fitted) write(s *iostreams.Streams, format show.Format, asked bool) error {
	key := show.Key[quantity]
	if err := show.Answer(s, format, a, func() {}, a.Quantities, key("name", "constant"), key("unit"), key("before"),
		key("after"), show.Text("over_folds", func(q *quantity) string {
			if math.IsNaN(float64(q.Low)) {
				return "–"
			}
			return digits.SixDigits(float64(q.Low)) + " to " + digits.SixDigits(float64(q.High))
		}), key("relative_standard_error", "standard_error").Or("–"), key("kept_because")); err != nil {
		return err
	}
	s.Note(fmt.Sprintf("fitted to %d times of %s, in %s", a.Times, digits.Plural(a.Problems, "problem", "problems"),
		strings.Join(a.Records, ", ")))
	if b, f := a.Before, a.After; b != f {
		s.Note(fmt.Sprintf("on problems left out of the fit: times are off by %s at the median, were %s; "+
			"picks reach %s of the fastest measured kernel, worst %s, were %s, worst %s",
			digits.Percent(f.Error), digits.Percent(b.Error), digits.Percent(f.Efficiency), digits.Percent(f.Worst),
			digits.Percent(b.Efficiency), digits.Percent(b.Worst)))
	}
	switch {
	case !a.Adopted && asked:
		s.Note("no constant is adopted, and no file is written: " + a.Refused)
	case !a.Adopted:
		s.Note("no constant is adopted: " + a.Refused)
	case a.File != "":
		s.Note(fmt.Sprintf("the device file is %s; --device-file %s uses it", a.File, a.File))
	}
	return nil
}

// section is the section of the device file: the adopted constants, and those that were in the file before.
func (a *fitted) section(before *hw.Fitted, of *fit.Adoption, problems []gemm.Problem) *hw.Fitted {
	day, names := time.Now().UTC().Format(time.DateOnly), strings.Join(a.Records, ", ")
	source := fmt.Sprintf("fitted to %s (%d times of %d problems) by %s, %s", names, a.Times, a.Problems,
		session.Software(), day)
	f := &hw.Fitted{Model: a.Model, Kernel: a.Kernel, DataSet: names, Source: source, Date: day,
		Values: map[string]hw.FittedValue{}}
	if before != nil {
		maps.Copy(f.Values, before.Values)
		problems = append(slices.Clone(before.Problems), problems...)
		if before.Kernel != f.Kernel {
			f.Kernel = ""
		}
		if before.DataSet != f.DataSet {
			f.DataSet = before.DataSet + ", " + f.DataSet
		}
	}
	for _, p := range problems {
		if !slices.Contains(f.Problems, p) {
			f.Problems = append(f.Problems, p)
		}
	}
	for _, q := range of.Quantities {
		if q.Kept == "" {
			f.Values[q.Name] = hw.FittedValue{Value: q.New, Unit: q.Unit, Low: q.FoldLow, High: q.FoldHigh}
		}
	}
	return f
}

// write replaces a device file as a whole.
func write(file string, sheet *hw.Sheet) error {
	text, err := hw.EncodeSheet(sheet)
	if err != nil {
		return err
	}
	return session.Replace(file, append(fmt.Appendf(nil, "# %s, fitted by %s. The section fitted has constants of the "+
		"model;\n# the other numbers are those that it was fitted with.\n", sheet.Name, session.Software()), text...))
}
