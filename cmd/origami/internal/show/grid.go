// Package show writes answers: rows as a table for people, CSV and lines of JSON, all from structs, and the lines
// and sentences around tables.
package show

import (
	"fmt"
	"math"
	"slices"
	"strings"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/printable"
)

// Format is how a command writes its answer.
type Format string

// The formats.
const (
	Table Format = config.Table
	JSON  Format = config.JSON
	CSV   Format = config.CSV
)

// Pasted reports whether a format is for configurations that are pasted into a program.
func (f Format) Pasted() bool { return slices.Contains(config.PasteFormats, string(f)) }

// JSONLine writes v as one line of JSON.
func JSONLine(s *iostreams.Streams, v any) error {
	line, err := ask.Encode(v)
	if err != nil {
		return err
	}
	_, err = s.Writer().Write(line)
	return err
}

// Grid is a table for a reader. It fits the screen: columns that have no room are left out, and a line below says
// which.
type Grid struct {
	Header []string
	Rows   [][]string
	// Headings are the numbers of the rows whose first cell is in bold, as the header is.
	Headings []int
	// Least names the columns that may be left out, the least important first. Where it is nil, these are all but the
	// first two, from the right.
	Least []string

	sides bool // the columns are compared, see WriteSideBySide
}

// Write prints the table. Columns whose cells are all numbers are aligned right.
func (g Grid) Write(s *iostreams.Streams) {
	room := ScreenWidth(s)
	left := g.fit(room)
	// What is still too wide is broken in the widest column behind the first, as far as that leaves something to read.
	widths := slices.Repeat([]int{math.MaxInt}, len(g.Header))
	if over := TableWidth(g.Header, g.Rows) - 2 - room; over > 0 && len(widths) > 1 {
		at := 1
		for i := range widths[1:] {
			if columnWidth(g.Header, g.Rows, i+1) > columnWidth(g.Header, g.Rows, at) {
				at = i + 1
			}
		}
		widths[at] = max(columnWidth(g.Header, g.Rows, at)-over, leastColumn)
	}
	g.print(s, widths)
	if len(left) > 0 {
		Lines(s, fmt.Sprintf("not shown: %s; --wide shows all columns", strings.Join(left, ", ")))
	}
}

// fit leaves out columns until the others have room, and returns the names of the former. Empty columns go first.
func (g *Grid) fit(room int) (left []string) {
	for i := len(g.Header) - 1; i > 0 && TableWidth(g.Header, g.Rows)-2 > room; i-- {
		if !slices.ContainsFunc(g.Rows, func(row []string) bool { return row[i] != "" }) {
			g.leaveOut(i)
		}
	}
	least := g.Least
	if least == nil && len(g.Header) > 2 {
		least = slices.Clone(g.Header[2:])
		slices.Reverse(least)
	}
	for _, name := range least {
		if TableWidth(g.Header, g.Rows)-2 <= room {
			break
		}
		at := len(g.Header) - 1
		for at > 0 && g.Header[at] != name {
			at--
		}
		if at > 0 {
			g.leaveOut(at)
			left = append(left, name)
		}
	}
	slices.Reverse(left)
	return left
}

func (g *Grid) leaveOut(column int) {
	without := func(row []string) []string { return slices.Delete(slices.Clone(row), column, column+1) }
	g.Header, g.Rows = without(g.Header), picked(g.Rows, without)
}

func picked(rows [][]string, pick func([]string) []string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		out[i] = pick(row)
	}
	return out
}

// print prints the table with columns of at most these widths.
func (g *Grid) print(s *iostreams.Streams, widths []int) {
	w := pretty.NewWriter()
	style := pretty.StyleLight
	style.Options = pretty.Options{SeparateColumns: true}
	style.Box.MiddleVertical = " "
	style.Box.PaddingLeft, style.Box.PaddingRight = "", " "
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	columns := make([]pretty.ColumnConfig, len(widths))
	for i := range widths {
		columns[i] = pretty.ColumnConfig{Number: i + 1, Align: text.AlignLeft, AlignHeader: text.AlignLeft}
		if numeric(g.Rows, i) {
			columns[i].Align, columns[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	w.SetColumnConfigs(columns)
	head := make(pretty.Row, len(g.Header))
	for i, h := range g.Header {
		head[i] = wrapped(string(s.Bold(h)), widths[i])
	}
	w.AppendHeader(head)
	for i, row := range g.Rows {
		cells := make(pretty.Row, len(row))
		for j := range row {
			cells[j] = wrapped(printable.Line(row[j]), widths[j])
			switch {
			case g.Header[j] == boundColumn:
				cells[j] = string(boundStyle(s, row[j]))
			case g.wins(row, j):
				cells[j] = string(s.Winner(row[j]))
			}
		}
		if slices.Contains(g.Headings, i) {
			cells[0] = string(s.Bold(row[0]))
		}
		w.AppendRow(cells)
	}
	names := columnWidth(g.Header, g.Rows, 0)
	for i, line := range strings.Split(w.Render(), "\n") {
		if slices.Min(widths) < math.MaxInt && i > 0 && strings.HasPrefix(line, strings.Repeat(" ", names)) {
			line = "…" + line[1:] // no text of a plugin begins a line
		}
		s.Printf("%s\n", iostreams.Styled(strings.TrimRight(line, " ")))
	}
}

// WriteColumns prints rows without a header. The last cells are broken into lines where the screen is too narrow.
func WriteColumns(s *iostreams.Streams, rows [][]string) {
	last := len(rows[0]) - 1
	before := TableWidth(rows[0][:last], rows)
	for _, row := range rows {
		line := ""
		for i, cell := range row[:last] {
			line += text.Pad(printable.Line(cell), columnWidth(rows[0], rows, i)+2, ' ')
		}
		line = strings.TrimRight(line+printable.Line(row[last]), " ")
		s.Printf("%s\n", iostreams.Styled(Hang(line, before, ScreenWidth(s))))
	}
}

// The headers of columns that have colours. FastestColumn is also the name of a row, where columns are compared.
const (
	boundColumn   = "bound" // what limits a kernel
	configColumn  = "config"
	rankColumn    = "rank"
	FastestColumn = "fastest" // who is the fastest
)

// absent is a cell without an answer.
const absent = "–"

// Doubt is at the end of a cell of FastestColumn that intervals do not confirm.
const Doubt = " ?"

// wins reports whether a cell names what came out best: a configuration of rank 1, or who is the fastest beyond doubt.
func (g *Grid) wins(row []string, column int) bool {
	switch {
	case g.Header[column] == configColumn:
		at := slices.Index(g.Header, rankColumn)
		return at >= 0 && row[at] == "1"
	case g.Header[column] == FastestColumn, g.sides && row[0] == FastestColumn && column > 0:
		return row[column] != absent && !strings.HasSuffix(row[column], Doubt)
	}
	return false
}

// numeric reports whether a column holds numbers, perhaps with a unit behind them.
func numeric(rows [][]string, column int) bool {
	found := false
	for _, row := range rows {
		cell := row[column]
		if cell == "" || cell == absent {
			continue
		}
		digits := strings.TrimLeft(cell, "+-<* ")
		if digits == "" || digits[0] < '0' || digits[0] > '9' || strings.ContainsAny(cell, "x@,") {
			return false
		}
		found = true
	}
	return found
}

// defaultWidth is the width of a line outside of terminals, leastColumn the width of a column that is worth reading.
const (
	defaultWidth = 120
	leastColumn  = 22
)

// ScreenWidth is how many characters a line may have.
func ScreenWidth(s *iostreams.Streams) int {
	if s.Width > 0 && !s.Wide {
		return s.Width
	}
	return math.MaxInt32
}

// PageWidth is how many characters a line of columns side by side should have: as many as there are, and not
// arbitrarily many where the screen is unknown.
func PageWidth(s *iostreams.Streams) int {
	if s.Width == 0 && !s.Wide {
		return defaultWidth
	}
	return ScreenWidth(s)
}

// WriteSideBySide prints a table whose first column has the names of the rows and whose others are compared. It fits
// the screen: cells are broken into lines, and where even that does not help, the columns follow each other in several
// tables. headings are Grid.Headings.
func WriteSideBySide(s *iostreams.Streams, header []string, rows [][]string, headings ...int) {
	widest := 0
	for i := range header[1:] {
		widest = max(widest, columnWidth(header, rows, i+1))
	}
	room := PageWidth(s) - columnWidth(header, rows, 0) - 2
	sides := max(len(header)-1, 1)
	width := min(widest, max(room/sides-2, leastColumn))
	at := max(1, min(sides, room/(width+2)))
	for from := 1; from < len(header); from += at {
		if from > 1 {
			s.Printf("\n")
		}
		to := min(from+at, len(header))
		pick := func(row []string) []string { return append([]string{row[0]}, row[from:to]...) }
		g := Grid{Header: pick(header), Rows: picked(rows, pick), Headings: headings, sides: true}
		g.print(s, append([]int{math.MaxInt}, slices.Repeat([]int{width}, to-from)...))
	}
}

// columnWidth is the width of a column.
func columnWidth(header []string, rows [][]string, i int) int {
	widest := text.StringWidthWithoutEscSequences(header[i])
	for _, row := range rows {
		widest = max(widest, text.StringWidthWithoutEscSequences(row[i]))
	}
	return widest
}

// TableWidth is how many characters the lines of a table take, with two blanks behind each cell.
func TableWidth(header []string, rows [][]string) (width int) {
	for i := range header {
		width += columnWidth(header, rows, i) + 2
	}
	return width
}

// boundStyle is the name of a bound in a table: arithmetic, memory and latency have a colour each.
func boundStyle(s *iostreams.Streams, bound string) iostreams.Styled {
	switch bound {
	case arch.BoundCompute.String():
		return s.Paint(bound, iostreams.Cyan)
	case arch.BoundL1.String(), arch.BoundSharedMemory.String(), arch.BoundL2.String(), arch.BoundMALL.String(),
		arch.BoundDRAM.String():
		return s.Paint(bound, iostreams.Magenta)
	case arch.BoundLatency.String(), arch.BoundIssue.String():
		return s.Paint(bound, iostreams.Yellow)
	}
	return iostreams.Styled(bound)
}

// Hang breaks a line at a width. The lines that go on begin at a column.
func Hang(line string, column, width int) string {
	if width-column < 2*leastColumn {
		column = min(column, 6)
	}
	letters := []rune(line)
	if text.StringWidthWithoutEscSequences(line) <= width || width-column < leastColumn {
		return line
	}
	end := width
	for end > column && letters[end] != ' ' {
		end--
	}
	if end == column { // one long word
		end = width
	}
	rest := wrapped(strings.TrimLeft(string(letters[end:]), " "), width-column)
	return wrapped(string(letters[:end]), width) + strings.ReplaceAll("\n"+rest, "\n", "\n"+strings.Repeat(" ", column))
}

// wrapped breaks a text between words, or within a word that is too long.
func wrapped(words string, width int) string {
	lines := strings.Split(text.WrapSoft(words, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
