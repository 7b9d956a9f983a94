package compare

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/cmd/origami/internal/answer"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/core/arch"
)

// object is `compare --json`.
type object struct {
	Problem answer.Problem   `json:"problem"`
	Model   string           `json:"model"`
	Entries []any            `json:"entries"`
	Ratio   []*answer.Number `json:"ratio_to_first"`
}

// entry is a side that answered, failed one that did not.
type entry struct {
	answer.Object
	Terms answer.Fields `json:"terms"`
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
	o := object{Problem: answer.ProblemJSON(c.Problem), Model: c.Model}
	for i := range c.Sides {
		side := &c.Sides[i]
		if side.Err != nil {
			o.Entries = append(o.Entries, failed{side.Target.Entry.ID, side.Target.Device.ID, iostreams.AsJSON(side.Err)})
		} else {
			o.Entries = append(o.Entries, entry{side.Object(side.Best()), side.TermsJSON(side.Best())})
		}
		var ratio *answer.Number
		if r, ok := c.Ratio(i); ok {
			n := answer.Number(r)
			ratio = &n
		}
		o.Ratio = append(o.Ratio, ratio)
	}
	return render.JSONLine(s, o)
}

// writeRecords writes a row per quantity and architecture.
func writeRecords(s *iostreams.Streams, f render.Format, c *Comparison) error {
	r := render.NewRecords(s, f, []string{"arch", "device", "kind", "name", "value", "unit", "share"})
	for i := range c.Sides {
		side := &c.Sides[i]
		row := func(kind, name, value, unit, share string) error {
			return r.Write([]string{side.Target.Entry.ID, side.Target.Device.ID, kind, name, value, unit, share})
		}
		if side.Err != nil {
			if err := row("error", "error", side.Err.Error(), "", ""); err != nil {
				return err
			}
			continue
		}
		best := side.Best()
		o := side.Object(best)
		for _, cells := range [][3]string{
			{"model", o.Model, ""}, {"kernel", o.Kernel, ""}, {"rung", string(o.Rung), ""}, {"config", best.Config.String(), ""},
			{"cycles", render.Exact(o.Predicted.Cycles), "cycles"}, {"seconds", render.Exact(o.Predicted.Seconds), "s"},
			{"tflops", render.Exact(o.Predicted.TFLOPS), "TFLOP/s"}, {"bound", o.Predicted.Bound, ""},
		} {
			if err := row("answer", cells[0], cells[1], cells[2], ""); err != nil {
				return err
			}
		}
		if ratio, ok := c.Ratio(i); ok {
			if err := row("answer", "ratio_to_first", render.Exact(ratio), "1", ""); err != nil {
				return err
			}
		}
		for j, t := range side.Arch.Terms {
			share := ""
			if v, ok := side.Share(best, j); ok {
				share = render.Exact(v)
			}
			if err := row("term", t.Name, render.Exact(best.Terms[j]), t.Unit, share); err != nil {
				return err
			}
		}
	}
	return r.Close()
}

const absent = "–"

func writeTable(s *iostreams.Streams, c *Comparison) {
	fmt.Fprintf(s.Out, "%-11s %s\n%-11s %s\n", "problem", c.Problem, "model", c.Model)
	header := []string{""}
	for i := range c.Sides {
		header = append(header, c.Sides[i].Target.ID())
	}
	var rows [][]string
	row := func(name string, cell func(i int, side *Side, best *answer.Entry) string) {
		cells := []string{name}
		for i := range c.Sides {
			side := &c.Sides[i]
			if side.Err != nil {
				cells = append(cells, absent)
				continue
			}
			cells = append(cells, cell(i, side, side.Best()))
		}
		rows = append(rows, cells)
	}
	row("device", func(_ int, side *Side, _ *answer.Entry) string { return side.Arch.DeviceName })
	row("units", func(_ int, side *Side, _ *answer.Entry) string {
		return fmt.Sprintf("%d %ss at %s", side.Arch.Units, side.Arch.UnitName, side.Arch.Clock)
	})
	row("kernel", func(_ int, side *Side, _ *answer.Entry) string { return side.Kernel })
	row("knowledge", func(_ int, side *Side, _ *answer.Entry) string { return string(side.Arch.Rung) })
	row("pick", func(_ int, _ *Side, best *answer.Entry) string { return best.Config.String() })
	row("time", func(_ int, side *Side, best *answer.Entry) string { return side.Seconds(best).String() })
	row("time ÷ first", func(i int, _ *Side, _ *answer.Entry) string {
		if r, ok := c.Ratio(i); ok {
			return fmt.Sprintf("%.3f", r)
		}
		return absent
	})
	row("rate", func(_ int, side *Side, best *answer.Entry) string { return side.Rate(best).String() })
	row("of peak", func(_ int, side *Side, best *answer.Entry) string {
		if share, ok := side.PeakShare(best); ok {
			return render.Percent(share)
		}
		return absent
	})
	row("bound", func(_ int, _ *Side, best *answer.Entry) string { return best.Estimate.Bound.String() })

	for _, name := range termNames(c) {
		row(name, func(_ int, side *Side, best *answer.Entry) string {
			j := slices.IndexFunc(side.Arch.Terms, func(t arch.Term) bool { return t.Name == name })
			if j < 0 {
				return absent
			}
			cell := render.WithUnit(render.Short(best.Terms[j]), side.Arch.Terms[j].Unit)
			if share, ok := side.Share(best, j); ok {
				cell += " (" + render.Percent(share) + ")"
			}
			return cell
		})
	}
	render.Grid(s, header, rows)
	for i := range c.Sides {
		if side := &c.Sides[i]; side.Err != nil {
			fmt.Fprintf(s.Out, "%s failed: %v\n", side.Target.ID(), side.Err)
		}
	}
}

// termNames lists the terms of all sides, by kind; within a kind in the first side's order, with those that only others
// have behind.
func termNames(c *Comparison) []string {
	var names []string
	for _, kind := range []arch.TermKind{arch.KindIntermediate, arch.KindStep, arch.KindShare, arch.KindTotal} {
		for i := range c.Sides {
			if c.Sides[i].Err != nil {
				continue
			}
			for _, t := range c.Sides[i].Arch.Terms {
				if t.Kind == kind && !slices.Contains(names, t.Name) {
					names = append(names, t.Name)
				}
			}
		}
	}
	return names
}
