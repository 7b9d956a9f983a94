package logiccmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/logic"
)

func newShow(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "show FILE",
		Short:   "Show a library logic",
		Long:    "Show what a library logic is for, how it answers, and its kernels, the most used first.",
		Example: "  origami logic show h200.json",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := read(cmd.Context(), args)
			if err != nil {
				return err
			}
			return show(f, l)
		},
	}
}

func show(f *session.Factory, l *logic.Logic) error {
	order, counts := l.Wins()
	format := render.FormatOf(f)
	if format == render.JSON {
		return render.JSONLine(f.Streams, summary(l))
	}
	if format == render.Table {
		heading(f, l)
	}
	rows := make([][]string, len(order))
	for i, k := range order {
		rows[i] = []string{strconv.Itoa(k), l.Kernels[k].Name, strconv.Itoa(counts[k])}
	}
	return render.WriteRows(f.Streams, format, []string{"number", "kernel", "used"}, rows)
}

// summaryJSON says what a logic is.
type summaryJSON struct {
	Arch     string `json:"arch"`
	Device   string `json:"device"`
	Kernel   string `json:"kernel"`
	Type     string `json:"type"`
	Source   string `json:"source"`
	Unit     string `json:"unit"`
	Kernels  int    `json:"kernels"`
	Exact    int    `json:"exact"`
	Leaves   int    `json:"leaves"`
	Fallback string `json:"fallback"`
	Library  string `json:"library_type,omitempty"`
	Metric   string `json:"metric,omitempty"`

	Regret []regretJSON `json:"regret,omitempty"`
}

type regretJSON struct {
	Layer      string        `json:"layer"`
	Sizes      int           `json:"sizes"`
	Unanswered int           `json:"unanswered"`
	Mean       render.Number `json:"mean"`
	Worst      render.Number `json:"worst"`
}

func summary(l *logic.Logic) *summaryJSON {
	s := &summaryJSON{Arch: l.Arch, Device: l.Device, Kernel: l.Family, Type: l.Type.String(), Source: l.Source,
		Unit: l.Unit, Kernels: len(l.Kernels), Exact: len(l.Exact), Leaves: l.Leaves(), Fallback: string(l.Fallback)}
	if t := l.Tensile; t != nil {
		s.Library, s.Metric = t.Library, t.Metric
	}
	return s
}

func heading(f *session.Factory, l *logic.Logic) {
	s := f.Streams
	on := l.Arch
	if l.Device != "" {
		on += "@" + l.Device
	}
	render.Line(s, "logic", "%s on %s, kernel family %s", l.Type, on, l.Family)
	render.Line(s, "source", "%s", l.Source)
	render.Line(s, "layers", "%s, %s, then the %s", render.Plural(len(l.Exact), "exact size", "exact sizes"),
		render.Plural(l.Leaves(), "leaf of ranges", "leaves of ranges"),
		map[logic.Fallback]string{logic.Nearest: "nearest size", logic.Model: "model"}[l.Fallback])
	render.Line(s, "kernels", "%d", len(l.Kernels))
	unit := l.Unit
	if unit == "" {
		unit = "unit unknown: the file does not say it"
	}
	render.Line(s, "speeds", "%s", unit)
	if t := l.Tensile; t != nil && (t.Library != "" || t.Metric != "") {
		render.Line(s, "file says", "%s", fmt.Sprintf("library type %q, metric %q", t.Library, t.Metric))
	}
}

type evalOptions struct{ measured }

func newEval(f *session.Factory) *cobra.Command {
	o := &evalOptions{measured{factory: f}}
	cmd := &cobra.Command{
		Use:   "eval FILE --arch ARCH",
		Short: "Hold a library logic against measured times",
		Long: "Print how much slower the kernels of a library logic are than the fastest measured ones: as it is\n" +
			"used, by its ranges alone, and by the nearest size other than the size itself.",
		Example: "  origami logic eval h200.json --arch sm90@h200\n" +
			"  origami logic eval h200.json --arch sm90@h200 --records ./my-sweep --json",
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.register(cmd)
	return cmd
}

func (o *evalOptions) run(ctx context.Context, args []string) error {
	l, err := read(ctx, args)
	if err != nil {
		return err
	}
	table, d, data, err := o.table(ctx)
	if err != nil {
		return err
	}
	if l.Arch != d.Arch || l.Device != d.Device || l.Family != data.Kernel {
		return diag.Inputf("the logic is for %s on %s@%s, and the times are of %s on %s", l.Family, l.Arch, l.Device,
			data.Kernel, d.ID()).At("%s", args[0]).Do("use measurements of its kernels")
	}
	base, err := o.query.Base(o.factory.Settings.DType)
	if err != nil {
		return err
	}
	base.M, base.N, base.K = 1, 1, 1
	if err := l.Answers(&base); err != nil {
		return diag.Within(args[0], err)
	}
	return report(o.factory, l, regrets(l, table))
}

type regret struct {
	layer string
	logic.Regret
}

func regrets(l *logic.Logic, t *logic.Table) []regret {
	return []regret{{"as it is used", l.Regret(t, logic.Whole)}, {"ranges alone", l.Regret(t, logic.RangesOnly)},
		{"nearest other size", l.Regret(t, logic.NearestOther)}}
}

// report writes the regret of a logic.
func report(f *session.Factory, l *logic.Logic, list []regret) error {
	format := render.FormatOf(f)
	if format == render.JSON {
		s := summary(l)
		for _, r := range list {
			s.Regret = append(s.Regret, regretJSON{r.layer, r.Sizes, r.Unanswered, render.Number(r.Mean),
				render.Number(r.Worst)})
		}
		return render.JSONLine(f.Streams, s)
	}
	share := render.Exact
	if format == render.Table {
		heading(f, l)
		f.Streams.Printf("\n")
		share = render.Percent
	}
	cell := func(v float64) string {
		if !session.Finite(v) {
			return ""
		}
		return share(v)
	}
	rows := make([][]string, len(list))
	for i, r := range list {
		rows[i] = []string{r.layer, strconv.Itoa(r.Sizes), strconv.Itoa(r.Unanswered), cell(r.Mean), cell(r.Worst)}
	}
	header := []string{"layer", "sizes", "unanswered", "mean regret", "worst regret"}
	return render.WriteRows(f.Streams, format, header, rows)
}
