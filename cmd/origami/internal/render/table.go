package render

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/printable"
)

// Format is how a command writes its answer.
type Format string

// The formats. CSV and TSV hold the same columns and differ in the separator.
const (
	Table Format = config.Table
	JSON  Format = config.JSON
	CSV   Format = config.CSV
	TSV   Format = config.TSV
)

// FormatOf returns the format that the settings ask for. The default is a table on a terminal and TSV elsewhere.
func FormatOf(f *session.Factory) Format {
	switch asked := f.Settings.Format; {
	case asked != "":
		return Format(asked)
	case f.Streams.Terminal:
		return Table
	default:
		return TSV
	}
}

// JSONLine writes v as one line of JSON.
func JSONLine(s *iostreams.Streams, v any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return notFinite(v, err)
	}
	_, err := s.Writer().Write(printable.JSON(line.Bytes()))
	return err
}

// Delimited writes a header and rows as CSV or TSV.
type Delimited struct {
	csv    *csv.Writer
	header []string
	row    []string
	wrote  bool
	tsv    bool
}

// NewDelimited starts a table. The header is written with the first row.
func NewDelimited(s *iostreams.Streams, f Format, header []string) *Delimited {
	w := csv.NewWriter(s.Writer())
	r := &Delimited{csv: w, header: header, tsv: f == TSV}
	if r.tsv {
		w.Comma = '\t'
	}
	return r
}

// Write adds a row.
func (r *Delimited) Write(row []string) error {
	if !r.wrote {
		r.wrote = true
		if err := r.csv.Write(r.cells(r.header)); err != nil {
			return err
		}
	}
	return r.csv.Write(r.cells(row))
}

// cells makes the cells of a row printable, so that a row is a line. Cells of a TSV are never quoted, so that cut and
// awk can read them.
func (r *Delimited) cells(row []string) []string {
	r.row = r.row[:0]
	for _, cell := range row {
		if cell = printable.Line(cell); r.tsv {
			cell = strings.ReplaceAll(cell, `"`, "'")
		}
		r.row = append(r.row, cell)
	}
	return r.row
}

// Close writes the rest.
func (r *Delimited) Close() error {
	r.csv.Flush()
	return r.csv.Error()
}

// Flag writes a boolean in CSV and TSV.
func Flag(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

// WriteRows writes rows as a table, CSV or TSV.
func WriteRows(s *iostreams.Streams, f Format, header []string, rows [][]string) error {
	if f == Table {
		WriteTable(s, header, rows)
		return nil
	}
	r := NewDelimited(s, f, header)
	for _, row := range rows {
		if err := r.Write(row); err != nil {
			return err
		}
	}
	return r.Close()
}

// WriteTable prints aligned columns. Columns whose cells are all numbers are aligned right. headings are the numbers of
// the rows whose first cell is in bold, as the header is.
func WriteTable(s *iostreams.Streams, header []string, rows [][]string, headings ...int) {
	w := table.NewWriter()
	style := table.StyleLight
	style.Options = table.Options{SeparateColumns: true}
	style.Box.MiddleVertical = " "
	style.Box.PaddingLeft, style.Box.PaddingRight = "", " "
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	head := make(table.Row, len(header))
	columns := make([]table.ColumnConfig, len(header))
	for i, h := range header {
		head[i] = string(s.Bold(h))
		columns[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignLeft, AlignHeader: text.AlignLeft}
		if numeric(rows, i) {
			columns[i].Align, columns[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	w.SetColumnConfigs(columns)
	w.AppendHeader(head)
	for i, row := range rows {
		cells := make(table.Row, len(row))
		for j := range row {
			cells[j] = printable.Line(row[j])
		}
		if slices.Contains(headings, i) {
			cells[0] = string(s.Bold(row[0]))
		}
		w.AppendRow(cells)
	}
	for line := range strings.Lines(w.Render()) {
		s.Printf("%s\n", iostreams.Styled(strings.TrimRight(line, " \n")))
	}
}

// defaultWidth is the width of what is not a terminal, and leastColumn that of a column that is worth reading.
const (
	defaultWidth = 120
	leastColumn  = 22
)

// ScreenWidth is how many characters a line should have.
func ScreenWidth(s *iostreams.Streams) int {
	if s.Width > 0 {
		return s.Width
	}
	return defaultWidth
}

// WriteSideBySide prints a table whose first column has the names of the rows and whose others are compared. It fits
// the screen: cells are broken into lines, and where even that does not help, the columns follow each other in several
// tables. headings are as in WriteTable.
func WriteSideBySide(s *iostreams.Streams, header []string, rows [][]string, headings ...int) {
	names, widest := 0, 0
	for _, row := range append([][]string{header}, rows...) {
		names = max(names, text.StringWidthWithoutEscSequences(row[0]))
		for _, cell := range row[1:] {
			widest = max(widest, text.StringWidthWithoutEscSequences(cell))
		}
	}
	room := ScreenWidth(s) - names - 2
	sides := max(len(header)-1, 1)
	width := min(widest, max(room/sides-2, leastColumn))
	at := max(1, min(sides, room/(width+2)))
	for from := 1; from < len(header); from += at {
		if from > 1 {
			s.Printf("\n")
		}
		to := min(from+at, len(header))
		pick := func(row []string) []string { return append([]string{row[0]}, row[from:to]...) }
		lines, bold := folded(append([][]string{pick(header)}, picked(rows, pick)...), width, headings)
		WriteTable(s, lines[0], lines[1:], bold...)
	}
}

func picked(rows [][]string, pick func([]string) []string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		out[i] = pick(row)
	}
	return out
}

// continued stands before the further lines of a row, so that no text of a plugin begins a line.
const continued = "…"

// folded breaks every cell behind the first into lines of a width. The first row is a header. headings are numbers of
// the other rows, which it translates.
func folded(rows [][]string, width int, headings []int) (lines [][]string, bold []int) {
	for i, row := range rows {
		cells := make([][]string, len(row))
		height := 1
		for j, cell := range row {
			cells[j] = []string{cell}
			if j > 0 {
				cells[j] = brokenText(printable.Line(cell), width)
			}
			height = max(height, len(cells[j]))
		}
		if slices.Contains(headings, i-1) {
			bold = append(bold, len(lines)-1)
		}
		for k := range height {
			line := make([]string, len(row))
			if k > 0 {
				line[0] = continued
			}
			for j := range cells {
				if k == 0 || j > 0 && k < len(cells[j]) {
					line[j] = cells[j][k]
				}
			}
			lines = append(lines, line)
		}
	}
	return lines, bold
}

// brokenText breaks a text into lines after blanks and commas, or anywhere in a longer word.
func brokenText(cell string, width int) []string {
	var lines []string
	rest := []rune(cell)
	for len(rest) > width {
		end := width
		for i := width; i > 0; i-- {
			if rest[i] == ' ' || rest[i-1] == ',' {
				end = i
				break
			}
		}
		lines = append(lines, strings.TrimRight(string(rest[:end]), " "))
		rest = []rune(strings.TrimLeft(string(rest[end:]), " "))
	}
	return append(lines, string(rest))
}

// TableWidth is how many characters the lines of a table take.
func TableWidth(header []string, rows [][]string) (width int) {
	for i := range header {
		widest := 0
		for _, row := range append([][]string{header}, rows...) {
			widest = max(widest, text.StringWidthWithoutEscSequences(row[i]))
		}
		width += widest + 2
	}
	return width
}

// WriteColumns prints rows with their columns aligned and no header. All rows must have the same number of cells.
func WriteColumns(s *iostreams.Streams, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable.Line(cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], text.StringWidthWithoutEscSequences(row[i]))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(text.Pad(cell, widths[i]+2, ' '))
		}
		s.Printf("%s\n", strings.TrimRight(line.String(), " "))
	}
}

// numeric reports whether a column holds numbers, perhaps with a unit behind them.
func numeric(rows [][]string, column int) bool {
	found := false
	for _, row := range rows {
		cell := row[column]
		if cell == "" || cell == "–" {
			continue
		}
		digits := strings.TrimLeft(cell, "+-<")
		if digits == "" || digits[0] < '0' || digits[0] > '9' || strings.ContainsAny(cell, "x@,") {
			return false
		}
		found = true
	}
	return found
}
