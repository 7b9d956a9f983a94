package laddercmd

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/unit"
)

// The JSON of `ladder`.
type (
	object struct {
		Arch       string          `json:"arch"`
		Device     string          `json:"device"`
		Model      string          `json:"model"`
		ModelClass arch.ModelClass `json:"model_class,omitempty"`
		Kernel     string          `json:"kernel"`
		Problem    gemm.Record     `json:"problem"`
		Rungs      []ask.Object    `json:"rungs"`
		Claims     []verdictJSON   `json:"claims"`
	}
	verdictJSON struct {
		Rung     string `json:"rung"`
		Claim    string `json:"claim"`
		Verdict  string `json:"verdict"`
		Evidence string `json:"evidence"`
	}
)

func (w *outcome) write(s *iostreams.Streams, f table.Format) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, w.object())
	case table.Table:
		w.table(s)
		return nil
	default:
		return w.columns().Write(s, f, w.entries)
	}
}

func (w *outcome) table(s *iostreams.Streams) {
	s.Printf("device      %s (%s)\n", w.desc.DeviceName, w.desc.ID())
	s.Printf("problem     %s\n\n", w.problem)
	_ = w.columns().Write(s, table.Table, w.entries) // an error of the screen shows when it is flushed
	s.Printf("\n")
	header, rows := w.claims()
	table.WriteTable(s, header, rows)
	for _, source := range w.sources() {
		s.Note("measured: " + source)
	}
}

// sources are where measured times are from, each once.
func (w *outcome) sources() (list []string) {
	for i := range w.entries {
		if source := w.entries[i].Source; source != "" && !slices.Contains(list, source) {
			list = append(list, source)
		}
	}
	return list
}

// The terms that are columns.
const (
	requested = "intensity_requested"
	atL2      = "intensity_l2"
	atDRAM    = "intensity_dram"
	conflicts = "conflict_degree"
)

// columns are the columns of the rungs: for programs full numbers in base units, each line with its problem and device.
func (w *outcome) columns() table.Columns[ladder.Entry] {
	type entry = ladder.Entry
	three := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	number := func(names string, of func(*entry) float64, people func(float64) string) table.Column[entry] {
		c := table.Opt(names, of, people)
		return c.CSV(func(e *entry) string {
			if v := of(e); digits.Finite(v) {
				return digits.SixDigits(v)
			}
			return ""
		})
	}
	// value is a number that follows from the terms, if there are any.
	value := func(of func(*entry) float64) func(*entry) float64 {
		return func(e *entry) float64 {
			if e.Values == nil {
				return math.NaN()
			}
			return of(e)
		}
	}
	term := func(name string) func(*entry) float64 { return value(func(e *entry) float64 { return e.Values[name] }) }
	measured := func(e *entry) float64 { return table.Positive(float64(e.Measured)) }
	predicted := value(func(e *entry) float64 { return float64(e.Predicted) })
	seconds := func(v float64) string { return unit.Seconds(v).String() }
	ratio := func(e *entry) float64 { return predicted(e) / measured(e) }
	// instead is the rung that computes what one cannot.
	instead := func(e *entry) string {
		if e.Rejected == "" {
			return ""
		}
		return e.Rung.Instead
	}
	limit := func(e *entry) string {
		if e.Values == nil {
			return ""
		}
		most, _ := ladder.Dominant(w.ladder.Costs, e.Values)
		return most.Column()
	}

	c := table.Columns[entry]{table.Group(gemm.Columns, func(*entry) []string { return w.problem.Cells() }).In(table.CSV),
		table.Const[entry]("-|arch|-", w.desc.Arch), table.Const[entry]("-|device|-", w.desc.Device),
		table.Const[entry]("-|model|-", w.desc.Model), table.Const[entry]("-|kernel|-", w.ladder.Family),
		table.Col("rung||-", func(e *entry) string { return e.Rung.Name }),
		table.Text("rung", func(e *entry) string {
			if e.Rung.Label == "" {
				return e.Rung.Name
			}
			return fmt.Sprintf("%s (%s)", e.Rung.Name, e.Rung.Label)
		}),
		table.Col("label||-", func(e *entry) string { return e.Rung.Label }).Omit(),
		table.Col("doc|-", func(e *entry) string { return e.Rung.Doc }),
		table.Col("config||-", func(e *entry) *gemm.Config {
			if e.Rung.Config == (gemm.Config{}) {
				return nil
			}
			return &e.Rung.Config
		}).CSV(func(e *entry) string {
			if e.Values == nil {
				return ""
			}
			return e.Rung.Config.String()
		}),
		table.Col("rejected||-", func(e *entry) string { return e.Rejected }).Omit(),
		table.Col("detail||-", func(e *entry) string { return e.Detail }).Omit(),
		table.Col("instead||-", instead).Omit(),
		number("flop_per_requested_byte||FLOP/B asked", term(requested), three),
		number("flop_per_l2_byte||at L2", term(atL2), three),
		number("flop_per_dram_byte||at DRAM", term(atDRAM), three),
		number("conflict_degree||-", term(conflicts), nil),
		table.Opt("-|-|conflicts", func(e *entry) float64 { return table.Positive(term(conflicts)(e)) }, three),
	}
	for _, cost := range w.ladder.Costs {
		c = append(c, number("-|"+cost.Column()+"_seconds|-",
			value(func(e *entry) float64 { return cost.Seconds(e.Values, w.desc.Clock) }), nil))
	}
	c = append(c,
		table.Col("cost_seconds|-", func(e *entry) map[string]float64 {
			if e.Values == nil {
				return nil
			}
			costs := map[string]float64{}
			for _, c := range w.ladder.Costs {
				costs[c.Column()] = c.Seconds(e.Values, w.desc.Clock)
			}
			return costs
		}).Omit(),
		number("predicted_seconds||predicted", predicted, seconds),
		table.Opt("-|-|rate", func(e *entry) float64 { return float64(w.rate(e.Predicted)) }, func(v float64) string {
			return digits.Rate(unit.FlopsPerSecond(v), w.problem.DType)
		}),
		table.Col("limited_by||-", limit).Omit(),
		table.Text("limited by", func(e *entry) string {
			switch {
			case e.Rejected != "":
				return "does not fit: " + cmp.Or(e.Detail, e.Rejected) + "; " + cmp.Or(instead(e), "no rung") + " takes over"
			case e.Values == nil:
				return ""
			}
			most, share := ladder.Dominant(w.ladder.Costs, e.Values)
			return fmt.Sprintf("%s (%s)", most.Name, digits.Percent(share))
		}),
		number("measured_seconds||measured", measured, seconds),
		table.Opt("predicted_over_measured|-|predicted ÷ measured", ratio, func(v float64) string {
			return fmt.Sprintf("%.2f", v)
		}),
		table.Col("source||-", func(e *entry) string { return e.Source }).Omit())
	if w.terms {
		for _, cost := range w.ladder.Costs {
			c = append(c, table.Opt("-|-|"+cost.Name, value(func(e *entry) float64 {
				return cost.Seconds(e.Values, w.desc.Clock) / float64(e.Predicted)
			}), digits.Percent))
		}
	}
	return c
}

func (w *outcome) claims() (header []string, rows [][]string) {
	for _, j := range w.verdicts {
		rows = append(rows, []string{j.Verdict.String(), j.Rung + " " + j.Text, j.Evidence})
	}
	return []string{"verdict", "claim", "evidence"}, rows
}

func (w *outcome) object() object {
	out := object{Arch: w.desc.Arch, Device: w.desc.Device, Model: w.desc.Model, ModelClass: w.desc.ModelClass,
		Kernel: w.ladder.Family, Problem: w.problem.Record(), Rungs: w.columns().Objects(w.entries)}
	for _, j := range w.verdicts {
		out.Claims = append(out.Claims, verdictJSON{j.Rung, j.Text, j.Verdict.String(), j.Evidence})
	}
	return out
}
