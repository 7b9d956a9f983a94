// Package laddercmd is `origami ladder`: the rungs of a ladder of SGEMM kernels on a device, what limits each, and a
// verdict on each public claim about them.
package laddercmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
)

// Options are what the command line says.
type Options struct {
	Factory *session.Factory
	M, N, K int
	// Terms asks for every cost in the table.
	Terms   bool
	Records string // the folder of a data set
}

// New returns the command.
func New(f *session.Factory) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "ladder [--arch ARCH] [-m SIZE -n SIZE -k SIZE]",
		Short: "Put the kernels of an SGEMM ladder side by side",
		Long: "Show the rungs of the SGEMM ladder, from one thread per element of C to register tiles and tensor\n" +
			"cores: FLOP per byte requested, from the L2 and from DRAM; the degree of bank conflicts; the\n" +
			"predicted time and its largest cost; the measured time of --records, a shipped data set or a\n" +
			"publication. Then come verdicts on the claims of a public ladder: true, nearly or false. The\n" +
			"default device is the RTX 3060 Laptop, which the claims are about. docs/ladder.md has kernels,\n" +
			"claims and sources.",
		Example: `  origami ladder
  origami ladder --arch sm86@a6000 -m 4096 -n 4096 -k 4096 --terms
  origami --arch sm90@h200 bench --kernel sgemm --dtype fp32 --executor cuda --records sgemm-h200
  origami --arch sm90@h200 ladder --records sgemm-h200 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&o.M, "m", "m", 4096, "rows of A and C")
	flags.IntVarP(&o.N, "n", "n", 4096, "columns of B and C")
	flags.IntVarP(&o.K, "k", "k", 4096, "columns of A, rows of B")
	flags.BoolVar(&o.Terms, "terms", false, "show every cost in the table")
	flags.StringVar(&o.Records, "records", "", "`FOLDER` of a data set of the family: its times come first")
	return cmd
}

// Run answers.
func Run(ctx context.Context, o *Options) error {
	l, err := o.Factory.Ladder(ctx)
	if err != nil {
		return err
	}
	p := gemm.New(o.M, o.N, o.K)
	p.DType, p.Out = l.Types.In, l.Types.Out
	if err := p.Validate(); err != nil {
		return err
	}
	p = p.Canonical() // as records have it
	a, err := o.open(ctx, l.Family)
	if err != nil {
		return err
	}
	data, err := o.records(ctx, a.Describe(), l.Family)
	if err != nil {
		return err
	}
	answer, err := ask.LadderOf(ctx, a, l, p, data)
	if err != nil {
		return err
	}
	out := &outcome{Ladder: answer, model: a, problem: p, terms: o.Terms, costs: map[string]string{}}
	for _, c := range l.Costs {
		out.costs[c.Column()] = c.Name
	}
	return out.write(o.Factory.Streams, o.Factory.Format())
}

func (o *Options) open(ctx context.Context, family string) (arch.Architecture, error) {
	s := &o.Factory.Settings
	if s.Kernel != "" && s.Kernel != family {
		return nil, diag.Inputf("the rungs are kernels of the family %s", family).At("kernel in the settings").
			Do("leave the setting out")
	}
	s.Kernel = family
	open := func() (arch.Architecture, error) {
		return o.Factory.Beside(timing.Events, nil, func() (arch.Architecture, error) { return o.Factory.Architecture(ctx) })
	}
	a, err := open()
	if err != nil {
		return nil, err
	}
	return o.Factory.Nearby(residual.None, a, open) // rungs are no picks
}

// records returns the measurements of --records, those that are shipped, or nil.
func (o *Options) records(ctx context.Context, d *arch.Description, family string) (*dataset.Dataset, error) {
	data, err := datastore.Folder(ctx, d, family, "--records", o.Records)
	if o.Records == "" && diag.KindOf(err) == diag.Input {
		return nil, nil // of most devices there is none
	}
	return data, err
}

// outcome is an answer to be shown.
type outcome struct {
	*ask.Ladder
	model   arch.Architecture
	problem gemm.Problem
	terms   bool              // show every cost
	costs   map[string]string // names for people
}

func (w *outcome) write(s *iostreams.Streams, f show.Format) error {
	rows := w.rows(s, f)
	switch f {
	case show.JSON:
		return show.JSONLine(s, w.Ladder)
	case show.Table:
		s.Printf("device      %s (%s)\n", w.model.Describe().DeviceName, w.model.Describe().ID())
		s.Printf("problem     %s\n\n", w.problem)
		_ = rows.All(w.Rungs) // an error of the screen shows when it is flushed
		s.Printf("\n")
		header, claims := w.claims()
		show.Grid{Header: header, Rows: claims}.Write(s)
		for _, source := range w.sources() {
			s.Note("measured: " + source)
		}
		return nil
	default:
		return rows.All(w.Rungs)
	}
}

func (w *outcome) rows(s *iostreams.Streams, f show.Format) *show.Rows[ask.Rung] {
	type rung = ask.Rung
	columns := []show.Column[rung]{
		show.Text("rung", func(r *rung) string {
			if r.Label == "" {
				return r.Name
			}
			return fmt.Sprintf("%s (%s)", r.Name, r.Label)
		}),
		show.Key[rung]("flop_per_requested_byte", "FLOP/B asked"), show.Key[rung]("flop_per_l2_byte", "at L2"),
		show.Key[rung]("flop_per_dram_byte", "at DRAM"),
		show.Number("conflicts", func(r *rung) float64 { return float64(r.Conflicts) }, digits.ThreeDigits),
		show.Key[rung]("predicted_seconds", "predicted"),
		show.Number("rate", func(r *rung) float64 { return w.problem.Flops() / float64(r.Predicted) },
			func(v float64) string { return digits.Rate(unit.FlopsPerSecond(v), w.problem.DType) }),
		show.Text("limited by", func(r *rung) string {
			share, ok := r.CostShare(r.Limit)
			switch {
			case r.Rejected != "":
				return "does not fit: " + cmp.Or(r.Detail, r.Rejected) + "; " + cmp.Or(r.Instead, "no rung") + " takes over"
			case !ok:
				return ""
			}
			return fmt.Sprintf("%s (%s)", w.costs[r.Limit], digits.Percent(share))
		}),
		show.Key[rung]("measured_seconds", "measured"),
		show.Key[rung]("predicted_over_measured", "predicted ÷ measured"),
	}
	if i := slices.IndexFunc(w.Rungs, func(r rung) bool { return r.Costs != nil }); i >= 0 && w.terms {
		for _, cost := range w.Rungs[i].Costs {
			columns = append(columns, show.Text(w.costs[cost.Name], func(r *rung) string {
				share, ok := r.CostShare(cost.Name)
				if !ok {
					return ""
				}
				return digits.Percent(share)
			}))
		}
	}
	return show.NewRows(s, f, columns...)
}

// sources are where measured times are from, each once.
func (w *outcome) sources() (list []string) {
	for i := range w.Rungs {
		if source := w.Rungs[i].Source; source != "" && !slices.Contains(list, source) {
			list = append(list, source)
		}
	}
	return list
}

func (w *outcome) claims() (header []string, rows [][]string) {
	for _, v := range w.Claims {
		rows = append(rows, []string{v.Verdict, v.Rung + " " + v.Claim, v.Evidence})
	}
	return []string{"verdict", "claim", "evidence"}, rows
}
