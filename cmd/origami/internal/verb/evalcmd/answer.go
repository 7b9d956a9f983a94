package evalcmd

import (
	"fmt"
	"math"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/digits"
)

// answer is what eval answers.
type answer struct {
	value func() any // of JSON
	lines bool       // the value is a list with a line for each element
	rows  func(*iostreams.Streams, table.Format) error
	page  []block // what people read
}

// block is lines or a table.
type block struct {
	lines  lines
	header []string
	cells  [][]string
	least  []string // columns that a narrow screen leaves out
}

// tableOf is a table of rows.
func tableOf[T any](rows []T, columns ...show.Column[T]) block {
	header, cells := show.Texts(rows, columns...)
	return block{header: header, cells: cells}
}

// lines are labels with texts.
type lines []string

func (l *lines) add(label, format string, args ...any) {
	*l = append(*l, fmt.Sprintf("%-11s %s", label, fmt.Sprintf(format, args...)))
}

func (a *answer) write(s *iostreams.Streams, f table.Format) error {
	switch {
	case f == table.JSON && !a.lines:
		return table.JSONLine(s, a.value())
	case f != table.Table:
		return a.rows(s, f)
	}
	for i := range a.page {
		b := &a.page[i]
		if i > 0 && a.page[i-1].header != nil {
			s.Printf("\n")
		}
		table.Lines(s, b.lines...)
		if b.header != nil {
			table.Grid{Header: b.header, Rows: b.cells, Least: b.least}.Write(s)
		}
	}
	return nil
}

const none = "–"

// percent writes a share, and ratio a number.
func percent(v float64) string {
	if math.IsNaN(v) {
		return none
	}
	return digits.Percent(v)
}

func ratio(v float64) string {
	if math.IsNaN(v) {
		return none
	}
	return digits.ThreeDigits(v)
}
