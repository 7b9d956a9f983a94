package comparecmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// object is `compare --json`.
type object struct {
	Problem gemm.Record      `json:"problem"`
	Model   string           `json:"model"`
	Entries []any            `json:"entries"`
	Ratio   []*render.Number `json:"ratio_to_first"`
}

// entry is the JSON of a side that answered, failed that of one with an error.
type entry struct {
	render.Object
	Terms render.Fields `json:"terms"`
}

type failed struct {
	Arch   string              `json:"arch"`
	Device string              `json:"device"`
	Error  iostreams.JSONError `json:"error"`
}

func write(s *iostreams.Streams, f render.Format, c *Comparison) error {
	switch f {
	case render.JSON:
		return writeJSON(s, c)
	case render.CSV, render.TSV:
		return writeRecords(s, f, c)
	default:
		writeTable(s, c)
		return nil
	}
}

func writeJSON(s *iostreams.Streams, c *Comparison) error {
	o := object{Problem: c.Problem.Record(), Model: c.Model}
	for i := range c.Sides {
		side := &c.Sides[i]
		if side.Err != nil {
			o.Entries = append(o.Entries, failed{side.Target.Arch.ID, side.Target.Device.ID,
				iostreams.AsJSON(side.Err)})
		} else {
			o.Entries = append(o.Entries, entry{render.ObjectOf(side.Answer, side.Best()),
				render.TermsJSON(side.Answer, side.Best())})
		}
		var ratio *render.Number
		if r, ok := c.Ratio(i); ok {
			n := render.Number(r)
			ratio = &n
		}
		o.Ratio = append(o.Ratio, ratio)
	}
	return render.JSONLine(s, o)
}

// writeRecords writes a row per quantity and architecture.
func writeRecords(s *iostreams.Streams, f render.Format, c *Comparison) error {
	r := render.NewDelimited(s, f, []string{"arch", "device", "kind", "name", "common", "value", "unit", "share"})
	for i := range c.Sides {
		side := &c.Sides[i]
		row := func(kind, name, common, value, unit, share string) error {
			return r.Write([]string{side.Target.Arch.ID, side.Target.Device.ID, kind, name, common, value, unit, share})
		}
		if side.Err != nil {
			if err := row("error", "error", "", side.Err.Error(), "", ""); err != nil {
				return err
			}
			continue
		}
		best := side.Best()
		o := render.ObjectOf(side.Answer, best)
		for _, cells := range [][3]string{
			{"model", o.Model, ""}, {"kernel", o.Kernel, ""}, {"rung", string(o.Rung), ""},
			{"config", best.Config.String(), ""},
			{"cycles", render.Exact(o.Predicted.Cycles), "cycles"}, {"seconds", render.Exact(o.Predicted.Seconds), "s"},
			{"tflops", render.Exact(o.Predicted.TFLOPS), render.TeraRate(c.Problem.DType)}, {"bound", o.Predicted.Bound, ""},
			{"outside", strings.Join(o.Outside, "; "), ""},
		} {
			if err := row("answer", cells[0], "", cells[1], cells[2], ""); err != nil {
				return err
			}
		}
		if ratio, ok := c.Ratio(i); ok {
			if err := row("answer", "ratio_to_first", "", render.Exact(ratio), "1", ""); err != nil {
				return err
			}
		}
		for j, t := range side.Arch.Terms {
			share := ""
			if v, ok := side.Share(best, j); ok {
				share = render.Exact(v)
			}
			if err := row("term", t.Name, t.CommonName(), render.Exact(best.Terms[j]), t.Unit, share); err != nil {
				return err
			}
		}
	}
	return r.Close()
}

const absent = "–"

// comparedRows are the rows of a table with a column per side.
type comparedRows struct {
	sides []Side
	cells [][]string
}

// add adds a row. A side that failed has no value in it.
func (r *comparedRows) add(name string, cell func(i int, side *Side, best *session.Entry) string) {
	cells := []string{name}
	for i := range r.sides {
		side := &r.sides[i]
		if side.Err != nil {
			cells = append(cells, absent)
			continue
		}
		cells = append(cells, cell(i, side, side.Best()))
	}
	r.cells = append(r.cells, cells)
}

func writeTable(s *iostreams.Streams, c *Comparison) {
	model := c.Model
	if model == "" {
		model = "each architecture's best, as they have none in common"
	}
	s.Printf("%-11s %s\n%-11s %s\n", "problem", c.Problem, "model", model)
	header := []string{""}
	for i := range c.Sides {
		header = append(header, c.Sides[i].Target.ID())
	}
	rows := &comparedRows{sides: c.Sides}
	row := rows.add
	row("device", func(_ int, side *Side, _ *session.Entry) string { return side.Arch.DeviceName })
	row("units", func(_ int, side *Side, _ *session.Entry) string {
		return fmt.Sprintf("%d %ss at %s", side.Arch.Units, side.Arch.UnitName, side.Arch.Clock)
	})
	if c.Model == "" {
		row("model", func(_ int, side *Side, _ *session.Entry) string { return side.Arch.Model })
	}
	row("kernel", func(_ int, side *Side, _ *session.Entry) string { return side.Kernel })
	row("rung", func(_ int, side *Side, _ *session.Entry) string { return string(side.Arch.Rung) })
	row("validated", func(_ int, side *Side, best *session.Entry) string {
		return render.ValidatedCell(side.Answer, best)
	})
	row("pick", func(_ int, _ *Side, best *session.Entry) string { return best.Config.String() })
	row("time", func(_ int, side *Side, best *session.Entry) string { return side.Seconds(best).String() })
	row("time ÷ first", func(i int, _ *Side, _ *session.Entry) string {
		if r, ok := c.Ratio(i); ok {
			return fmt.Sprintf("%.3f", r)
		}
		return absent
	})
	row("rate", func(_ int, side *Side, best *session.Entry) string {
		return render.Rate(side.Rate(best), c.Problem.DType)
	})
	row("of peak", func(_ int, side *Side, best *session.Entry) string {
		if share, ok := side.PeakShare(best); ok {
			return render.Percent(share)
		}
		return absent
	})
	row("bound", func(_ int, _ *Side, best *session.Entry) string { return best.Estimate.Bound.String() })
	row("of DRAM's peak", func(_ int, side *Side, best *session.Entry) string {
		if share := side.Roofline(best).DRAMShare; share > 0 {
			return render.Percent(share)
		}
		return absent
	})
	row("occupancy", func(_ int, side *Side, best *session.Entry) string {
		return render.Waves(side.Answer, side.Roofline(best))
	})

	entering := make([][]bool, len(c.Sides))
	for i := range c.Sides {
		if side := &c.Sides[i]; side.Err == nil {
			entering[i] = side.Entering(side.Best())
		}
	}
	var headings []int
	for _, section := range sections {
		names := termNames(c, section.kind)
		if len(names) == 0 {
			continue
		}
		headings = append(headings, len(rows.cells))
		row(section.title, func(int, *Side, *session.Entry) string { return "" })
		for _, name := range names {
			row("  "+name, func(i int, side *Side, best *session.Entry) string {
				j := slices.IndexFunc(side.Arch.Terms, func(t arch.Term) bool { return t.CommonName() == name })
				if j < 0 || entering[i] != nil && !entering[i][j] {
					return absent
				}
				cell := render.Quantity(best.Terms[j], side.Arch.Terms[j].Unit)
				if share, ok := side.Share(best, j); ok {
					cell += " (" + render.Percent(share) + ")"
				}
				return cell
			})
		}
	}
	render.WriteTable(s, header, rows.cells, headings...)
	for i := range c.Sides {
		if side := &c.Sides[i]; side.Err != nil {
			s.Printf("%s failed: %v\n", side.Target.ID(), side.Err)
		}
	}
}

// sections are the groups of terms, what matters most first.
var sections = []struct {
	kind  arch.TermKind
	title string
}{
	{arch.KindShare, "where the time goes"},
	{arch.KindTotal, "prediction"},
	{arch.KindStep, "one K step, the slowest counts"},
	{arch.KindIntermediate, "intermediate"},
}

// termNames lists the common names of the terms of one kind, in the order of the side that has most of them, then of
// the others. Intermediate terms that several sides have go first.
func termNames(c *Comparison, kind arch.TermKind) []string {
	var sides [][]string
	count := map[string]int{}
	for i := range c.Sides {
		var common []string
		if c.Sides[i].Err == nil {
			for _, t := range c.Sides[i].Arch.Terms {
				if t.Kind == kind {
					common = append(common, t.CommonName())
					count[t.CommonName()]++
				}
			}
		}
		sides = append(sides, common)
	}
	slices.SortStableFunc(sides, func(a, b []string) int { return len(b) - len(a) })
	var names []string
	for _, name := range slices.Concat(sides...) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if kind == arch.KindIntermediate {
		slices.SortStableFunc(names, func(a, b string) int { return min(count[b], 2) - min(count[a], 2) })
	}
	return names
}
