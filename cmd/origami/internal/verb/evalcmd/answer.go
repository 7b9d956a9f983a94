package evalcmd

import (
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
	page  func(*iostreams.Streams) // what people read
}

func (a *answer) write(s *iostreams.Streams, f table.Format) error {
	switch {
	case f == table.JSON && !a.lines:
		return table.JSONLine(s, a.value())
	case f != table.Table:
		return a.rows(s, f)
	}
	a.page(s)
	return nil
}

// grid prints a table of rows.
func grid[T any](s *iostreams.Streams, rows []T, columns ...show.Column[T]) {
	header, cells := show.Texts(rows, columns...)
	table.Grid{Header: header, Rows: cells}.Write(s)
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
