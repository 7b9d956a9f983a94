package evalcmd

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
)

// singles is how far a model is from the measured times of single configurations.
type singles struct {
	arch *arch.Description
	data *score.Subset
	rows []score.Single
}

// singlesJSON is the answer of `eval --json` for a data set with one configuration per problem.
type singlesJSON struct {
	Arch   string          `json:"arch"`
	Device string          `json:"device"`
	Model  string          `json:"model"`
	Class  arch.ModelClass `json:"model_class,omitempty"`
	Kernel string          `json:"kernel"`
	Rung   arch.Rung       `json:"rung"`
	Ranks  bool            `json:"ranks_only,omitempty"`
	Data   string          `json:"records"`
	Rows   []singleJSON    `json:"kernels"`
	Groups []singlesGroup  `json:"summary"`
}

type singleJSON struct {
	Problem    gemm.Record `json:"problem"`
	Config     gemm.Config `json:"config"`
	Bound      string      `json:"bound,omitempty"`
	Predicted  *float64    `json:"predicted_ms"`
	Measured   float64     `json:"measured_ms"`
	Ratio      *float64    `json:"predicted_by_measured"`
	SpillBytes int         `json:"spill_bytes"`
	Reason     arch.Reason `json:"reason,omitempty"`
}

type singlesGroup struct {
	Name    string  `json:"of"`
	Count   int     `json:"count"`
	Median  float64 `json:"median"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
}

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

func (o *singles) write(s *table.Streams, f table.Format) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, o.object())
	case table.Table:
		o.table(s)
		return nil
	default:
		axes := o.arch.Axes(o.data.Kernel)
		header := slices.Concat(table.KeyColumns, table.LaunchColumns(axes),
			[]string{"bound", "predicted_ms", "measured_ms", "predicted_by_measured", "spill_bytes", "reason",
				"ranks_only"})
		rows := make([][]string, len(o.rows))
		for i := range o.rows {
			r := &o.rows[i]
			cells := []string{"", "", digits.Exact(milliseconds(r.Measured)), "", strconv.Itoa(int(r.SpillBytes)),
				string(r.Reject), table.Flag(o.arch.RanksOnly)}
			if r.Reject == "" {
				cells[0], cells[1] = r.Bound.String(), digits.Exact(milliseconds(r.Predicted))
				cells[3] = digits.Exact(r.Ratio())
			}
			rows[i] = slices.Concat(table.KeyCells(r.Problem, r.Config), table.LaunchCells(r.Config, axes), cells)
		}
		return table.WriteRows(s, f, header, rows)
	}
}

func (o *singles) object() singlesJSON {
	d := o.arch
	out := singlesJSON{d.Arch, d.Device, d.Model, d.ModelClass, o.data.Kernel, d.Rung, d.RanksOnly, o.data.Name,
		[]singleJSON{}, o.groups()}
	for i := range o.rows {
		r := &o.rows[i]
		row := singleJSON{
			Problem: r.Problem.Record(), Config: r.Config, Measured: milliseconds(r.Measured),
			SpillBytes: int(r.SpillBytes), Reason: r.Reject,
		}
		if r.Reject == "" {
			predicted, ratio := milliseconds(r.Predicted), r.Ratio()
			row.Bound, row.Predicted, row.Ratio = r.Bound.String(), &predicted, &ratio
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func (o *singles) table(s *table.Streams) {
	table.Lines(s, append(table.DeviceLines(o.arch), table.ModelLine(o.arch, o.data.Kernel),
		fmt.Sprintf("%-11s %s, one configuration per problem", "measured", o.data.Name))...)
	var rows [][]string
	for i := range o.rows {
		r := &o.rows[i]
		cells := []string{r.Problem.String(), r.Config.String(), none, none, r.Measured.String(), none, "no"}
		if r.Reject == "" {
			cells[2], cells[3], cells[5] = r.Bound.String(), r.Predicted.String(), fmt.Sprintf("%.2f", r.Ratio())
		}
		if r.SpillBytes > 0 {
			cells[6] = fmt.Sprintf("%d B", int(r.SpillBytes))
		}
		rows = append(rows, cells)
	}
	table.WriteTable(s, []string{"problem", "configuration", "bound", "predicted", "measured", "predicted ÷ measured",
		"spills"}, rows)
	s.Printf("\n")
	rows = rows[:0]
	for _, g := range o.groups() {
		rows = append(rows, []string{g.Name, strconv.Itoa(g.Count), fmt.Sprintf("%.2f", g.Median),
			fmt.Sprintf("%.2f", g.Lowest), fmt.Sprintf("%.2f", g.Highest)})
	}
	table.WriteTable(s, []string{"predicted ÷ measured", "kernels", "median", "lowest", "highest"}, rows)
}
