package limit

import (
	"encoding/csv"
	"io"
)

// CSVOf is c.Reader with other limits.
func CSVOf(c CSV, in io.Reader, row, cells int) *csv.Reader { return c.reader(in, "f", "", row, cells) }
