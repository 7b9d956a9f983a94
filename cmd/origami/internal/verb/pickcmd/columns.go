package pickcmd

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
)

// row is a configuration of a ranking. JSON has it as a value of ask; here are its columns elsewhere.
type row struct {
	*ask.Ranking
	*ask.Entry
}

func rowOf(e *ask.Explained) *row { return &row{e.Ranking, &e.Entry} }

func problemOf(r *row) gemm.Problem { return r.Problem }
func configOf(r *row) gemm.Config   { return r.Config }
func outside(r *row) string         { return strings.Join(r.Outside(r.Entry), "; ") }

// labels are the columns of the problems file that origami does not know.
func labels(names []string) table.Column[row] {
	return table.Group(names, func(r *row) []string { return r.Labels.Texts() })
}

// keys are the columns of CSV that say which configuration of which problem a row is about. They have the axes of the
// kernel family that was asked for, or that the model took.
func keys(a *ask.Ranking) table.Columns[row] {
	axes := a.Arch.Axes(cmp.Or(a.Requested, a.Kernel))
	return append(table.Problem(problemOf), table.Config(axes, configOf))
}

// predicted are the columns of CSV with who predicts what. A configuration that cannot be used has no prediction.
func predicted() table.Columns[row] {
	known := func(names string, value func(*row) float64) table.Column[row] {
		return table.Opt(names, func(r *row) float64 {
			if r.Estimate.Reject != "" {
				return math.NaN()
			}
			return value(r)
		})
	}
	return table.Columns[row]{
		table.Col("-|arch|-", func(r *row) string { return r.Arch.Arch }),
		table.Col("-|device|-", func(r *row) string { return r.Arch.Device }),
		table.Col("-|model|-", func(r *row) string { return r.Arch.Model }),
		table.Col("-|kernel|-", func(r *row) string { return r.Kernel }),
		table.Col("-|rung|-", func(r *row) arch.Rung { return r.Arch.Rung }),
		table.Col("-|timing|-", func(r *row) string { return r.Arch.Timing }),
		known("-|cycles|-", func(r *row) float64 { return float64(r.Estimate.Cycles) }),
		known("-|seconds|-", func(r *row) float64 { return float64(r.Seconds(r.Entry)) }),
		known("-|tflops|-", func(r *row) float64 { return float64(r.Rate(r.Entry)) / 1e12 }),
		table.Col("-|bound|-", bound),
	}
}

// bound is what limits a configuration that can be used.
func bound(r *row) string {
	if r.Estimate.Reject != "" {
		return ""
	}
	return r.Estimate.Bound.String()
}

// The columns of tables. A configuration without a rank cannot be used.
var (
	placeColumn = table.Col("-|rank", func(r *row) int { return r.Rank }, func(rank int) string {
		if rank == 0 {
			return ""
		}
		return strconv.Itoa(rank)
	}).Same()
	configColumn = table.Text("config", func(r *row) string { return r.Config.String() })
	rateColumn   = table.Text("rate", ranked(table.RateCell))
	boundColumn  = table.Text("bound", bound)
	// layerColumn is the part of a library logic that answered.
	layerColumn = table.Col("-|layer|answered by", func(r *row) logic.Layer { return r.Logic.Layer })
)

func timeColumn(d *arch.Description) table.Column[row] {
	return table.Text(table.TimeHeader(d), ranked(table.TimeCell))
}

func ranked(cell func(*ask.Ranking, *ask.Entry) string) func(*row) string {
	return func(r *row) string {
		if r.Rank == 0 {
			return ""
		}
		return cell(r.Ranking, r.Entry)
	}
}

func percent(v float64) string {
	if !digits.Finite(v) {
		return "–"
	}
	return digits.Percent(v)
}
