package benchverb

import (
	"fmt"
	"math"
	"strconv"

	"github.com/origami-gemm/origami/cmd/origami/internal/answer"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/bench"
	"github.com/origami-gemm/origami/core/record"
	"github.com/origami-gemm/origami/core/unit"
)

// writer writes a row per problem and, where the format has room for it, the summary.
type writer struct {
	s       *iostreams.Streams
	format  render.Format
	arch    *arch.Description
	data    *record.Dataset
	records *render.Records
	rows    []bench.Row
}

// columns are those of CSV and TSV.
var columns = []string{
	"m", "n", "k", "batch", "trans_a", "trans_b", "dtype", "block_m", "block_n", "block_k", "group_m", "num_warps", "num_stages", "split_k",
	"predicted_ms", "pick_ms", "best_ms", "library_ms", "efficiency", "versus_library", "tau", "pick_rank", "passed_over", "measured", "candidates",
	"registers", "spill_bytes", "best",
}

func newWriter(s *iostreams.Streams, f render.Format, d *arch.Description, data *record.Dataset) *writer {
	w := &writer{s: s, format: f, arch: d, data: data}
	if f == render.CSV || f == render.TSV {
		w.records = render.NewRecords(s, f, columns)
	}
	return w
}

func (w *writer) write(r *bench.Row) error {
	w.rows = append(w.rows, *r)
	switch {
	case w.format == render.JSON:
		return render.JSONLine(w.s, w.object(r))
	case w.records != nil:
		return w.records.Write(cells(r))
	default:
		return nil // the table needs all rows for its widths
	}
}

func (w *writer) close() error {
	switch {
	case w.format == render.JSON:
		return render.JSONLine(w.s, map[string]any{"summary": summaryJSON(bench.Summarise(w.rows))})
	case w.records != nil:
		return w.records.Close()
	default:
		t := w.text()
		for _, line := range t.above {
			fmt.Fprintln(w.s.Out, line)
		}
		render.Grid(w.s, t.header, t.rows)
		for _, line := range t.below {
			fmt.Fprintln(w.s.Out, line)
		}
		return nil
	}
}

func cells(r *bench.Row) []string {
	out := append(answer.KeyCells(r.Problem, r.Pick.Config), answer.LaunchCells(r.Pick.Config)...)
	milliseconds := func(t unit.Seconds) string {
		if t <= 0 {
			return ""
		}
		return render.Exact(float64(t) * 1e3)
	}
	number := func(v float64, ok bool) string {
		if !ok {
			return ""
		}
		return render.Exact(v)
	}
	return append(out, milliseconds(r.Predicted), milliseconds(r.Pick.Time), milliseconds(r.Best.Time), milliseconds(r.Library),
		render.Exact(r.Efficiency()), number(r.VersusLibrary(), r.Library > 0), number(r.Tau, !math.IsNaN(r.Tau)),
		strconv.Itoa(r.PickRank), strconv.Itoa(r.PassedOver), strconv.Itoa(r.Measured), strconv.Itoa(r.Candidates),
		strconv.Itoa(r.Pick.Resources.Registers), render.Exact(float64(r.Pick.Resources.SpillBytes)), r.Best.Config.String())
}

// object is a line of `bench --json`.
type object struct {
	Arch     string         `json:"arch"`
	Device   string         `json:"device"`
	Model    string         `json:"model"`
	Kernel   string         `json:"kernel"`
	Problem  answer.Problem `json:"problem"`
	Pick     answer.Config  `json:"pick"`
	Best     answer.Config  `json:"best"`
	Library  string         `json:"library,omitempty"`
	Times    times          `json:"milliseconds"`
	TFLOPS   times          `json:"tflops"`
	Eff      float64        `json:"efficiency"`
	Versus   *float64       `json:"versus_library,omitempty"`
	Tau      answer.Number  `json:"tau"`
	PickRank int            `json:"pick_rank"`
	Passed   int            `json:"passed_over"`
	Measured int            `json:"measured"`
	Total    int            `json:"candidates"`
	Regs     int            `json:"registers"`
	Spill    float64        `json:"spill_bytes"`
}

type times struct {
	Predicted float64 `json:"predicted"`
	Pick      float64 `json:"pick"`
	Best      float64 `json:"best"`
	Library   float64 `json:"library,omitempty"`
}

func (w *writer) object(r *bench.Row) object {
	o := object{
		Arch: w.arch.Arch, Device: w.arch.Device, Model: w.arch.Model, Kernel: w.data.Kernel, Library: w.data.Library,
		Problem: answer.ProblemJSON(r.Problem), Pick: answer.ConfigJSON(r.Pick.Config), Best: answer.ConfigJSON(r.Best.Config),
		Eff: r.Efficiency(), Tau: answer.Number(r.Tau), PickRank: r.PickRank, Passed: r.PassedOver, Measured: r.Measured, Total: r.Candidates,
		Regs: r.Pick.Resources.Registers, Spill: float64(r.Pick.Resources.SpillBytes),
	}
	for _, t := range []struct {
		time         unit.Seconds
		milliseconds *float64
		tflops       *float64
	}{
		{r.Predicted, &o.Times.Predicted, &o.TFLOPS.Predicted}, {r.Pick.Time, &o.Times.Pick, &o.TFLOPS.Pick},
		{r.Best.Time, &o.Times.Best, &o.TFLOPS.Best}, {r.Library, &o.Times.Library, &o.TFLOPS.Library},
	} {
		*t.milliseconds, *t.tflops = float64(t.time)*1e3, float64(r.Rate(t.time))/1e12
	}
	if v := r.VersusLibrary(); r.Library > 0 {
		o.Versus = &v
	}
	return o
}

func summaryJSON(s bench.Summary) any {
	spread := func(s bench.Spread) map[string]any {
		return map[string]any{"count": s.Count, "median": s.Median, "geomean": s.Geomean, "p10": s.P10, "worst": s.Worst}
	}
	return map[string]any{
		"problems": s.Problems, "passed_over": s.PassedOver, "efficiency": spread(s.Efficiency), "versus_library": spread(s.Library),
		"tau_mean": answer.Number(s.TauMean), "tau_worst": answer.Number(s.TauWorst),
	}
}

// text is the table of the outcome with what stands above and below it, for a terminal and for a report.
type text struct {
	above  []string
	header []string
	rows   [][]string
	below  []string
}

func (w *writer) text() text {
	s := bench.Summarise(w.rows)
	l2 := "cold"
	if w.data.WarmL2 {
		l2 = "warm"
	}
	library := w.libraryName()
	out := text{
		above: []string{
			render.Device(w.arch),
			render.Model(w.arch, w.data.Kernel),
			fmt.Sprintf("%-11s %s: %s, %s L2, %s inputs, group %d", "measured", w.data.Name, w.data.Software, l2, w.data.Input, w.data.GroupM),
		},
		header: []string{"problem", "pick TF/s", "best TF/s", library + " TF/s", "of best", "of " + library, "tau", "pick's place", "pick", "registers"},
	}
	for i := range w.rows {
		out.rows = append(out.rows, tableCells(&w.rows[i]))
	}
	line := func(label string, v bench.Spread) {
		if v.Count > 0 {
			out.below = append(out.below, fmt.Sprintf("%-11s median %s, geomean %s, p10 %s, worst %s over %s", label,
				render.Percent(v.Median), render.Percent(v.Geomean), render.Percent(v.P10), render.Percent(v.Worst), render.Count(v.Count, "problem", "problems")))
		}
	}
	line("of best", s.Efficiency)
	line("of "+library, s.Library)
	if s.PassedOver > 0 {
		out.below = append(out.below, fmt.Sprintf("%-11s in %s the model's first choices have no time (they do not compile, or are not recorded); \"after N\" counts them",
			"passed over", render.Count(s.PassedOver, "problem", "problems")))
	}
	if !math.IsNaN(s.TauMean) {
		out.below = append(out.below, fmt.Sprintf("%-11s mean %.3f, worst %.3f", "tau", s.TauMean, s.TauWorst))
	}
	return out
}

func (w *writer) libraryName() string {
	if w.data.Library == "" {
		return "library"
	}
	return w.data.Library
}

func tableCells(r *bench.Row) []string {
	tflops := func(t unit.Seconds) string {
		if t <= 0 {
			return "–"
		}
		return strconv.FormatFloat(float64(r.Rate(t))/1e12, 'f', 1, 64)
	}
	versus := "–"
	if r.Library > 0 {
		versus = render.Percent(r.VersusLibrary())
	}
	registers := "–"
	if n := r.Pick.Resources.Registers; n > 0 {
		registers = strconv.Itoa(n)
		if spill := float64(r.Pick.Resources.SpillBytes); spill > 0 {
			registers += fmt.Sprintf(" + %s B spilled", render.Short(spill))
		}
	}
	c := r.Pick.Config
	pick := fmt.Sprintf("%dx%dx%d", c.BlockM, c.BlockN, c.BlockK)
	if r.PassedOver > 0 {
		pick += fmt.Sprintf(" after %d", r.PassedOver)
	}
	return []string{
		fmt.Sprintf("%dx%dx%d", r.Problem.M, r.Problem.N, r.Problem.K), tflops(r.Pick.Time), tflops(r.Best.Time), tflops(r.Library),
		render.Percent(r.Efficiency()), versus, fmt.Sprintf("%.3f", r.Tau), fmt.Sprintf("%d of %d", r.PickRank, r.Measured), pick, registers,
	}
}
