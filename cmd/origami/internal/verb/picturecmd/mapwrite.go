package picturecmd

import (
	"math"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
)

// write writes the kernels as a table, or the sizes as CSV or JSON.
func (out *outcome) write(s *table.Streams, format table.Format) error {
	if format == table.JSON {
		return table.JSONLines(s, out.answers())
	}
	if format != table.Table {
		return table.WriteRows(s, format, header(), out.records())
	}
	for _, line := range out.heading {
		table.Line(s, line[0], "%s", line[1])
	}
	s.Printf("\n")
	header, rows := out.winners()
	table.WriteTable(s, header, rows)
	return nil
}

// winners are the rows of a table of kernels.
func (out *outcome) winners() (header []string, rows [][]string) {
	for i := range out.kernels {
		k := &out.kernels[i]
		rows = append(rows, []string{strconv.Itoa(k.number), k.label(), strconv.Itoa(k.wins),
			digits.Percent(float64(k.wins) / float64(len(out.cells))), number(k.perByte, digits.SixDigits), whole(k.split, 1)})
	}
	return []string{"kernel", "configuration", "sizes", "share", "FLOP/B", "split"}, rows
}

// label is the configuration, or the tile where only that is known.
func (c *choice) label() string {
	if c.name != "" {
		return c.name
	}
	return c.tile
}

func header() []string {
	return append(append([]string{}, gemm.Columns...), "winner", "config", "tile", "split", "flop_per_byte", "seconds",
		"gflops", "pick", "pick_config", "pick_seconds", "regret", "validated")
}

func (out *outcome) records() [][]string {
	rows := make([][]string, len(out.cells))
	for i := range out.cells {
		c := &out.cells[i]
		row := append(c.problem.Cells(), whole(c.best.number, 0), c.best.name, c.best.tile, whole(c.best.split, 1),
			number(c.best.perByte, digits.Exact), number(c.best.seconds, digits.Exact), number(c.best.gflops, digits.Exact))
		if c.pick != nil {
			row = append(row, whole(c.pick.number, 0), c.pick.name, number(c.pick.seconds, digits.Exact),
				number(c.regret, digits.Exact))
		} else {
			row = append(row, "", "", "", "")
		}
		rows[i] = append(row, table.Flag(c.validated))
	}
	return rows
}

// number writes a number, and nothing for one that is unknown.
func number(v float64, write func(float64) string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return write(v)
}

// whole writes a whole number, and nothing for one below the least, which is unknown.
func whole(v, least int) string {
	if v < least {
		return ""
	}
	return strconv.Itoa(v)
}

// answers are the sizes as plain values.
func (out *outcome) answers() []ask.Cell {
	answers := make([]ask.Cell, len(out.cells))
	for i := range out.cells {
		c := &out.cells[i]
		answers[i] = ask.Cell{Problem: c.problem.Record(), Winner: mapKnown(c.best.number, 0), Config: c.best.name,
			Tile: c.best.tile, Split: mapKnown(c.best.split, 1), PerByte: ask.Number(c.best.perByte),
			Seconds: ask.Number(c.best.seconds), GFLOPS: ask.Number(c.best.gflops), Validated: c.validated}
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
