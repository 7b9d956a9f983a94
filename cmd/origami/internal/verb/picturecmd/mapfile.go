package picturecmd

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
)

const fileForm = "give a CSV file with the columns m,n,k and some of gflops,winner,config,tile,split,flop_per_byte," +
	"regret"

// readFile reads a table of winners: the CSV that this command writes, or one that others wrote with some of its
// columns. What is missing is left out of the map.
func readFile(ctx context.Context, name string, base gemm.Problem) ([]cell, error) {
	file, err := session.OpenFile(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, diag.Inputf("the file cannot be read: %v", err).At("--from %s", name).Do(fileForm)
	}
	defer func() { _ = file.Close() }()
	in := limit.CSV{Comment: '#', Rows: mostCells}.Reader(limit.Reader(file, name, limit.Table, "leave rows out"), name,
		"leave rows out")
	header, err := in.Read()
	if err != nil {
		return nil, diag.Inputf("it has no header: %v", err).At("%s", name).Do(fileForm)
	}
	t := sheet{in: in, name: name, base: base, header: slices.Clone(header)}
	for _, column := range []string{"m", "n", "k"} {
		if !slices.Contains(t.header, column) {
			return nil, diag.Inputf("there is no column %s", column).At("%s:1", name).Do(fileForm)
		}
	}
	var cells []cell
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
			return nil, err
		}
		cells = append(cells, c)
	}
	if len(cells) == 0 {
		return nil, diag.Inputf("it has no rows").At("%s", name).Do(fileForm)
	}
	return cells, nil
}

// sheet is the current row of a file.
type sheet struct {
	in     *csv.Reader
	name   string
	base   gemm.Problem
	header []string
	row    []string
}

func (t *sheet) cell() (cell, error) {
	var f fields
	p := t.base
	p.M, p.N, p.K = f.whole(t, "m", 1), f.whole(t, "n", 1), f.whole(t, "k", 1)
	c := cell{problem: p, best: choice{
		name: t.text("config"), tile: t.text("tile"), number: f.whole(t, "winner", -1),
		seconds: f.number(t, "seconds"), perByte: f.number(t, "flop_per_byte"), split: f.whole(t, "split", 0),
		bound: t.text("bound"), perUnit: f.number(t, "ctas_per_unit"), waves: f.number(t, "waves"),
	}}
	c.best.gflops = f.number(t, "gflops")
	c.validated = t.text("validated") == "1"
	if c.best.number < 0 {
		c.best.number = -1
	}
	var m, n float64
	if _, err := fmt.Sscanf(c.best.tile, "%fx%f", &m, &n); err == nil && math.IsNaN(c.best.perByte) {
		c.best.perByte = 2 * m * n / ((m + n) * float64(p.DType.Bits()) / 8)
	}
	if c.regret = f.number(t, "regret"); !math.IsNaN(c.regret) {
		c.pick = &choice{name: t.text("pick_config"), number: f.whole(t, "pick", -1), gflops: math.NaN(),
			seconds: f.number(t, "pick_seconds"), perByte: math.NaN()}
	}
	if f.err == nil {
		f.err = p.Validate()
	}
	line, _ := t.in.FieldPos(0)
	return c, diag.Within(fmt.Sprintf("%s:%d", t.name, line), f.err)
}

func (t *sheet) text(column string) string {
	if i := slices.Index(t.header, column); i >= 0 && i < len(t.row) {
		return strings.TrimSpace(t.row[i])
	}
	return ""
}

// fields reads cells, and keeps the first error.
type fields struct{ err error }

func (f *fields) fail(column, text string) {
	if f.err == nil {
		f.err = diag.Inputf("%s is %q", column, text).Do("give a number, or leave the cell empty")
	}
}

// whole reads a whole number of at least least; an empty cell is least, or an error where that is a size.
func (f *fields) whole(t *sheet, column string, least int) int {
	text := t.text(column)
	if text == "" && least < 1 {
		return least
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < least {
		f.fail(column, text)
	}
	return v
}

// number reads a number that is not negative; an empty cell is NaN.
func (f *fields) number(t *sheet, column string) float64 {
	text := t.text(column)
	if text == "" {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		f.fail(column, text)
	}
	return v
}
