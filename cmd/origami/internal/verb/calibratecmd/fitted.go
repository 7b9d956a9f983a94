package calibratecmd

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
)

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
func (a *fitted) write(s *iostreams.Streams, format table.Format, asked bool) error {
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
