package calibratecmd

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/hw"
)

// outcomeColumns are the keys of what a fit comes to in JSON.
var outcomeColumns = table.Columns[fit.Outcome]{
	table.Col("loss", func(o *fit.Outcome) float64 { return o.Loss }),
	table.Col("median_error", func(o *fit.Outcome) float64 { return o.Error }),
	table.Col("efficiency", func(o *fit.Outcome) float64 { return o.Efficiency }),
	table.Col("worst_efficiency", func(o *fit.Outcome) float64 { return o.Worst }),
}

// object are the keys of the answer in JSON.
var object = table.Columns[answer]{
	table.Col("device", func(a *answer) string { return a.arch.ID() }),
	table.Col("model", func(a *answer) string { return a.arch.Model }),
	table.Col("model_class", func(a *answer) arch.ModelClass { return a.arch.ModelClass }).Omit(),
	table.Col("kernel", func(a *answer) string { return a.sets[0].Kernel }),
	table.Col("records", (*answer).names),
	table.Col("problems", func(a *answer) int { return a.adoption.Problems }),
	table.Col("times", func(a *answer) int { return a.adoption.Times }),
	table.Col("adopted", func(a *answer) bool { return a.adoption.Refused == "" }),
	table.Col("refused", func(a *answer) string { return a.adoption.Refused }).Omit(),
	table.Col("before", func(a *answer) ask.Object { return outcomeColumns.Object(&a.adoption.Before) }),
	table.Col("after", func(a *answer) ask.Object { return outcomeColumns.Object(&a.adoption.After) }),
	table.Col("quantities", func(a *answer) []ask.Object { return columns.Objects(a.adoption.Quantities) }),
	table.Col("file", func(a *answer) string { return a.file }).Omit(),
}

// columns are the columns of the constants.
var columns = table.Columns[fit.Adopted]{
	table.Col("name|constant", func(q *fit.Adopted) string { return q.Name }),
	table.Col("unit", func(q *fit.Adopted) string { return q.Unit }),
	table.Col("doc|-", func(q *fit.Adopted) string { return q.Doc }),
	table.Col("before", func(q *fit.Adopted) float64 { return q.Value }, digits.SixDigits).Same(),
	table.Col("after", func(q *fit.Adopted) float64 { return q.New }, digits.SixDigits).Same(),
	table.Opt("fold_low|-", func(q *fit.Adopted) float64 { low, _ := folds(q); return low }),
	table.Opt("fold_high|-", func(q *fit.Adopted) float64 { _, high := folds(q); return high }),
	table.Col("-|over_folds", func(q *fit.Adopted) string {
		if low, high := folds(q); digits.Finite(low) {
			return digits.SixDigits(low) + " to " + digits.SixDigits(high)
		}
		return "–"
	}),
	table.Opt("relative_standard_error|standard_error", func(q *fit.Adopted) float64 { return math.Expm1(q.Error) },
		digits.Percent).Or("–").Same(),
	table.Col("adopted|-", func(q *fit.Adopted) bool { return q.Kept == "" }),
	table.Col("kept_because", func(q *fit.Adopted) string { return q.Kept }).Omit(),
}

// folds is the range over the folds, NaN of a quantity that was fitted in none.
func folds(q *fit.Adopted) (low, high float64) {
	if q.FoldHigh == 0 {
		return math.NaN(), math.NaN()
	}
	return q.FoldLow, q.FoldHigh
}

// write writes the answer. asked says that a device file was to be written.
func (a *answer) write(s *iostreams.Streams, format table.Format, asked bool) error {
	var err error
	if format == table.JSON {
		err = table.JSONLine(s, object.Object(a))
	} else {
		err = columns.Write(s, format, a.adoption.Quantities)
	}
	if err != nil {
		return err
	}
	a.notes(s, asked)
	return nil
}

// notes says what the constants do to the model.
func (a *answer) notes(s *iostreams.Streams, asked bool) {
	b, f := a.adoption.Before, a.adoption.After
	s.Note(fmt.Sprintf("fitted to %d times of %s, in %s", a.adoption.Times,
		digits.Plural(a.adoption.Problems, "problem", "problems"), strings.Join(a.names(), ", ")))
	if b != f {
		s.Note(fmt.Sprintf("on problems left out of the fit: times are off by %s at the median, were %s; "+
			"picks reach %s of the fastest measured kernel, worst %s, were %s, worst %s",
			digits.Percent(f.Error), digits.Percent(b.Error), digits.Percent(f.Efficiency), digits.Percent(f.Worst),
			digits.Percent(b.Efficiency), digits.Percent(b.Worst)))
	}
	switch {
	case a.adoption.Refused != "" && asked:
		s.Note("no constant is adopted, and no file is written: " + a.adoption.Refused)
	case a.adoption.Refused != "":
		s.Note("no constant is adopted: " + a.adoption.Refused)
	case a.file != "":
		s.Note(fmt.Sprintf("the device file is %s; --device-file %s uses it", a.file, a.file))
	}
}

// write replaces a device file as a whole.
func write(file string, sheet *hw.Sheet) error {
	text, err := hw.EncodeSheet(sheet)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s, fitted by %s. The section fitted has constants of the model;\n"+
		"# the other numbers are those that it was fitted with.\n", sheet.Name, session.Software())
	out.Write(text)
	return session.Replace(file, out.Bytes())
}
