package picturecmd

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// readFile reads a table of winners: what this command writes as CSV, or a file of problems with some of its columns.
// What is missing is left out of the map.
func readFile(ctx context.Context, name string, base gemm.Problem) ([]ask.Cell, error) {
	const form = "give a CSV file with the columns m,n,k and some of gflops,winner,config,tile,split,flop_per_byte,regret"
	file, err := session.OpenFile(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, diag.Inputf("the file cannot be read: %v", err).At("--from %s", name).Do(form)
	}
	defer func() { _ = file.Close() }()
	rows, err := problems.Open(name, file, 0, base)
	if err != nil {
		return nil, err
	}
	var cells []ask.Cell
	for {
		row := rows.Next(false)
		switch err := errors.Join(row.Bad, row.End); {
		case errors.Is(row.End, io.EOF):
			return cells, nil
		case err != nil:
			return nil, err
		case len(cells) == ask.MostCells:
			return nil, diag.Inputf("there are more than %d sizes", ask.MostCells).At("%s", name).Do("leave rows out")
		}
		l := labels{names: rows.Labels(), cells: row.Problem.Labels}
		if cells = append(cells, l.cell(row.Problem.Problem)); l.err != nil {
			return nil, diag.Within(row.Problem.Where, l.err)
		}
	}
}

// labels are the cells of a row that say what is known of a size. They keep their first error.
type labels struct {
	names, cells []string
	err          error
}

func (l *labels) cell(p gemm.Problem) ask.Cell {
	c := ask.Cell{Size: p, Problem: p.Record(), Config: l.text("config"), Tile: l.text("tile"), Winner: l.whole("winner"),
		Split: l.whole("split"), PerByte: l.number("flop_per_byte"), Seconds: l.number("seconds"),
		GFLOPS: l.number("gflops"), Bound: l.text("bound"), PerUnit: l.number("ctas_per_unit"), Waves: l.number("waves"),
		Validated: l.text("validated") == "true"}
	if math.IsNaN(float64(c.PerByte)) {
		c.PerByte = ask.TilePerByte(c.Tile, p.DType)
	}
	regret := l.number("pick.regret")
	if math.IsNaN(float64(regret)) {
		regret = l.number("regret")
	}
	if !math.IsNaN(float64(regret)) {
		c.Pick = &ask.CellPick{Kernel: l.whole("pick.kernel"), Config: l.text("pick.config"),
			Seconds: l.number("pick.seconds"), Regret: regret}
	}
	return c
}

func (l *labels) text(column string) string {
	if i := slices.Index(l.names, column); i >= 0 {
		return l.cells[i]
	}
	return ""
}

// whole reads a whole number, nil of an empty cell.
func (l *labels) whole(column string) *int {
	v := l.number(column)
	if math.IsNaN(float64(v)) {
		return nil
	}
	n := int(v)
	if float64(n) != float64(v) {
		l.fail(column)
	}
	return &n
}

// number reads a number that is not negative; an empty cell is NaN.
func (l *labels) number(column string) ask.Number {
	text := l.text(column)
	if text == "" {
		return ask.Number(math.NaN())
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		l.fail(column)
	}
	return ask.Number(v)
}

func (l *labels) fail(column string) {
	if l.err == nil {
		l.err = diag.Inputf("%s is %q", column, l.text(column)).Do("give a number, or leave the cell empty")
	}
}
