package selectcmd

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
)

// writer writes one answer after the other in the chosen format.
type writer struct {
	s         *iostreams.Streams
	format    render.Format
	many      bool
	delimited *render.Delimited
	rows      [][]string // of the table of many problems
}

func newWriter(s *iostreams.Streams, f render.Format, many bool) *writer {
	w := &writer{s: s, format: f, many: many}
	if f == render.CSV || f == render.TSV {
		header := slices.Concat(render.KeyColumns, render.LaunchColumns,
			[]string{"arch", "device", "model", "kernel", "rung", "cycles", "seconds", "tflops", "bound", "candidates", "rejected",
				"interval_low_seconds", "interval_high_seconds", "expected_loss", "worth_measuring", "measured_seconds", "noise_floor", "measured"})
		w.delimited = render.NewDelimited(s, f, header)
	}
	return w
}

func (w *writer) write(a *session.Answer) error {
	best := &a.Entries[0]
	switch {
	case w.format == render.JSON:
		return render.JSONLine(w.s, render.ObjectOf(a, best))
	case w.delimited != nil:
		o := render.ObjectOf(a, best)
		return w.delimited.Write(slices.Concat(render.KeyCells(a.Problem, best.Config), render.LaunchCells(best.Config), []string{
			o.Arch, o.Device, o.Model, o.Kernel, string(o.Rung), render.Exact(o.Predicted.Cycles), render.Exact(o.Predicted.Seconds),
			render.Exact(o.Predicted.TFLOPS), o.Predicted.Bound, strconv.Itoa(o.Candidates), strconv.Itoa(o.Rejected),
		}, uncertaintyCells(&o)))
	case w.many:
		if w.rows == nil {
			fmt.Fprintln(w.s.Out, render.Heading(a))
		}
		w.rows = append(w.rows, []string{a.Problem.String(), best.Config.String(), a.Seconds(best).String(), a.Rate(best).String(), peakShare(a, best), best.Estimate.Bound.String()})
		return nil
	default:
		w.card(a)
		return nil
	}
}

// uncertaintyCells fills the columns from interval_low_seconds to measured. A column is empty if the model states no
// uncertainty, or if nothing was measured.
func uncertaintyCells(o *render.Object) []string {
	cells := make([]string, 7)
	if i := o.Predicted.Interval; i != nil {
		cells[0], cells[1] = render.Exact(i[0]), render.Exact(i[1])
	}
	if o.ExpectedRegret != nil {
		cells[2], cells[3] = render.Exact(*o.ExpectedRegret), strconv.Itoa(o.WorthMeasuring)
	}
	if m := o.Measured; m != nil {
		for _, c := range m.Candidates {
			if c.Chosen {
				cells[4] = render.Exact(*c.Median)
			}
		}
		if noise := float64(m.Noise); session.Finite(noise) {
			cells[5] = render.Exact(noise)
		}
		cells[6] = strconv.Itoa(len(m.Candidates))
	}
	return cells
}

func (w *writer) close() error {
	if w.rows != nil {
		render.Grid(w.s, []string{"problem", "pick", "time", "rate", "of peak", "bound"}, w.rows)
	}
	if w.delimited != nil {
		return w.delimited.Close()
	}
	return nil
}

// card is the answer for one problem as a reader wants it.
func (w *writer) card(a *session.Answer) {
	best := &a.Entries[0]
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w.s.Out, "%-11s %s\n", label, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(w.s.Out, render.Heading(a))
	line("problem", "%s", a.Problem)
	line("pick", "%s", w.s.Bold(best.Config.String()))
	if m := best.Mapping; m.XCDs > 0 {
		line("", "%s", render.MappingWords(m))
	}
	predicted := fmt.Sprintf("%s, %s cycles, %s", a.Seconds(best), render.Short(float64(best.Estimate.Cycles)), a.Rate(best))
	if share := peakShare(a, best); share != "" {
		whose := "the data sheet's"
		if a.Arch.Device == arch.LiveID {
			whose = "an estimated peak of"
		}
		predicted += fmt.Sprintf(", %s of %s %s", share, whose, a.Arch.PeakFor(a.Problem.DType))
	}
	line("predicted", "%s", predicted)
	if low, high, ok := a.Interval(best); ok {
		line("interval", "%s to %s hold the measured time with %s", low, high, render.Percent(a.Arch.UncertaintyOf(a.Kernel).Level))
	}
	line("bound", "%s", best.Estimate.Bound)
	for i, why := range reasons(a, best) {
		label := "why"
		if i > 0 {
			label = ""
		}
		line(label, "%s", why)
	}
	if len(a.Entries) > 1 && a.Measured == nil {
		second := &a.Entries[1]
		line("runner-up", "%s, %s", second.Config, behind(float64(second.Estimate.Cycles), float64(best.Estimate.Cycles)))
	}
	line("candidates", "%s", render.Counts(a.Feasible, a.Rejected))
	if r := a.Regret; r != nil {
		worth := "measuring others is not worth it"
		if r.WorthMeasuring > 1 {
			worth = fmt.Sprintf("the first %d are worth measuring", r.WorthMeasuring)
		}
		line("unmeasured", "expected to lose %s against the best of the others; %s", percent(r.Expected), worth)
	}
	if a.Measured != nil {
		header, rows, verdict := lines(a)
		line("measured", "%s", verdict)
		if len(rows) > 0 {
			fmt.Fprintln(w.s.Out)
			render.Grid(w.s, header, rows)
		}
	}
}

func percent(v float64) string {
	if !session.Finite(v) {
		return "–"
	}
	return render.Percent(v)
}

func peakShare(a *session.Answer, e *session.Entry) string {
	if share, ok := a.PeakShare(e); ok {
		return render.Percent(share)
	}
	return ""
}

// behind says how much slower the runner-up is.
func behind(second, best float64) string {
	if second == best {
		return "predicted to be equally fast"
	}
	if second < best {
		return render.Percent((best-second)/best) + " faster in the prediction, but within the model's tie window"
	}
	return render.Percent((second-best)/best) + " slower"
}

// reasonWidth keeps a line of reasons, behind its label, readable.
const reasonWidth = 108

// telling are the quantities, of those that models have in common, that say most about a pick.
var telling = []string{
	arch.CommonTilesM, arch.CommonTilesN, arch.CommonActiveUnits, arch.CommonWaves, arch.CommonL2Hit, arch.CommonMALLHit, arch.CommonUtilization,
}

// reasons says in words what the terms say: what one K step waits for, where the time goes, and the counts behind it.
func reasons(a *session.Answer, e *session.Entry) []string {
	type named struct {
		name  string
		value float64
		unit  string
	}
	var steps, shares, counts []named
	for i, t := range a.Arch.Terms {
		n := named{t.Name, e.Terms[i], t.Unit}
		switch {
		case t.Kind == arch.KindStep:
			steps = append(steps, n)
		case t.Kind == arch.KindShare:
			shares = append(shares, n)
		case slices.Contains(telling, t.CommonName()):
			counts = append(counts, named{t.CommonName(), n.value, n.unit})
		}
	}
	descending := func(a, b named) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		}
		return 0
	}
	var out []string
	if len(steps) > 0 {
		slices.SortStableFunc(steps, descending)
		parts := make([]string, len(steps))
		for i, step := range steps {
			parts[i] = fmt.Sprintf("%s %s", step.name, render.Quantity(step.value, step.unit))
		}
		out = append(out, render.Wrap("one K step waits for the largest of", parts, reasonWidth)...)
	}
	if total, ok := a.Total(e); ok && len(shares) > 0 {
		slices.SortStableFunc(shares, descending)
		var parts []string
		for _, s := range shares {
			if s.value/total >= 0.001 {
				parts = append(parts, fmt.Sprintf("%s %s", s.name, render.Percent(s.value/total)))
			}
		}
		out = append(out, render.Wrap("the time goes to", parts, reasonWidth)...)
	}
	if len(counts) > 0 {
		parts := make([]string, len(counts))
		for i, c := range counts {
			parts[i] = c.name + " " + render.Short(c.value)
		}
		out = append(out, render.Wrap("with", parts, reasonWidth)...)
	}
	return out
}
