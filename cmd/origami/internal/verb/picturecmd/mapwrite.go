package picturecmd

import (
	"math"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

// write writes the kernels as a table, or the sizes as CSV or JSON.
func (out *outcome) write(s *iostreams.Streams, format table.Format) error {
	if format == table.JSON {
		return table.JSONLines(s, out.answers())
	}
	if format != table.Table {
		return cellColumns.Write(s, format, out.cells)
	}
	for _, line := range out.heading {
		table.Line(s, line[0], "%s", line[1])
	}
	s.Printf("\n")
	header, rows := out.winners()
	table.WriteTable(s, header, rows)
	return nil
}

func (out *outcome) winners() (header []string, rows [][]string) {
	return table.Columns[kernel]{
		table.Text("kernel", func(k *kernel) string { return strconv.Itoa(k.number) }),
		table.Text("configuration", func(k *kernel) string { return k.label() }),
		table.Text("sizes", func(k *kernel) string { return strconv.Itoa(k.wins) }),
		table.Text("share", func(k *kernel) string { return digits.Percent(float64(k.wins) / float64(len(out.cells))) }),
		table.Opt("-|-|FLOP/B", func(k *kernel) float64 { return k.perByte }, digits.SixDigits),
		table.Text("split", func(k *kernel) string { return whole(k.split, 1) }),
	}.Text(out.kernels)
}

// label is the configuration, or the tile where only that is known.
func (c *choice) label() string {
	if c.name != "" {
		return c.name
	}
	return c.tile
}

// cellColumns are the columns of the sizes in CSV and TSV.
var cellColumns = func() table.Columns[cell] {
	// pick is what the model's pick has, where there are measurements.
	pick := func(of func(*cell) float64) func(*cell) float64 {
		return func(c *cell) float64 {
			if c.pick == nil {
				return math.NaN()
			}
			return of(c)
		}
	}
	return append(table.Problem(func(c *cell) gemm.Problem { return c.problem }),
		table.Col("winner", func(c *cell) string { return whole(c.best.number, 0) }),
		table.Col("config", func(c *cell) string { return c.best.name }),
		table.Col("tile", func(c *cell) string { return c.best.tile }),
		table.Col("split", func(c *cell) string { return whole(c.best.split, 1) }),
		table.Opt("flop_per_byte", func(c *cell) float64 { return c.best.perByte }),
		table.Opt("seconds", func(c *cell) float64 { return c.best.seconds }),
		table.Opt("gflops", func(c *cell) float64 { return c.best.gflops }),
		table.Col("bound", func(c *cell) string { return c.best.bound }),
		table.Opt("ctas_per_unit", func(c *cell) float64 { return c.best.perUnit }),
		table.Opt("waves", func(c *cell) float64 { return c.best.waves }),
		table.Col("pick", func(c *cell) *int {
			if c.pick == nil {
				return nil
			}
			return mapKnown(c.pick.number, 0)
		}),
		table.Col("pick_config", func(c *cell) string {
			if c.pick == nil {
				return ""
			}
			return c.pick.name
		}),
		table.Opt("pick_seconds", pick(func(c *cell) float64 { return c.pick.seconds })),
		table.Opt("regret", pick(func(c *cell) float64 { return c.regret })),
		table.Col("validated", func(c *cell) bool { return c.validated }))
}()

// whole writes a whole number, and nothing for one below the least, which is unknown.
func whole(v, least int) string {
	if v < least {
		return ""
	}
	return strconv.Itoa(v)
}

func (out *outcome) answers() []ask.Cell {
	answers := make([]ask.Cell, len(out.cells))
	for i := range out.cells {
		c := &out.cells[i]
		answers[i] = ask.Cell{Problem: c.problem.Record(), Winner: mapKnown(c.best.number, 0), Config: c.best.name,
			Tile: c.best.tile, Split: mapKnown(c.best.split, 1), PerByte: ask.Number(c.best.perByte),
			Seconds: ask.Number(c.best.seconds), GFLOPS: ask.Number(c.best.gflops), Bound: c.best.bound,
			PerUnit: ask.Number(c.best.perUnit), Waves: ask.Number(c.best.waves), Validated: c.validated}
		if c.pick != nil {
			answers[i].Pick = &ask.CellPick{Kernel: mapKnown(c.pick.number, 0), Config: c.pick.name,
				Seconds: ask.Number(c.pick.seconds), Regret: ask.Number(c.regret)}
		}
	}
	return answers
}

func mapKnown(v, least int) *int {
	if v < least {
		return nil
	}
	return &v
}
