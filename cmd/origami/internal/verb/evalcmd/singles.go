package evalcmd

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
)

// singles is how far a model is from the measured times of single configurations.
type singles struct {
	arch *arch.Description
	data *score.Subset
	rows []score.Single
}

// singlesJSON is the answer of `eval --json` for a data set with one configuration per problem.
type singlesJSON struct {
	Arch   string          `json:"arch"` // as in `select`
	Device string          `json:"device"`
	Model  string          `json:"model"`
	Class  arch.ModelClass `json:"model_class,omitempty"`
	Kernel string          `json:"kernel"`
	Rung   arch.Rung       `json:"rung"`
	Ranks  bool            `json:"ranks_only,omitempty"`
	Data   string          `json:"records"` // the measurements
	// each with `problem`, `config`, `bound`, `predicted_ms`, `measured_ms`, `predicted_by_measured`, `spill_bytes`
	// (per thread, as the compiler reports it) and `reason` (why the model rejects it; the predicted numbers are then
	// `null`)
	Rows   []ask.Object   `json:"kernels"`
	Groups []singlesGroup `json:"summary"` // of predicted ÷ measured
}

type singlesGroup struct {
	Name    string  `json:"of"`     // `all`, `without spills` or `with spills`
	Count   int     `json:"count"`  // how many kernels
	Median  float64 `json:"median"` // their ratios
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
}

var ratioColumns = table.Columns[singlesGroup]{
	table.Text("predicted ÷ measured", func(g *singlesGroup) string { return g.Name }),
	table.Text("kernels", func(g *singlesGroup) string { return strconv.Itoa(g.Count) }),
	table.Text("median", func(g *singlesGroup) string { return ratioText(g.Median) }),
	table.Text("lowest", func(g *singlesGroup) string { return ratioText(g.Lowest) }),
	table.Text("highest", func(g *singlesGroup) string { return ratioText(g.Highest) }),
}

func (o *singles) columns() table.Columns[score.Single] {
	type single = score.Single
	problem := func(r *single) gemm.Problem { return r.Problem }
	config := func(r *single) gemm.Config { return r.Config }
	// predicted is a number that a rejected kernel does not have.
	predicted := func(of func(*single) float64) func(*single) float64 {
		return func(r *single) float64 {
			if r.Reject != "" {
				return math.NaN()
			}
			return of(r)
		}
	}
	return append(table.Problem(problem),
		table.Config(o.arch.Axes(o.data.Kernel), config),
		table.Text("problem", func(r *single) string { return r.Problem.String() }),
		table.Col("config|-", config),
		table.Text("configuration", func(r *single) string { return r.Config.String() }),
		table.Col("bound", func(r *single) string {
			if r.Reject != "" {
				return ""
			}
			return r.Bound.String()
		}).Omit().Or(none),
		table.Opt("predicted_ms||-", predicted(func(r *single) float64 { return ask.Milliseconds(r.Predicted) })),
		table.Opt("-|-|predicted", predicted(func(r *single) float64 { return float64(r.Predicted) }), seconds).Or(none),
		table.Col("measured_ms||-", func(r *single) float64 { return ask.Milliseconds(r.Measured) }),
		table.Text("measured", func(r *single) string { return r.Measured.String() }),
		table.Opt("predicted_by_measured||predicted ÷ measured", predicted((*single).Ratio), ratioText).Or(none),
		table.Col("spill_bytes||spills", func(r *single) int { return int(r.SpillBytes) }, func(bytes int) string {
			if bytes == 0 {
				return "no"
			}
			return fmt.Sprintf("%d B", bytes)
		}),
		table.Col("reason||-", func(r *single) arch.Reason { return r.Reject }).Omit(),
		table.Const[single]("-|ranks_only|-", o.arch.RanksOnly))
}

func seconds(v float64) string { return unit.Seconds(v).String() }

// singles scores a model on a data set with one configuration per problem.
func (o *Options) singles(ctx context.Context) (*singles, error) {
	for _, flag := range []struct {
		name  string
		given bool
	}{{"report", o.Report != ""}, {"intervals", o.Intervals}} {
		if flag.given {
			return nil, diag.Inputf("%s has one configuration per problem, and the %s needs a choice", o.data.Name, flag.name).
				At("--%s", flag.name).Do("leave it out")
		}
	}
	rows, err := score.Singles(ctx, o.model, o.data, problems.Shapes(o.list.Problems))
	return &singles{o.model.Describe(), o.data, rows}, err
}

// groups sums up the ratios of all kernels, of those that spill and of the others.
func (o *singles) groups() []singlesGroup {
	var out []singlesGroup
	for _, g := range []struct {
		name   string
		counts func(*score.Single) bool
	}{
		{"all", func(*score.Single) bool { return true }},
		{"without spills", func(s *score.Single) bool { return s.SpillBytes == 0 }},
		{"with spills", func(s *score.Single) bool { return s.SpillBytes > 0 }},
	} {
		if r := score.SummariseSingles(o.rows, g.counts); r.Count > 0 {
			out = append(out, singlesGroup{g.name, r.Count, r.Median, r.Least, r.Large})
		}
	}
	return out
}

func (o *singles) write(s *iostreams.Streams, f table.Format) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, o.object())
	case table.Table:
		table.Lines(s, append(table.DeviceLines(o.arch), table.ModelLine(o.arch, o.data.Kernel),
			fmt.Sprintf("%-11s %s, one configuration per problem", "measured", o.data.Name))...)
	case table.CSV, table.TSV:
	}
	if err := o.columns().Write(s, f, o.rows); err != nil || f != table.Table {
		return err
	}
	s.Printf("\n")
	return ratioColumns.Write(s, f, o.groups())
}

func (o *singles) object() singlesJSON {
	d := o.arch
	return singlesJSON{d.Arch, d.Device, d.Model, d.ModelClass, o.data.Kernel, d.Rung, d.RanksOnly, o.data.Name,
		o.columns().Objects(o.rows), o.groups()}
}
