package measurecmd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// writer has a row per problem and, where the format has room for it, writes the summary.
type writer struct {
	arch   *arch.Description
	data   *dataset.Dataset
	labels []string // of the problems file
	scores []score.Comparison
	rows   []compared
}

func (w *writer) add(r score.Comparison, labels []string) {
	w.scores, w.rows = append(w.scores, r), append(w.rows, w.compared(&r, labels))
}

// write writes the answer.
func (w *writer) write(s *iostreams.Streams, format show.Format) error {
	sum := score.SummariseComparisons(w.data, w.scores)
	var above, below []string
	rows := show.NewRows[compared](s, format)
	if format == show.Table {
		above, below = w.above(), w.below(&sum)
		rows = show.NewRows(s, format, w.columns(&sum)...).Least("registers", "noise", "best's place", "pick's place",
			"tau", "left out", "best TF/s")
	}
	show.Lines(s, above...)
	err := rows.All(w.rows)
	show.Lines(s, below...)
	if err == nil && format == show.JSON {
		err = show.JSONLine(s, map[string]*score.ComparisonSummary{"summary": &sum})
	}
	return err
}

const none = "–"

// columns are what people see. Columns that would be empty throughout are left out.
func (w *writer) columns(s *score.ComparisonSummary) []show.Column[compared] {
	key, text := show.Key[compared], show.Text[compared]
	uniform, rate := w.uniform(), " TF/s"
	if !slices.ContainsFunc(w.scores, func(r score.Comparison) bool { return !r.Problem.DType.Integer() }) {
		rate = " TOPS"
	}
	speed := func(name string, of func(*compared) float64) show.Column[compared] {
		return show.Number(name+rate, of, func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }).Or(none)
	}
	c := []show.Column[compared]{text("problem", func(r *compared) string {
		if uniform {
			return fmt.Sprintf("%dx%dx%d", r.Problem.M, r.Problem.N, r.Problem.K)
		}
		return r.Problem.String()
	})}
	for _, name := range w.labels {
		c = append(c, key("labels."+name, name))
	}
	c = append(c, speed("pick", func(r *compared) float64 { return r.TFLOPS.Pick }),
		speed("best", func(r *compared) float64 { return r.TFLOPS.Best }))
	for i, name := range w.data.Libraries() {
		c = append(c, speed(name, func(r *compared) float64 { return r.Libraries[i].TFLOPS }))
	}
	c = append(c, key("efficiency", "of best"))
	for i, name := range w.data.Libraries() {
		c = append(c, text("of "+name, func(r *compared) string {
			switch v := r.Libraries[i].Versus; {
			case v <= 0:
				return none
			case r.slow(i):
				return "* " + digits.Percent(v)
			default:
				return digits.Percent(v)
			}
		}))
	}
	place := func(rank, of int) string { return fmt.Sprintf("%d of %d", rank, of) }
	return append(c, key("noise_floor", "noise").Or(none).If(s.Finals > 0),
		text("tau", func(r *compared) string { return fmt.Sprintf("%.3f", r.Tau) }),
		text("pick's place", func(r *compared) string { return place(r.PickRank, r.Measured) }),
		text("best's place", func(r *compared) string { return place(r.BestRank, r.Measured) }),
		text("pick", tile), text("registers", registers).Or(none),
		text("left out", func(r *compared) string { return leftOut(r.Wrong, r.Failed) }).Or(none).If(s.Wrong+s.Failed > 0))
}

// slow reports whether the i-th library takes much longer than the fastest measured kernel. There it says less of the
// kernels than of its own choice, or of its launch.
func (r *compared) slow(i int) bool { return r.Libraries[i].Milliseconds > 1.1*r.Milliseconds.Best }

// tile is the pick's tile, and how many choices of the model have no time.
func tile(r *compared) string {
	text := fmt.Sprintf("%dx%dx%d", r.Pick.BlockM, r.Pick.BlockN, r.Pick.BlockK)
	if r.PassedOver > 0 {
		text += fmt.Sprintf(" after %d", r.PassedOver)
	}
	return text
}

func registers(r *compared) string {
	switch {
	case r.Registers == 0:
		return ""
	case r.Spills > 0:
		return fmt.Sprintf("%d + %d B spilled", r.Registers, r.Spills)
	}
	return strconv.Itoa(r.Registers)
}

// above are the lines above the table.
func (w *writer) above() []string {
	l2, group := "cold", "each at its own group"
	if w.data.WarmL2 {
		l2 = "warm"
	}
	if w.data.GroupM > 0 {
		group = fmt.Sprintf("group %d", w.data.GroupM)
	}
	return append(show.DeviceLines(w.arch), show.Model(w.arch, w.data.Kernel),
		fmt.Sprintf("%-11s %s: %s, %s L2, %s inputs, %s", "measured", w.data.Name, w.data.Software, l2, w.data.Input, group))
}

// below are the lines below the table.
func (w *writer) below(s *score.ComparisonSummary) []string {
	libraries := w.data.Libraries()
	width := 11
	for _, name := range libraries {
		width = max(width, len("of "+name))
	}
	var lines []string
	line := func(holds bool, label, format string, args ...any) {
		if holds {
			lines = append(lines, fmt.Sprintf("%-*s %s", width, label, fmt.Sprintf(format, args...)))
		}
	}
	problems := func(n int) string { return digits.Plural(n, "problem", "problems") }
	quantiles := func(label string, v stats.Quantiles) {
		line(v.Count > 0, label, "median %s, geomean %s, p10 %s, worst %s over %s", digits.Percent(v.Median),
			digits.Percent(v.Geomean), digits.Percent(v.P10), digits.Percent(v.Worst), problems(v.Count))
	}
	quantiles("of best", s.Efficiency)
	var others []float64
	for i := range w.rows {
		if e := w.rows[i].Efficiency; e > 0 && w.rows[i].Spills == 0 {
			others = append(others, e)
		}
	}
	if len(others) < s.Efficiency.Count {
		quantiles("no spills", stats.QuantilesOf(others))
	}
	for i, name := range libraries {
		quantiles("of "+name, s.Libraries[name])
		var others []float64
		marked := 0
		for j := range w.rows {
			switch r := &w.rows[j]; {
			case r.slow(i):
				marked++
			case r.Libraries[i].Versus > 0:
				others = append(others, r.Libraries[i].Versus)
			}
		}
		line(marked > 0 && len(others) > 0, "*",
			"in %s %s takes at least 1.1 times as long as the fastest kernel; geomean %s without them", problems(marked),
			libraries[i], digits.Percent(stats.QuantilesOf(others).Geomean))
	}
	left, missing := leftOut(s.Wrong, s.Failed), w.unfinished(s)
	line(s.PassedOver > 0, "passed over", "in %s the model's first choices have no time (they do not compile, or are not "+
		"recorded); \"after N\" counts them", problems(s.PassedOver))
	line(!math.IsNaN(float64(s.TauMean)), "tau", "mean %.3f, worst %.3f", s.TauMean, s.TauWorst)
	line(s.Finals > 0, "finals", "the times of %s are from runs in turns; the sweep's rank and correlate",
		problems(s.Finals))
	line(!math.IsNaN(float64(s.Noise)), "noise floor", "median %s between two measurements of the same pick",
		digits.Percent(float64(s.Noise)))
	line(left != "", "left out", "%s", left)
	line(s.NotBuilt > 0, "not built", "%s", digits.Plural(s.NotBuilt, "candidate", "candidates"))
	line(missing != "", "unfinished", "%s", missing)
	line(s.ClockMoved > 0, "clock", "it moved by more than 2 %% during %s", digits.Plural(s.ClockMoved, "measurement",
		"measurements"))
	return lines
}

// unfinished says how much of a sweep is missing. It is empty for a data set of times alone, which does not tell the
// candidates that do not compile from those that were not tried.
func (w *writer) unfinished(s *score.ComparisonSummary) string {
	if s.Unfinished == 0 || w.data.Executor == "" {
		return ""
	}
	return fmt.Sprintf("in %s %s not recorded", digits.Plural(s.Unfinished, "problem", "problems"),
		digits.Plural(s.Missing, "candidate is", "candidates are"))
}

// leftOut counts the measurements that have no valid time.
func leftOut(wrong, failed int) string {
	var parts []string
	if wrong > 0 {
		parts = append(parts, digits.Plural(wrong, "wrong result", "wrong results"))
	}
	if failed > 0 {
		parts = append(parts, digits.Plural(failed, "failure", "failures"))
	}
	return strings.Join(parts, ", ")
}

// uniform reports whether the problems differ in nothing but m, n and k.
func (w *writer) uniform() bool {
	for i := range w.scores {
		p := w.scores[i].Problem
		p.M, p.N, p.K = w.scores[0].Problem.M, w.scores[0].Problem.N, w.scores[0].Problem.K
		if p != w.scores[0].Problem {
			return false
		}
	}
	return true
}

// compared is a problem with the model's pick, the best candidate and the vendor's libraries.
type compared struct {
	Arch   string          `json:"arch"` // as in `select`
	Device string          `json:"device"`
	Model  string          `json:"model"`
	Class  arch.ModelClass `json:"model_class,omitempty"`
	Kernel string          `json:"kernel"`
	// as in `select`: the `predicted` numbers are then no time and no rate
	Ranks   bool        `json:"ranks_only,omitempty"`
	Problem gemm.Record `json:"problem"` // as in `select`
	Labels  ask.Fields  `json:"labels,omitempty"`
	// the first ranked candidate with a time, at the launch-order group of the measurements
	Pick gemm.Config `json:"pick"`
	// the fastest of the measured candidates
	Best gemm.Config `json:"best"`
	// the vendor's default library
	Library      string  `json:"library,omitempty"`
	Milliseconds figures `json:"milliseconds"` // the times, and the rates
	TFLOPS       figures `json:"tflops"`
	// best time ÷ time of the pick
	Efficiency float64 `json:"efficiency" unit:"fraction"`
	// the library's time ÷ time of the pick
	Versus *float64 `json:"versus_library,omitempty"`
	// Kendall's tau-b of predicted against measured times
	Tau ask.Number `json:"tau"`
	// rank of the pick by the times of the sweep
	PickRank int `json:"pick_rank"`
	// the candidates before the pick without a valid time
	PassedOver int `json:"passed_over"`
	Measured   int `json:"measured"` // the candidates with a time, and all of them
	Candidates int `json:"candidates"`
	// of the kernel of the pick, per thread
	Registers int `json:"registers"`
	Spills    int `json:"spill_bytes"`
	// `final` if these times are from runs in turns, else `sweep`
	Phase dataset.Phase `json:"phase"`
	// larger ÷ smaller of two measurements of the pick − 1
	Noise ask.Number `json:"noise_floor" unit:"fraction"`
	// rank of the best by predicted time
	BestRank int `json:"best_rank"`
	// candidates without a valid time; `wrong` and `failed` include libraries, `failed` time-outs
	Wrong    int `json:"wrong"`
	NotBuilt int `json:"not_built"`
	Failed   int `json:"failed"`
	Missing  int `json:"missing"`
	// measurements during which the clock moved by more than 2 %
	ClockMoved int `json:"clock_moved"`
	// every library of the data set, the default first
	Libraries []library `json:"libraries,omitempty"`
	// the wrong and the failed candidates
	Excluded []excluded `json:"excluded,omitempty"`
}

// figures are a number for each kernel.
type figures struct {
	Predicted float64 `json:"predicted"` // of the pick
	Pick      float64 `json:"pick"`      // as measured
	Best      float64 `json:"best"`
	Library   float64 `json:"library,omitempty"` // if it was measured
}

// library is a vendor's library on one problem. Its numbers are missing where it was not measured.
type library struct {
	Name         string  `json:"name"`                   // its name
	Milliseconds float64 `json:"milliseconds,omitempty"` // its time and its rate
	TFLOPS       float64 `json:"tflops,omitempty"`
	Versus       float64 `json:"versus,omitempty"` // its time ÷ time of the pick
}

// excluded is a configuration, or a library, that has no time that counts.
type excluded struct {
	Config  *gemm.Config   `json:"config,omitempty"` // the one or the other
	Library string         `json:"library,omitempty"`
	Status  dataset.Status `json:"status"` // what became of it
	Detail  string         `json:"detail,omitempty"`
}

func (w *writer) compared(r *score.Comparison, labels []string) compared {
	milliseconds := func(t unit.Seconds) float64 { return float64(t) * 1e3 }
	tflops := func(t unit.Seconds) float64 { return r.Problem.Flops() / float64(t) / 1e12 }
	c := compared{Arch: w.arch.Arch, Device: w.arch.Device, Model: w.arch.Model, Class: w.arch.ModelClass,
		Kernel: w.data.Kernel, Ranks: w.arch.RanksOnly, Problem: r.Problem.Record(), Labels: ask.Labels(w.labels, labels),
		Pick: r.Pick.Config, Best: r.Best.Config,
		Milliseconds: figures{milliseconds(r.Pick.Predicted), milliseconds(r.Pick.Measured),
			milliseconds(r.Best.Measured), 0},
		TFLOPS:     figures{tflops(r.Pick.Predicted), tflops(r.Pick.Measured), tflops(r.Best.Measured), 0},
		Efficiency: r.Efficiency(), Tau: ask.Number(r.Tau), PickRank: r.PickRank, PassedOver: r.PassedOver,
		Measured: r.Measured, Candidates: r.Candidates, Registers: r.Pick.Resources.Registers,
		Spills: int(r.Pick.Resources.SpillBytes), Phase: r.Phase, Noise: ask.Number(r.Noise), BestRank: r.BestRank,
		Wrong: r.Wrong, NotBuilt: r.NotBuilt, Failed: r.Failed, Missing: r.Missing, ClockMoved: r.ClockMoved}
	for i, name := range w.data.Libraries() {
		l := library{Name: name}
		if t := r.Libraries[i]; t > 0 {
			l = library{name, milliseconds(t), tflops(t), r.VersusLibrary(i)}
		}
		if c.Libraries = append(c.Libraries, l); i > 0 {
			continue
		}
		if c.Library = name; l.Milliseconds > 0 {
			c.Milliseconds.Library, c.TFLOPS.Library, c.Versus = l.Milliseconds, l.TFLOPS, &l.Versus
		}
	}
	for i := range r.Excluded {
		e := excluded{Library: r.Excluded[i].Library, Status: r.Excluded[i].Status, Detail: r.Excluded[i].Detail}
		if e.Library == "" {
			e.Config = &r.Excluded[i].Config
		}
		c.Excluded = append(c.Excluded, e)
	}
	return c
}
