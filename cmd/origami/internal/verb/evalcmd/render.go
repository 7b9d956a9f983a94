package evalcmd

import (
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
)

// outcome is the score of a model on a data set.
type outcome struct {
	arch         *arch.Description
	data         *score.Subset
	rows         []score.Evaluation
	group, split score.AxisChoice
	// labels are the further columns of the problems file, labelled the cells of each row.
	labels   []string
	labelled [][]string
}

// scope says which of the model's intervals hold for the kernels of a problem.
func (o *outcome) scope(p *gemm.Problem, split int) arch.Scope {
	return o.arch.Scope(o.data.Kernel, p, split)
}

// hasIntervals reports whether the model has intervals for some of the problems.
func (o *outcome) hasIntervals() bool { return o.level() > 0 }

// level is that of the intervals, 0 if no problem has one.
func (o *outcome) level() float64 {
	for i := range o.rows {
		if u := o.scope(&o.rows[i].Problem, o.rows[i].Pick.Config.SplitK).Uncertainty; u != nil {
			return u.Level
		}
	}
	return 0
}

// heldWord says whether the interval of a pick covers its measured time, "" without an interval.
func (o *outcome) heldWord(r *score.Evaluation, yes, no string) string {
	held, ok := r.PickCovered(o.scope)
	switch {
	case !ok:
		return ""
	case held:
		return yes
	default:
		return no
	}
}

func (o *outcome) write(s *table.Streams, f table.Format) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, o.object())
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
		rows := make([][]string, len(o.rows))
		for i := range o.rows {
			rows[i] = slices.Concat(o.cells(&o.rows[i]), o.labelled[i], table.MoreCells(o.rows[i].Problem, o.more()))
		}
		return table.WriteRows(s, f, slices.Concat(columns(o.axes()), o.labels, table.MoreColumns(o.more())), rows)
	}
}

// columns are those of CSV and TSV, before the labels.
func columns(axes []gemm.Axis) []string {
	return slices.Concat(table.KeyColumns, table.LaunchColumns(axes), []string{
		"class", "predicted_ms", "pick_ms", "best", "best_ms", "efficiency", "efficiency_top4", "efficiency_top8",
		"efficiency_top16", "tau",
		"pick_rank_measured", "best_rank_predicted", "error_median", "interval_held", "interval_coverage", "recorded",
		"refused", "in_sample", "ranks_only",
	})
}

// more says whether the answer has a column for what few problems have.
func (o *outcome) more() bool {
	return slices.ContainsFunc(o.rows, func(r score.Evaluation) bool { return !r.Problem.Plain() })
}

// axes are those of the configurations.
func (o *outcome) axes() []gemm.Axis { return o.arch.Axes(o.data.Kernel) }

func (o *outcome) cells(r *score.Evaluation) []string {
	number := func(v float64) string {
		if !digits.Finite(v) {
			return ""
		}
		return digits.Exact(v)
	}
	rank := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return slices.Concat(table.KeyCells(r.Problem, r.Pick.Config), table.LaunchCells(r.Pick.Config,
		o.axes()), []string{
		r.Class.String(), number(milliseconds(r.Predicted)), number(milliseconds(r.Pick.Time)), r.Best.Config.String(),
		number(milliseconds(r.Best.Time)),
		number(r.Efficiency()), number(r.Top[0]), number(r.Top[1]), number(r.Top[2]), number(r.Tau), rank(r.PickRank),
		rank(r.BestRank), number(r.Error),
		o.heldWord(r, "1", "0"), number(coverage(r, o.scope)), strconv.Itoa(r.Measured),
		strconv.Itoa(r.Rejected), bit(o.arch.InSample(r.Problem, o.data.Kernel)), table.Flag(o.arch.RanksOnly),
	})
}
