package evalcmd

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
)

// outcome is the score of a model on a data set.
type outcome struct{ *ask.Scored }

// hasIntervals reports whether the model has intervals for some of the problems.
func (o *outcome) hasIntervals() bool { return o.level() > 0 }

// level is that of the intervals, 0 if no problem has one.
func (o *outcome) level() float64 {
	for i := range o.Rows {
		if u := o.Scope(&o.Rows[i].Problem, o.Rows[i].Pick.Config.SplitK).Uncertainty; u != nil {
			return u.Level
		}
	}
	return 0
}

// heldWord says whether the interval of a pick covers its measured time, "" without an interval.
func (o *outcome) heldWord(r *score.Evaluation, yes, no string) string {
	held, ok := r.PickCovered(o.Scope)
	switch {
	case !ok:
		return ""
	case held:
		return yes
	default:
		return no
	}
}

func (o *outcome) write(s *iostreams.Streams, f table.Format) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, o.Evaluation())
	case table.Table:
		t := o.text()
		table.Lines(s, t.above...)
		table.Grid{Header: t.header, Rows: t.rows, Least: []string{"top 16", "top 8", "top 4", "in-sample",
			"best's place", "pick's place", "interval held", "tau", "class", "best's time", "pick's time"}}.Write(s)
		s.Printf("\n")
		table.WriteTable(s, t.classHeader, t.classes)
		s.Printf("\n")
		table.Lines(s, t.below...)
		return nil
	default:
		return o.columns().Write(s, f, o.evaluated())
	}
}

// evaluated is a row with its plain value.
type evaluated struct {
	*score.Evaluation
	plain *ask.Evaluated
}

func (o *outcome) evaluated() []evaluated {
	rows, plain := make([]evaluated, len(o.Rows)), o.Evaluation().Problems
	for i := range o.Rows {
		rows[i] = evaluated{&o.Rows[i], &plain[i]}
	}
	return rows
}

// columns are the columns of the problems in a table, CSV and TSV.
func (o *outcome) columns() table.Columns[evaluated] {
	type row = evaluated
	problem := func(r *row) gemm.Problem { return r.Problem }
	labels := table.Group(o.Labels, func(r *row) []string { return r.plain.Labels.Texts() })
	short := func(of func(*row) gemm.Config) func(*row) string {
		return func(r *row) string { return o.short(of(r)) }
	}
	pick := func(r *row) gemm.Config { return r.Pick.Config }
	best := func(r *row) gemm.Config { return r.Best.Config }
	rank := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return append(table.Problem(problem),
		table.Config(o.axes(), pick),
		table.Text("problem", func(r *row) string { return r.Problem.String() }), labels.In(table.Table),
		table.Col("-|class", func(r *row) string { return r.Class.String() }),
		table.Text("pick", short(pick)),
		table.Opt("-|predicted_ms|-", func(r *row) float64 { return r.plain.PredictedMS }),
		table.Opt("-|pick_ms|-", func(r *row) ask.Number { return r.plain.PickMS }),
		table.Opt("-|-|pick's time", func(r *row) float64 { return table.Positive(float64(r.Pick.Time)) }, seconds).Or(none),
		table.Col("-|best|-", best),
		table.Text("best", short(best)),
		table.Opt("-|best_ms|-", func(r *row) float64 { return r.plain.BestMS }),
		table.Text("best's time", func(r *row) string { return r.Best.Time.String() }),
		table.Opt("-|efficiency|of best", func(r *row) float64 { return r.Efficiency() }, digits.Percent),
		table.Opt("-|efficiency_top4|top 4", func(r *row) float64 { return r.Top[0] }, digits.Percent),
		table.Opt("-|efficiency_top8|top 8", func(r *row) float64 { return r.Top[1] }, digits.Percent),
		table.Opt("-|efficiency_top16|top 16", func(r *row) float64 { return r.Top[2] }, digits.Percent),
		table.Opt("-|tau", func(r *row) float64 { return r.Tau }, tau).Or(none),
		table.Col("-|pick_rank_measured|-", func(r *row) string { return rank(r.PickRank) }),
		table.Text("pick's place", func(r *row) string {
			if r.Pick.Time <= 0 {
				return none
			}
			return fmt.Sprintf("%d of %d", r.PickRank, r.Measured)
		}),
		table.Col("-|best_rank_predicted|best's place", func(r *row) string { return rank(r.BestRank) }).Or(none),
		table.Opt("-|error_median|error", func(r *row) float64 { return r.Error }, digits.Percent).Or(none),
		table.Col("-|interval_held|-", func(r *row) string { return o.heldWord(r.Evaluation, "1", "0") }),
		table.Text("interval held", func(r *row) string { return o.heldWord(r.Evaluation, "yes", "no") }).
			If(o.hasIntervals()),
		table.Opt("-|interval_coverage|-", func(r *row) ask.Number { return r.plain.Coverage }),
		table.Col("-|recorded|-", func(r *row) int { return r.Measured }),
		table.Col("-|refused|-", func(r *row) int { return r.Rejected }),
		table.Col("-|in_sample|-", func(r *row) bool { return r.plain.InSample }),
		table.Text("in-sample", func(r *row) string { return o.inSampleWord(r.Evaluation) }).If(o.mixed()),
		table.Const[row]("-|ranks_only|-", o.Arch.RanksOnly), labels.In(table.CSV), table.More(o.more(), problem))
}

// more says whether the answer has a column for what few problems have.
func (o *outcome) more() bool {
	return slices.ContainsFunc(o.Rows, func(r score.Evaluation) bool { return !r.Problem.Plain() })
}

func (o *outcome) axes() []gemm.Axis { return o.Arch.Axes(o.Data.Kernel) }
