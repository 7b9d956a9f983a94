package measurecmd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

// row is a problem with the cells of the problems file's labels.
type row struct {
	score.Comparison
	labels []string
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
	Config  *gemm.Config   `json:"config,omitempty"`
	Library string         `json:"library,omitempty"`
	Status  dataset.Status `json:"status"`
	Detail  string         `json:"detail,omitempty"`
}

func predicted(r *row) unit.Seconds { return r.Predicted }
func pick(r *row) unit.Seconds      { return r.Pick.Time }
func best(r *row) unit.Seconds      { return r.Best.Time }
func problemOf(r *row) gemm.Problem { return r.Problem }

// vendor returns the time of the i-th library, 0 if it has none.
func vendor(i int) func(*row) unit.Seconds {
	return func(r *row) unit.Seconds {
		if i < len(r.Libraries) {
			return r.Libraries[i]
		}
		return 0
	}
}

// slow reports whether the i-th library takes much longer than the fastest measured kernel. There it says less of the
// kernels than of its own choice, or of its launch.
func slow(r *row, i int) bool { return vendor(i)(r) > 1.1*r.Best.Time }

func milliseconds(_ *row, t unit.Seconds) float64 { return float64(t) * 1e3 }
func tflops(r *row, t unit.Seconds) float64       { return float64(r.Rate(t)) / 1e12 }

// of is a column of a number that follows from a time. CSV has nothing where there is no time.
func of(names string, time func(*row) unit.Seconds, number func(*row, unit.Seconds) float64) table.Column[row] {
	return table.Col(names, func(r *row) float64 { return number(r, time(r)) }).CSV(func(r *row) string {
		if t := time(r); t > 0 {
			return digits.Exact(number(r, t))
		}
		return ""
	})
}

// columns are the columns of all formats. The first library has columns of CSV whether it was measured or not; others
// have columns under their names.
func (w *writer) columns(s *score.ComparisonSummary) table.Columns[row] {
	libraries, rate := w.data.Libraries(), " TF/s"
	if w.integers() {
		rate = " TOPS"
	}
	first := vendor(0)
	versus := func(r *row) *float64 {
		if first(r) <= 0 {
			return nil
		}
		v := r.VersusLibrary(0)
		return &v
	}
	kernel := table.Config(w.arch.Axes(w.data.Kernel), func(r *row) gemm.Config { return r.Pick.Config })
	labels := table.Group(w.labels, func(r *row) []string { return r.labels })
	name := ""
	if len(libraries) > 0 {
		name = libraries[0]
	}
	c := table.Columns[row]{
		table.Const[row]("arch|-", w.arch.Arch),
		table.Const[row]("device|-", w.arch.Device),
		table.Const[row]("model|-", w.arch.Model),
		table.Const[row]("model_class|-", w.arch.ModelClass).Omit(),
		table.Const[row]("kernel|-", w.data.Kernel),
		table.Const[row]("ranks_only|-", w.arch.RanksOnly).Omit(),
	}
	c = append(c, table.Problem(problemOf)...)
	c = append(c, kernel,
		table.Col("labels|-", func(r *row) ask.Fields { return ask.Labels(w.labels, r.labels) }).Omit(),
		table.Col("pick|-", func(r *row) gemm.Config { return r.Pick.Config }),
		table.Col("best|-", func(r *row) gemm.Config { return r.Best.Config }),
		table.Const[row]("library|-", name).Omit(),
		of("milliseconds.predicted|predicted_ms|-", predicted, milliseconds),
		of("milliseconds.pick|pick_ms|-", pick, milliseconds),
		of("milliseconds.best|best_ms|-", best, milliseconds),
		of("milliseconds.library|library_ms|-", first, milliseconds).Omit(),
		of("tflops.predicted|-", predicted, tflops),
		of("tflops.pick|-", pick, tflops),
		of("tflops.best|-", best, tflops),
		of("tflops.library|-", first, tflops).Omit(),
		table.Col("efficiency||-", func(r *row) float64 { return r.Efficiency() }),
		table.Col("versus_library||-", versus).Omit(),
		table.Opt("tau||-", func(r *row) float64 { return r.Tau }),
		table.Col("pick_rank||-", func(r *row) int { return r.PickRank }),
		table.Col("passed_over||-", func(r *row) int { return r.PassedOver }),
		table.Col("measured||-", func(r *row) int { return r.Measured }),
		table.Col("candidates||-", func(r *row) int { return r.Candidates }),
		table.Col("registers||-", func(r *row) int { return r.Pick.Resources.Registers }),
		table.Col("spill_bytes||-", func(r *row) float64 { return float64(r.Pick.Resources.SpillBytes) }),
		table.Col("-|best|-", func(r *row) string { return r.Best.Config.String() }),
		of("-|pick_tflops|-", pick, tflops),
		of("-|best_tflops|-", best, tflops),
		of("-|library_tflops|-", first, tflops),
		table.Col("phase||-", func(r *row) dataset.Phase { return r.Phase }),
		table.Opt("noise_floor||-", func(r *row) float64 { return r.Noise }),
		table.Col("best_rank||-", func(r *row) int { return r.BestRank }),
		table.Col("wrong||-", func(r *row) int { return r.Wrong }),
		table.Col("not_built||-", func(r *row) int { return r.NotBuilt }),
		table.Col("failed||-", func(r *row) int { return r.Failed }),
		table.Col("missing||-", func(r *row) int { return r.Missing }),
		table.Col("clock_moved||-", func(r *row) int { return r.ClockMoved }),
		table.Const[row]("-|ranks_only|-", w.arch.RanksOnly),
		table.Col("libraries|-", w.librariesOf).Omit(),
		table.Col("excluded|-", excludedOf).Omit())
	for i, name := range libraries {
		if i > 0 {
			name = strings.ReplaceAll(name, "-", "_")
			c = append(c, of("-|"+name+"_ms|-", vendor(i), milliseconds), of("-|"+name+"_tflops|-", vendor(i), tflops),
				of("-|versus_"+name+"|-", vendor(i), func(r *row, _ unit.Seconds) float64 { return r.VersusLibrary(i) }))
		}
	}
	c = append(c, labels.In(table.CSV), table.More(w.more, problemOf))

	// What people see. Columns that would be empty throughout are left out.
	uniform := w.uniform()
	speed := func(name string, time func(*row) unit.Seconds) table.Column[row] {
		return table.Opt("-|-|"+name+rate, func(r *row) float64 { return table.Positive(tflops(r, time(r))) },
			func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }).Or(none)
	}
	c = append(c, table.Text("problem", func(r *row) string {
		if uniform {
			return fmt.Sprintf("%dx%dx%d", r.Problem.M, r.Problem.N, r.Problem.K)
		}
		return r.Problem.String()
	}), labels.In(table.Table), speed("pick", pick), speed("best", best))
	for i, name := range libraries {
		c = append(c, speed(name, vendor(i)))
	}
	c = append(c, table.Text("of best", func(r *row) string { return digits.Percent(r.Efficiency()) }))
	for i, name := range libraries {
		c = append(c, table.Text("of "+name, func(r *row) string {
			switch v := r.VersusLibrary(i); {
			case v <= 0:
				return ""
			case slow(r, i):
				return "* " + digits.Percent(v)
			default:
				return digits.Percent(v)
			}
		}).Or(none))
	}
	return append(c,
		table.Opt("-|-|noise", func(r *row) float64 { return r.Noise }, digits.Percent).Or(none).If(s.Finals > 0),
		table.Text("tau", func(r *row) string { return fmt.Sprintf("%.3f", r.Tau) }),
		table.Text("pick's place", func(r *row) string { return fmt.Sprintf("%d of %d", r.PickRank, r.Measured) }),
		table.Text("best's place", func(r *row) string { return fmt.Sprintf("%d of %d", r.BestRank, r.Measured) }),
		table.Text("pick", tile),
		table.Text("registers", registers).Or(none),
		table.Text("left out", func(r *row) string { return leftOut(r.Wrong, r.Failed) }).Or(none).If(s.Wrong+s.Failed > 0))
}

const none = "–"

// tile is the pick's tile, and how many choices of the model have no time.
func tile(r *row) string {
	c := r.Pick.Config
	text := fmt.Sprintf("%dx%dx%d", c.BlockM, c.BlockN, c.BlockK)
	if r.PassedOver > 0 {
		text += fmt.Sprintf(" after %d", r.PassedOver)
	}
	return text
}

func registers(r *row) string {
	n := r.Pick.Resources.Registers
	if n == 0 {
		return ""
	}
	if spill := float64(r.Pick.Resources.SpillBytes); spill > 0 {
		return fmt.Sprintf("%d + %s B spilled", n, digits.SixDigits(spill))
	}
	return strconv.Itoa(n)
}

func (w *writer) librariesOf(r *row) (list []library) {
	for i, name := range w.data.Libraries() {
		t := r.Libraries[i]
		list = append(list, library{name, milliseconds(r, t), tflops(r, t), r.VersusLibrary(i)})
	}
	return list
}

func excludedOf(r *row) (list []excluded) {
	for i := range r.Excluded {
		e := excluded{Library: r.Excluded[i].Library, Status: r.Excluded[i].Status, Detail: r.Excluded[i].Detail}
		if e.Library == "" {
			e.Config = &r.Excluded[i].Config
		}
		list = append(list, e)
	}
	return list
}

// object is the summary in JSON.
func (w *writer) object(s *score.ComparisonSummary) map[string]any {
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
		"kernel": w.data.Kernel, "problems": s.Problems, "passed_over": s.PassedOver, "efficiency": spread(s.Efficiency),
		"versus_library": spread(first), "tau_mean": ask.Number(s.TauMean), "tau_worst": ask.Number(s.TauWorst),
		"libraries": libraries, "noise_floor": ask.Number(s.Noise), "measured": s.Measured, "wrong": s.Wrong,
		"not_built": s.NotBuilt, "failed": s.Failed, "missing": s.Missing, "unfinished": s.Unfinished,
		"clock_moved": s.ClockMoved, "finals": s.Finals,
	}
}
