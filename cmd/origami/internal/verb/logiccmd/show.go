package logiccmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
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
			return showLogic(f, l)
		},
	}
}

func showLogic(f *session.Factory, l *tensile.Logic) error {
	order, counts := l.Wins()
	rows := make([]used, len(order))
	for i, k := range order {
		rows[i] = used{k, l.Kernels[k].Name, counts[k]}
	}
	key := show.Key[used]
	return show.Answer(f.Streams, f.Format(), summary(l), func() { heading(f, l) }, rows, key("number"), key("kernel"),
		key("used"))
}

// used is a kernel of a logic.
type used struct {
	Number int    `json:"number"` // its place in the logic, and its name
	Kernel string `json:"kernel"`
	Used   int    `json:"used"` // the sizes and leaves that have it
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

	// but for `show`, how much slower its kernels are than the fastest
	Regret []regret `json:"regret,omitempty"`
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

// regret is how much slower the kernels of a layer are than the fastest.
type regret struct {
	Layer string `json:"layer"` // how it answers
	slower
}

// slower is a time ÷ the time of the fastest kernel − 1, over sizes.
type slower struct {
	Sizes      int        `json:"sizes"` // how many, and how many have no answer
	Unanswered int        `json:"unanswered"`
	Mean       ask.Number `json:"mean" unit:"fraction"` // the mean and the largest
	Worst      ask.Number `json:"worst" unit:"fraction"`
}

func slowerOf(r logic.Regret) slower {
	return slower{r.Sizes, r.Unanswered, ask.Number(r.Mean), ask.Number(r.Worst)}
}

func regrets(l *tensile.Logic, t *logic.Table) []regret {
	return []regret{{"as it is used", slowerOf(l.Regret(t, logic.Whole))},
		{"ranges alone", slowerOf(l.Regret(t, logic.RangesOnly))},
		{"nearest other size", slowerOf(l.Regret(t, logic.NearestOther))}}
}

// slowerColumns are what people see of a regret.
func slowerColumns[T any](first ...show.Column[T]) []show.Column[T] {
	return append(first, show.Key[T]("sizes"), show.Key[T]("unanswered"), show.Key[T]("mean", "mean regret"),
		show.Key[T]("worst", "worst regret"))
}

func report(f *session.Factory, l *tensile.Logic, list []regret) error {
	s := summary(l)
	s.Regret = list
	return show.Answer(f.Streams, f.Format(), s, func() {
		heading(f, l)
		f.Streams.Printf("\n")
	}, list, slowerColumns(show.Key[regret]("layer"))...)
}
