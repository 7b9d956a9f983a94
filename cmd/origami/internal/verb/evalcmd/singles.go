package evalcmd

import (
	"context"
	"fmt"
	"math"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
)

// singles is the answer of `eval --json` for a data set with one configuration per problem: how far a model is from the
// measured times.
type singles struct {
	Arch   string          `json:"arch"` // as in `select`
	Device string          `json:"device"`
	Model  string          `json:"model"`
	Class  arch.ModelClass `json:"model_class,omitempty"`
	Kernel string          `json:"kernel"`
	Rung   arch.Rung       `json:"rung"`
	Ranks  bool            `json:"ranks_only,omitempty"`
	Data   string          `json:"records"` // the measurements
	Rows   []single        `json:"kernels"` // the kernels
	Groups []singlesGroup  `json:"summary"` // of predicted ÷ measured

	desc *arch.Description
}

// single is a kernel. The predicted numbers are `null` if the model rejects it.
type single struct {
	Problem   gemm.Record `json:"problem"` // what was computed, and the configuration
	Config    gemm.Config `json:"config"`
	Bound     string      `json:"bound,omitempty"` // what limits it, as predicted
	Predicted ask.Number  `json:"predicted_ms"`    // the times
	Measured  float64     `json:"measured_ms"`
	Ratio     ask.Number  `json:"predicted_by_measured"` // their ratio
	Spills    int         `json:"spill_bytes"`           // per thread, as the compiler reports it
	Reason    arch.Reason `json:"reason,omitempty"`      // why the model rejects it
}

type singlesGroup struct {
	Name    string  `json:"of"`     // `all`, `without spills` or `with spills`
	Count   int     `json:"count"`  // how many kernels
	Median  float64 `json:"median"` // their ratios
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
	d := o.model.Describe()
	out := &singles{Arch: d.Arch, Device: d.Device, Model: d.Model, Class: d.ModelClass, Kernel: o.data.Kernel,
		Rung: d.Rung, Ranks: d.RanksOnly, Data: o.data.Name, Rows: make([]single, len(rows)), Groups: groups(rows), desc: d}
	for i := range rows {
		r := &rows[i]
		one := single{Problem: r.Problem.Record(), Config: r.Config, Measured: ask.Milliseconds(r.Measured),
			Predicted: ask.Number(math.NaN()), Ratio: ask.Number(math.NaN()), Spills: int(r.SpillBytes), Reason: r.Reject}
		if r.Reject == "" {
			one.Bound, one.Predicted = r.Bound.String(), ask.Number(ask.Milliseconds(r.Predicted))
			one.Ratio = ask.Number(r.Ratio())
		}
		out.Rows[i] = one
	}
	return out, err
}

// groups sums up the ratios of all kernels, of those that spill and of the others.
func groups(rows []score.Single) []singlesGroup {
	var out []singlesGroup
	for _, g := range []struct {
		name   string
		counts func(*score.Single) bool
	}{
		{"all", func(*score.Single) bool { return true }},
		{"without spills", func(s *score.Single) bool { return s.SpillBytes == 0 }},
		{"with spills", func(s *score.Single) bool { return s.SpillBytes > 0 }},
	} {
		if r := score.SummariseSingles(rows, g.counts); r.Count > 0 {
			out = append(out, singlesGroup{g.name, r.Count, r.Median, r.Least, r.Large})
		}
	}
	return out
}

func (o *singles) write(s *iostreams.Streams, f table.Format) error {
	text := show.Text[single]
	err := show.Answer(s, f, o, func() {
		table.Lines(s, append(table.DeviceLines(o.desc), table.ModelLine(o.desc, o.Kernel),
			fmt.Sprintf("%-11s %s, one configuration per problem", "measured", o.Data))...)
	}, o.Rows, show.Key[single]("problem"), show.Key[single]("config", "configuration"), show.Key[single]("bound").Or(none),
		text("predicted", func(r *single) string { return milliseconds(float64(r.Predicted)) }).Or(none),
		text("measured", func(r *single) string { return milliseconds(r.Measured) }),
		text("predicted ÷ measured", func(r *single) string { return ratioText(float64(r.Ratio)) }),
		text("spills", func(r *single) string {
			if r.Spills == 0 {
				return "no"
			}
			return fmt.Sprintf("%d B", r.Spills)
		}))
	if err != nil || f != table.Table {
		return err
	}
	s.Printf("\n")
	group := func(header string, value func(*singlesGroup) float64) show.Column[singlesGroup] {
		return show.Text(header, func(g *singlesGroup) string { return ratioText(value(g)) })
	}
	return show.Write(s, f, o.Groups, show.Key[singlesGroup]("of", "predicted ÷ measured"),
		show.Key[singlesGroup]("count", "kernels"), group("median", func(g *singlesGroup) float64 { return g.Median }),
		group("lowest", func(g *singlesGroup) float64 { return g.Lowest }),
		group("highest", func(g *singlesGroup) float64 { return g.Highest }))
}
