package picturecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
)

const fileForm = "give a CSV file with the columns m,n,k and some of gflops,winner,config,tile,split,flop_per_byte," +
	"regret"

// readFile reads a table of winners: the CSV that this command writes, or one that others wrote with some of its
// columns. What is missing is left out of the map.
func readFile(ctx context.Context, name string, base gemm.Problem) ([]ask.Cell, error) {
	file, err := session.OpenFile(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, diag.Inputf("the file cannot be read: %v", err).At("--from %s", name).Do(fileForm)
	}
	defer func() { _ = file.Close() }()
	in := limit.CSV{Comment: '#', Rows: ask.MostCells}.Reader(limit.Reader(file, name, limit.Table, "leave rows out"), name,
		"leave rows out")
	header, err := in.Read()
	if err != nil {
		return nil, diag.Inputf("it has no header: %v", err).At("%s", name).Do(fileForm)
	}
	t := sheet{base: base}
	for _, column := range header { // as others write them, or as this command does
		column = strings.TrimPrefix(column, "problem.")
		t.header = append(t.header, strings.Replace(column, "pick.regret", "regret", 1))
	}
	for _, column := range []string{"m", "n", "k"} {
		if !slices.Contains(t.header, column) {
			return nil, diag.Inputf("there is no column %s", column).At("%s:1", name).Do(fileForm)
		}
	}
	var cells []ask.Cell
	for {
		t.row, err = in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if large := limit.Exceeded(err); large != nil {
				return nil, large
			}
			return nil, diag.Inputf("it cannot be read: %v", err).At("%s", name).Do(fileForm)
		}
		c, err := t.cell()
		if err != nil {
			line, _ := in.FieldPos(0)
			return nil, diag.Within(fmt.Sprintf("%s:%d", name, line), err)
		}
		cells = append(cells, c)
	}
	if len(cells) == 0 {
		return nil, diag.Inputf("it has no rows").At("%s", name).Do(fileForm)
	}
	return cells, nil
}

// sheet is the current row of a file. It keeps the first error of its cells.
type sheet struct {
	base   gemm.Problem
	header []string
	row    []string
	err    error
}

func (t *sheet) cell() (ask.Cell, error) {
	p := t.base
	for i, size := range [...]*int{&p.M, &p.N, &p.K} {
		if v := t.whole([...]string{"m", "n", "k"}[i], true); v != nil {
			*size = *v
		}
	}
	c := ask.Cell{Size: p, Problem: p.Record(), Config: t.text("config"), Tile: t.text("tile"),
		Winner: t.whole("winner", false), Split: t.whole("split", false), PerByte: t.number("flop_per_byte"),
		Seconds: t.number("seconds"), GFLOPS: t.number("gflops"), Bound: t.text("bound"), PerUnit: t.number("ctas_per_unit"), Waves: t.number("waves"),
		Validated: t.text("validated") == "true"}
	if math.IsNaN(float64(c.PerByte)) {
		c.PerByte = ask.TilePerByte(c.Tile, p.DType)
	}
	if regret := t.number("regret"); !math.IsNaN(float64(regret)) {
		c.Pick = &ask.CellPick{Kernel: t.whole("pick.kernel", false), Config: t.text("pick.config"),
			Seconds: t.number("pick.seconds"), Regret: regret}
	}
	if t.err == nil {
		t.err = p.Validate()
	}
	return c, t.err
}

func (t *sheet) text(column string) string {
	if i := slices.Index(t.header, column); i >= 0 && i < len(t.row) {
		return strings.TrimSpace(t.row[i])
	}
	return ""
}

func (t *sheet) fail(column, text string) {
	if t.err == nil {
		t.err = diag.Inputf("%s is %q", column, text).Do("give a number, or leave the cell empty")
	}
}

// whole reads a whole number, nil of an empty cell. A size is at least 1 and not empty.
func (t *sheet) whole(column string, size bool) *int {
	text := t.text(column)
	if text == "" && !size {
		return nil
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 0 || size && v < 1 {
		t.fail(column, text)
		return nil
	}
	return &v
}

// number reads a number that is not negative; an empty cell is NaN.
func (t *sheet) number(column string) ask.Number {
	text := t.text(column)
	if text == "" {
		return ask.Number(math.NaN())
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		t.fail(column, text)
	}
	return ask.Number(v)
}
