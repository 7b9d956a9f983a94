package show

import (
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
)

// Answer writes an object with a list. JSON is the object, CSV and TSV have the rows of the list, and people read lines
// above the rows.
func Answer[T any](
	s *iostreams.Streams, f table.Format, object any, lines func(), rows []T, columns ...Column[T],
) error {
	switch f {
	case table.JSON:
		return table.JSONLine(s, object)
	case table.Table:
		lines()
	case table.CSV, table.TSV: // the rows alone
	}
	return Write(s, f, rows, columns...)
}

// Texts are the header and the cells of a table for people.
func Texts[T any](rows []T, columns ...Column[T]) (header []string, cells [][]string) {
	return NewRows[T](nil, table.Table, columns...).Text(rows)
}
