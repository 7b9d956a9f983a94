package logiccmd

import (
	"fmt"

	"github.com/spf13/cobra"

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

	// of `build`: what such libraries lose on sizes left out, as of `logic eval --folds`
	Regret []logic.Trial `json:"regret,omitempty"`
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

// report shows a logic that was written, with what libraries like it lose.
func report(f *session.Factory, l *tensile.Logic, trials []logic.Trial) error {
	s := summary(l)
	s.Regret = trials
	return show.Answer(f.Streams, f.Format(), s, func() {
		heading(f, l)
		f.Streams.Printf("\n")
	}, s.Regret, trialColumns()...)
}
