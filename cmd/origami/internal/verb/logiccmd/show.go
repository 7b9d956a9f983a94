package logiccmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
)

func newShow(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "show FILE",
		Short:   "Show a library logic",
		Long:    "Show what a library logic is for, how it answers, and its kernels, the most used first.",
		Example: "  origami logic show h200.json",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := session.ReadLogic(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return show(f, l)
		},
	}
}

func show(f *session.Factory, l *tensile.Logic) error {
	order, counts := l.Wins()
	format := f.Format()
	if format == table.JSON {
		return table.JSONLine(f.Streams, summary(l))
	}
	if format == table.Table {
		heading(f, l)
	}
	return table.Columns[int]{
		table.Col("number", func(k *int) int { return *k }),
		table.Col("kernel", func(k *int) string { return l.Kernels[*k].Name }),
		table.Col("used", func(k *int) int { return counts[*k] }),
	}.Write(f.Streams, format, order)
}

// summaryJSON says what a logic is.
type summaryJSON struct {
	Arch     string `json:"arch"` // what the logic is for
	Device   string `json:"device"`
	Kernel   string `json:"kernel"`  // the kernel family
	Type     string `json:"type"`    // Tensile's name
	Source   string `json:"source"`  // what it was built from
	Unit     string `json:"unit"`    // the unit of the speeds
	Kernels  int    `json:"kernels"` // how many kernels, exact sizes and leaves there are
	Exact    int    `json:"exact"`
	Leaves   int    `json:"leaves"`
	Fallback string `json:"fallback"`               // what answers elsewhere: `nearest` or `model`
	Library  string `json:"library_type,omitempty"` // of a file of Tensile
	Metric   string `json:"metric,omitempty"`

	// but for `show`: by `layer`, `sizes`, `unanswered`, `mean` and `worst` (`null` without sizes)
	Regret []ask.Object `json:"regret,omitempty"`
}

func summary(l *tensile.Logic) *summaryJSON {
	s := &summaryJSON{Arch: l.Arch, Device: l.Device, Kernel: l.Family, Type: l.Type.String(), Source: l.Source,
		Unit: l.Unit, Kernels: len(l.Kernels), Exact: len(l.Exact), Leaves: l.Leaves(), Fallback: string(l.Fallback)}
	if t := l.Parts; t != nil {
		s.Library, s.Metric = t.Library, t.Metric
	}
	return s
}

func heading(f *session.Factory, l *tensile.Logic) {
	s := f.Streams
	on := l.Arch
	if l.Device != "" {
		on += "@" + l.Device
	}
	table.Line(s, "logic", "%s on %s, kernel family %s", l.Type, on, l.Family)
	table.Line(s, "source", "%s", l.Source)
	table.Line(s, "layers", "%s, %s, then the %s", digits.Plural(len(l.Exact), "exact size", "exact sizes"),
		digits.Plural(l.Leaves(), "leaf of ranges", "leaves of ranges"),
		map[logic.Fallback]string{logic.Nearest: "nearest size", logic.Model: "model"}[l.Fallback])
	table.Line(s, "kernels", "%d", len(l.Kernels))
	unit := l.Unit
	if unit == "" {
		unit = "unit unknown: the file does not say it"
	}
	table.Line(s, "speeds", "%s", unit)
	if t := l.Parts; t != nil && (t.Library != "" || t.Metric != "") {
		table.Line(s, "file says", "%s", fmt.Sprintf("library type %q, metric %q", t.Library, t.Metric))
	}
}

type regret struct {
	layer string
	logic.Regret
}

func regrets(l *tensile.Logic, t *logic.Table) []regret {
	return []regret{{"as it is used", l.Regret(t, logic.Whole)}, {"ranges alone", l.Regret(t, logic.RangesOnly)},
		{"nearest other size", l.Regret(t, logic.NearestOther)}}
}

func regretColumns[T any](of func(*T) *logic.Regret) table.Columns[T] {
	return table.Columns[T]{
		table.Col("sizes", func(x *T) int { return of(x).Sizes }),
		table.Col("unanswered", func(x *T) int { return of(x).Unanswered }),
		table.Opt("mean|mean regret", func(x *T) float64 { return of(x).Mean }, digits.Percent),
		table.Opt("worst|worst regret", func(x *T) float64 { return of(x).Worst }, digits.Percent),
	}
}

func report(f *session.Factory, l *tensile.Logic, list []regret) error {
	columns := append(table.Columns[regret]{table.Col("layer", func(r *regret) string { return r.layer })},
		regretColumns(func(r *regret) *logic.Regret { return &r.Regret })...)
	format := f.Format()
	switch format {
	case table.JSON:
		s := summary(l)
		s.Regret = columns.Objects(list)
		return table.JSONLine(f.Streams, s)
	case table.Table:
		heading(f, l)
		f.Streams.Printf("\n")
	case table.CSV, table.TSV:
	}
	return columns.Write(f.Streams, format, list)
}
