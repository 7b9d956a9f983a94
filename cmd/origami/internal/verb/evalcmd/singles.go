package evalcmd

import (
	"context"
	"math"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
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
}

// single is a kernel. The predicted numbers are `null` if the model rejects it.
type single struct {
	Problem   gemm.Record `json:"problem"` // what was computed, and the configuration
	Config    gemm.Config `json:"config"`
	Bound     string      `json:"bound,omitempty"`        // what limits it, as predicted
	Predicted ask.Number  `json:"predicted_ms" unit:"ms"` // the times
	Measured  float64     `json:"measured_ms" unit:"ms"`
	Ratio     ask.Number  `json:"predicted_by_measured" unit:"ratio"` // their ratio
	Spills    int         `json:"spill_bytes"`                        // per thread, as the compiler reports it
	Reason    arch.Reason `json:"reason,omitempty"`                   // why the model rejects it
}

type singlesGroup struct {
	Name string `json:"of"` // `all`, `without spills` or `with spills`
	score.Ratios
}

// singles scores a model on a data set with one configuration per problem.
func (o *Options) singles(ctx context.Context) (*answer, error) {
	rows, err := o.data.Rows(ctx, o.model, problems.Shapes(o.list.Problems)...)
	if err != nil {
		return nil, err
	}
	if o.Intervals {
		return o.intervals(ctx, score.EachAlone(rows))
	}
	d := o.model.Describe()
	out := &singles{Arch: d.Arch, Device: d.Device, Model: d.Model, Class: d.ModelClass, Kernel: o.data.Kernel,
		Rung: d.Rung, Ranks: d.RanksOnly, Data: o.data.Name, Rows: make([]single, len(rows))}
	for i := range rows {
		r := &rows[i]
		one := single{Problem: r.Problem.Record(), Config: r.Config, Measured: ask.Milliseconds(r.Measured),
			Predicted: ask.Number(math.NaN()), Ratio: ask.Number(math.NaN()), Spills: int(r.Resources.SpillBytes),
			Reason: r.Reject}
		if r.Reject == "" {
			one.Bound, one.Predicted = r.Bound.String(), ask.Number(ask.Milliseconds(r.Predicted))
			one.Ratio = ask.Number(r.Ratio())
		}
		out.Rows[i] = one
	}
	for i, counts := range []func(*score.Row) bool{
		func(*score.Row) bool { return true }, func(s *score.Row) bool { return s.Resources.SpillBytes == 0 },
		func(s *score.Row) bool { return s.Resources.SpillBytes > 0 },
	} {
		if r := score.RatiosOf(rows, counts); r.Count > 0 {
			out.Groups = append(out.Groups, singlesGroup{[]string{"all", "without spills", "with spills"}[i], r})
		}
	}
	key, group := show.Key[single], show.Key[singlesGroup]
	return &answer{
		value: func() any { return out },
		rows:  func(s *iostreams.Streams, f show.Format) error { return show.Write(s, f, out.Rows) },
		page: func(s *iostreams.Streams) {
			show.Lines(s, append(show.DeviceLines(d), show.ModelLine(d, out.Kernel))...)
			show.Line(s, "measured", "%s, one configuration per problem", out.Data)
			_ = show.Write(s, show.Table, out.Rows, key("problem"), key("config", "configuration"), key("bound").Or(none),
				key("predicted_ms", "predicted").Or(none), key("measured_ms", "measured"),
				key("predicted_by_measured", "predicted ÷ measured").Or(none), key("spill_bytes", "spills (B)"))
			s.Printf("\n")
			_ = show.Write(s, show.Table, out.Groups, group("of", "predicted ÷ measured"), group("count", "kernels"),
				group("median"), group("lowest"), group("highest"))
		},
	}, nil
}
