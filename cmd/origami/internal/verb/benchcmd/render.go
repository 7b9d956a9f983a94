package benchcmd

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// writer writes a row per problem and, where the format has room for it, the summary.
type writer struct {
	s         *iostreams.Streams
	format    render.Format
	arch      *arch.Description
	data      *dataset.Dataset
	delimited *render.Delimited
	rows      []score.Comparison
}

// columns are those of CSV and TSV. Those of the first library are there whether it was measured or not; others have
// columns under their own names.
func columns(data *dataset.Dataset) []string {
	names := []string{
		"m", "n", "k", "batch", "trans_a", "trans_b", "dtype", "block_m", "block_n", "block_k", "group_m", "num_warps", "num_stages", "split_k",
		"predicted_ms", "pick_ms", "best_ms", "library_ms", "efficiency", "versus_library", "tau", "pick_rank", "passed_over", "measured", "candidates",
		"registers", "spill_bytes", "best",
		"pick_tflops", "best_tflops", "library_tflops", "phase", "noise_floor", "best_rank", "wrong", "not_built", "failed", "missing", "clock_moved",
	}
	for i, name := range data.Libraries() {
		if i > 0 {
			name = strings.ReplaceAll(name, "-", "_")
			names = append(names, name+"_ms", name+"_tflops", "versus_"+name)
		}
	}
	return names
}

func newWriter(s *iostreams.Streams, f render.Format, d *arch.Description, data *dataset.Dataset) *writer {
	w := &writer{s: s, format: f, arch: d, data: data}
	if f == render.CSV || f == render.TSV {
		w.delimited = render.NewDelimited(s, f, columns(data))
	}
	return w
}

func (w *writer) write(r *score.Comparison) error {
	w.rows = append(w.rows, *r)
	switch {
	case w.format == render.JSON:
		return render.JSONLine(w.s, w.object(r))
	case w.delimited != nil:
		return w.delimited.Write(cells(r))
	default:
		return nil // the table needs all rows for its widths
	}
}

func (w *writer) close() error {
	switch {
	case w.format == render.JSON:
		return render.JSONLine(w.s, map[string]any{"summary": w.summary()})
	case w.delimited != nil:
		return w.delimited.Close()
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

func cells(r *score.Comparison) []string {
	out := append(render.KeyCells(r.Problem, r.Pick.Config), render.LaunchCells(r.Pick.Config)...)
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
	rate := func(t unit.Seconds) string { return number(float64(r.Rate(t))/1e12, t > 0) }
	first, versus := unit.Seconds(0), 0.0
	if len(r.Libraries) > 0 {
		first, versus = r.Libraries[0], r.VersusLibrary(0)
	}
	out = append(out, milliseconds(r.Predicted), milliseconds(r.Pick.Time), milliseconds(r.Best.Time), milliseconds(first),
		render.Exact(r.Efficiency()), number(versus, first > 0), number(r.Tau, !math.IsNaN(r.Tau)),
		strconv.Itoa(r.PickRank), strconv.Itoa(r.PassedOver), strconv.Itoa(r.Measured), strconv.Itoa(r.Candidates),
		strconv.Itoa(r.Pick.Resources.Registers), render.Exact(float64(r.Pick.Resources.SpillBytes)), r.Best.Config.String(),
		rate(r.Pick.Time), rate(r.Best.Time), rate(first), string(r.Phase), number(r.Noise, !math.IsNaN(r.Noise)), strconv.Itoa(r.BestRank),
		strconv.Itoa(r.Wrong), strconv.Itoa(r.NotBuilt), strconv.Itoa(r.Failed), strconv.Itoa(r.Missing), strconv.Itoa(r.ClockMoved))
	for i, t := range r.Libraries {
		if i > 0 {
			out = append(out, milliseconds(t), rate(t), number(r.VersusLibrary(i), t > 0))
		}
	}
	return out
}

// object is a line of `bench --json`.
type object struct {
	Arch     string         `json:"arch"`
	Device   string         `json:"device"`
	Model    string         `json:"model"`
	Kernel   string         `json:"kernel"`
	Problem  render.Problem `json:"problem"`
	Pick     render.Config  `json:"pick"`
	Best     render.Config  `json:"best"`
	Library  string         `json:"library,omitempty"`
	Times    times          `json:"milliseconds"`
	TFLOPS   times          `json:"tflops"`
	Eff      float64        `json:"efficiency"`
	Versus   *float64       `json:"versus_library,omitempty"`
	Tau      render.Number  `json:"tau"`
	PickRank int            `json:"pick_rank"`
	Passed   int            `json:"passed_over"`
	Measured int            `json:"measured"`
	Total    int            `json:"candidates"`
	Regs     int            `json:"registers"`
	Spill    float64        `json:"spill_bytes"`

	Phase      dataset.Phase `json:"phase"`
	Noise      render.Number `json:"noise_floor"`
	BestRank   int           `json:"best_rank"`
	Wrong      int           `json:"wrong"`
	NotBuilt   int           `json:"not_built"`
	Failed     int           `json:"failed"`
	Missing    int           `json:"missing"`
	ClockMoved int           `json:"clock_moved"`
	Libraries  []library     `json:"libraries,omitempty"`
	Excluded   []excluded    `json:"excluded,omitempty"`
}

// library is a vendor's library on one problem; its numbers are missing where it was not measured.
type library struct {
	Name         string  `json:"name"`
	Milliseconds float64 `json:"milliseconds,omitempty"`
	TFLOPS       float64 `json:"tflops,omitempty"`
	Versus       float64 `json:"versus,omitempty"`
}

// excluded is a configuration, or a library, that has no time that counts.
type excluded struct {
	Config  *render.Config `json:"config,omitempty"`
	Library string         `json:"library,omitempty"`
	Status  dataset.Status `json:"status"`
	Detail  string         `json:"detail,omitempty"`
}

type times struct {
	Predicted float64 `json:"predicted"`
	Pick      float64 `json:"pick"`
	Best      float64 `json:"best"`
	Library   float64 `json:"library,omitempty"`
}

func (w *writer) object(r *score.Comparison) object {
	o := object{
		Arch: w.arch.Arch, Device: w.arch.Device, Model: w.arch.Model, Kernel: w.data.Kernel,
		Problem: render.ProblemJSON(r.Problem), Pick: render.ConfigJSON(r.Pick.Config), Best: render.ConfigJSON(r.Best.Config),
		Eff: r.Efficiency(), Tau: render.Number(r.Tau), PickRank: r.PickRank, Passed: r.PassedOver, Measured: r.Measured, Total: r.Candidates,
		Regs: r.Pick.Resources.Registers, Spill: float64(r.Pick.Resources.SpillBytes),
		Phase: r.Phase, Noise: render.Number(r.Noise), BestRank: r.BestRank, Wrong: r.Wrong, NotBuilt: r.NotBuilt, Failed: r.Failed,
		Missing: r.Missing, ClockMoved: r.ClockMoved,
	}
	for i, name := range w.data.Libraries() {
		t := r.Libraries[i]
		o.Libraries = append(o.Libraries, library{name, float64(t) * 1e3, float64(r.Rate(t)) / 1e12, r.VersusLibrary(i)})
	}
	first := unit.Seconds(0)
	if len(o.Libraries) > 0 {
		o.Library, first = o.Libraries[0].Name, r.Libraries[0]
		if v := o.Libraries[0].Versus; first > 0 {
			o.Versus = &v
		}
	}
	for _, e := range r.Excluded {
		own := excluded{Status: e.Status, Detail: e.Detail}
		if own.Library = e.Library; own.Library == "" {
			c := render.ConfigJSON(e.Config)
			own.Config = &c
		}
		o.Excluded = append(o.Excluded, own)
	}
	for _, t := range []struct {
		time         unit.Seconds
		milliseconds *float64
		tflops       *float64
	}{
		{r.Predicted, &o.Times.Predicted, &o.TFLOPS.Predicted}, {r.Pick.Time, &o.Times.Pick, &o.TFLOPS.Pick},
		{r.Best.Time, &o.Times.Best, &o.TFLOPS.Best}, {first, &o.Times.Library, &o.TFLOPS.Library},
	} {
		*t.milliseconds, *t.tflops = float64(t.time)*1e3, float64(r.Rate(t.time))/1e12
	}
	return o
}

func (w *writer) summary() any {
	s := score.SummariseComparisons(w.rows)
	spread := func(s stats.Quantiles) map[string]any {
		return map[string]any{"count": s.Count, "median": s.Median, "geomean": s.Geomean, "p10": s.P10, "worst": s.Worst}
	}
	first, libraries := stats.Quantiles{}, map[string]any{}
	for i, l := range s.Libraries {
		if i == 0 {
			first = l
		}
		libraries[w.data.Libraries()[i]] = spread(l)
	}
	return map[string]any{
		"problems": s.Problems, "passed_over": s.PassedOver, "efficiency": spread(s.Efficiency), "versus_library": spread(first),
		"tau_mean": render.Number(s.TauMean), "tau_worst": render.Number(s.TauWorst),
		"libraries": libraries, "noise_floor": render.Number(s.Noise), "measured": s.Measured, "wrong": s.Wrong, "not_built": s.NotBuilt,
		"failed": s.Failed, "missing": s.Missing, "unfinished": s.Unfinished, "clock_moved": s.ClockMoved, "finals": s.Finals,
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
	s := score.SummariseComparisons(w.rows)
	l2, group := "cold", "each at its own group"
	if w.data.WarmL2 {
		l2 = "warm"
	}
	if w.data.GroupM > 0 {
		group = fmt.Sprintf("group %d", w.data.GroupM)
	}
	// Columns that would be empty throughout are left out.
	finals, excluded := s.Finals > 0, s.Wrong+s.Failed > 0
	out := text{above: []string{
		render.Device(w.arch),
		render.Model(w.arch, w.data.Kernel),
		fmt.Sprintf("%-11s %s: %s, %s L2, %s inputs, %s", "measured", w.data.Name, w.data.Software, l2, w.data.Input, group),
	}}
	libraries := w.data.Libraries()
	out.header = []string{"problem", "pick TF/s", "best TF/s"}
	for _, name := range libraries {
		out.header = append(out.header, name+" TF/s")
	}
	out.header = append(out.header, "of best")
	for _, name := range libraries {
		out.header = append(out.header, "of "+name)
	}
	if finals {
		out.header = append(out.header, "noise")
	}
	out.header = append(out.header, "tau", "pick's place", "best's place", "pick", "registers")
	if excluded {
		out.header = append(out.header, "left out")
	}
	uniform := w.uniform()
	for i := range w.rows {
		out.rows = append(out.rows, tableCells(&w.rows[i], uniform, finals, excluded))
	}

	width := 11
	for _, name := range libraries {
		width = max(width, len("of "+name))
	}
	line := func(label, format string, args ...any) {
		out.below = append(out.below, fmt.Sprintf("%-*s %s", width, label, fmt.Sprintf(format, args...)))
	}
	spread := func(label string, v stats.Quantiles) {
		if v.Count > 0 {
			line(label, "median %s, geomean %s, p10 %s, worst %s over %s",
				render.Percent(v.Median), render.Percent(v.Geomean), render.Percent(v.P10), render.Percent(v.Worst), render.Count(v.Count, "problem", "problems"))
		}
	}
	spread("of best", s.Efficiency)
	for i, v := range s.Libraries {
		spread("of "+libraries[i], v)
	}
	if s.PassedOver > 0 {
		line("passed over", "in %s the model's first choices have no time (they do not compile, or are not recorded); \"after N\" counts them",
			render.Count(s.PassedOver, "problem", "problems"))
	}
	if !math.IsNaN(s.TauMean) {
		line("tau", "mean %.3f, worst %.3f", s.TauMean, s.TauWorst)
	}
	if finals {
		line("finals", "the times of %s are from runs in turns; the sweep's rank and correlate", render.Count(s.Finals, "problem", "problems"))
	}
	if !math.IsNaN(s.Noise) {
		line("noise floor", "median %s between two measurements of the same pick", render.Percent(s.Noise))
	}
	if excluded {
		line("left out", "%s", leftOut(s.Wrong, s.Failed))
	}
	if s.NotBuilt > 0 {
		line("not built", "%s", render.Count(s.NotBuilt, "candidate", "candidates"))
	}
	if holes := w.unfinished(&s); holes != "" {
		line("unfinished", "%s", holes)
	}
	if s.ClockMoved > 0 {
		line("clock", "it moved by more than 2 %% during %s", render.Count(s.ClockMoved, "measurement", "measurements"))
	}
	return out
}

// unfinished says how much of a sweep is not there. A dataset of times alone cannot tell what does not compile from what
// was never tried.
func (w *writer) unfinished(s *score.ComparisonSummary) string {
	if s.Unfinished == 0 || w.data.Executor == "" {
		return ""
	}
	return fmt.Sprintf("in %s %s not recorded", render.Count(s.Unfinished, "problem", "problems"), render.Count(s.Missing, "candidate is", "candidates are"))
}

// leftOut counts what was measured and does not count.
func leftOut(wrong, failed int) string {
	var parts []string
	if wrong > 0 {
		parts = append(parts, render.Count(wrong, "wrong result", "wrong results"))
	}
	if failed > 0 {
		parts = append(parts, render.Count(failed, "failure", "failures"))
	}
	return strings.Join(parts, ", ")
}

// uniform reports whether the problems differ in nothing but m, n and k.
func (w *writer) uniform() bool {
	for i := range w.rows {
		p := w.rows[i].Problem
		p.M, p.N, p.K = w.rows[0].Problem.M, w.rows[0].Problem.N, w.rows[0].Problem.K
		if p != w.rows[0].Problem {
			return false
		}
	}
	return true
}

func tableCells(r *score.Comparison, uniform, finals, excluded bool) []string {
	const none = "–"
	tflops := func(t unit.Seconds) string {
		if t <= 0 {
			return none
		}
		return strconv.FormatFloat(float64(r.Rate(t))/1e12, 'f', 1, 64)
	}
	problem := r.Problem.String()
	if uniform {
		problem = fmt.Sprintf("%dx%dx%d", r.Problem.M, r.Problem.N, r.Problem.K)
	}
	registers := none
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
	cells := []string{problem, tflops(r.Pick.Time), tflops(r.Best.Time)}
	for _, t := range r.Libraries {
		cells = append(cells, tflops(t))
	}
	cells = append(cells, render.Percent(r.Efficiency()))
	for i, t := range r.Libraries {
		if t > 0 {
			cells = append(cells, render.Percent(r.VersusLibrary(i)))
		} else {
			cells = append(cells, none)
		}
	}
	if finals {
		if math.IsNaN(r.Noise) {
			cells = append(cells, none)
		} else {
			cells = append(cells, render.Percent(r.Noise))
		}
	}
	cells = append(cells, fmt.Sprintf("%.3f", r.Tau), fmt.Sprintf("%d of %d", r.PickRank, r.Measured), fmt.Sprintf("%d of %d", r.BestRank, r.Measured), pick, registers)
	if excluded {
		left := leftOut(r.Wrong, r.Failed)
		if left == "" {
			left = none
		}
		cells = append(cells, left)
	}
	return cells
}
