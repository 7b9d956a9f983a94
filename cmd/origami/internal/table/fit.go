package table

import (
	"fmt"
	"math"
	"slices"
	"strings"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/printable"
)

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
	if len(left) > 0 {
		defer func() {
			Lines(s, fmt.Sprintf("not shown: %s; --wide shows all columns", strings.Join(left, ", ")))
		}()
	}
	if over := TableWidth(g.Header, g.Rows) - 2 - room; over > 0 {
		g.fold(over)
	}
	g.print(s)
}

// WriteTable prints aligned columns, see Grid.
func WriteTable(s *iostreams.Streams, header []string, rows [][]string, headings ...int) {
	Grid{Header: header, Rows: rows, Headings: headings}.Write(s)
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
		if at == 0 {
			continue
		}
		g.leaveOut(at)
		left = append(left, name)
	}
	slices.Reverse(left)
	return left
}

func (g *Grid) leaveOut(column int) {
	without := func(row []string) []string { return slices.Delete(slices.Clone(row), column, column+1) }
	g.Header, g.Rows = without(g.Header), picked(g.Rows, without)
}

// fold breaks the cells of the widest column behind the first into lines that are shorter by over, as far as that
// leaves something to read.
func (g *Grid) fold(over int) {
	at, widest := 0, 0
	for i := 1; i < len(g.Header); i++ {
		if width := columnWidth(g.Header, g.Rows, i); width > widest {
			at, widest = i, width
		}
	}
	width := max(widest-over, leastColumn)
	if width >= widest {
		return
	}
	widths := make([]int, len(g.Header))
	widths[at] = width
	lines, bold := folded(append([][]string{g.Header}, g.Rows...), widths, g.Headings)
	g.Header, g.Rows, g.Headings = lines[0], lines[1:], bold
}

func (g *Grid) print(s *iostreams.Streams) {
	w := pretty.NewWriter()
	style := pretty.StyleLight
	style.Options = pretty.Options{SeparateColumns: true}
	style.Box.MiddleVertical = " "
	style.Box.PaddingLeft, style.Box.PaddingRight = "", " "
	style.Format.Header = text.FormatDefault
	w.SetStyle(style)
	head := make(pretty.Row, len(g.Header))
	columns := make([]pretty.ColumnConfig, len(g.Header))
	for i, h := range g.Header {
		head[i] = string(s.Bold(h))
		columns[i] = pretty.ColumnConfig{Number: i + 1, Align: text.AlignLeft, AlignHeader: text.AlignLeft}
		if numeric(g.Rows, i) {
			columns[i].Align, columns[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	w.SetColumnConfigs(columns)
	w.AppendHeader(head)
	for i, row := range g.Rows {
		cells := make(pretty.Row, len(row))
		for j := range row {
			cells[j] = s.Letters(printable.Line(row[j]))
			switch {
			case g.Header[j] == boundColumn:
				cells[j] = string(BoundStyle(s, row[j]))
			case g.wins(row, j):
				cells[j] = string(s.Winner(row[j]))
			}
		}
		if slices.Contains(g.Headings, i) {
			cells[0] = string(s.Bold(row[0]))
		}
		w.AppendRow(cells)
	}
	for line := range strings.Lines(w.Render()) {
		s.Printf("%s\n", iostreams.Styled(strings.TrimRight(line, " \n")))
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
// tables. headings are as in WriteTable.
func WriteSideBySide(s *iostreams.Streams, header []string, rows [][]string, headings ...int) {
	names, widest := 0, 0
	for _, row := range append([][]string{header}, rows...) {
		names = max(names, text.StringWidthWithoutEscSequences(row[0]))
		for _, cell := range row[1:] {
			widest = max(widest, text.StringWidthWithoutEscSequences(cell))
		}
	}
	room := PageWidth(s) - names - 2
	sides := max(len(header)-1, 1)
	width := min(widest, max(room/sides-2, leastColumn))
	at := max(1, min(sides, room/(width+2)))
	for from := 1; from < len(header); from += at {
		if from > 1 {
			s.Printf("\n")
		}
		to := min(from+at, len(header))
		pick := func(row []string) []string { return append([]string{row[0]}, row[from:to]...) }
		widths := slices.Repeat([]int{width}, to-from+1)
		widths[0] = 0
		lines, bold := folded(append([][]string{pick(header)}, picked(rows, pick)...), widths, headings)
		side := Grid{Header: lines[0], Rows: lines[1:], Headings: bold, sides: true}
		side.print(s)
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

// folded breaks the cells of each column into lines of its width, 0 for any. The first row is a header. headings are
// numbers of the other rows, which it translates.
func folded(rows [][]string, widths []int, headings []int) (lines [][]string, bold []int) {
	for i, row := range rows {
		cells := make([][]string, len(row))
		height := 1
		for j, cell := range row {
			cells[j] = []string{cell}
			if widths[j] > 0 {
				cells[j] = brokenText(printable.Line(cell), widths[j])
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
	for {
		head, rest := cut(cell, width)
		if lines = append(lines, head); rest == "" {
			return lines
		}
		cell = rest
	}
}

// cut cuts a text at a width: after a blank or a comma, or in a longer word, as in a product behind its last sign.
func cut(line string, width int) (head, rest string) {
	letters := []rune(line)
	if len(letters) <= width {
		return line, ""
	}
	word, sign := 0, 0 // the last places behind a word and behind a sign
	for i := 1; i <= width; i++ {
		switch {
		case letters[i] == ' ' && (i+1 == len(letters) || letters[i+1] != '%') || letters[i-1] == ',':
			word = i
		case strings.ContainsRune("*/(", letters[i-1]):
			sign = i
		}
	}
	end := width
	if word < width/2 && sign > width/2 {
		end = sign
	} else if word > 0 {
		end = word
	}
	return strings.TrimRight(string(letters[:end]), " "), strings.TrimLeft(string(letters[end:]), " ")
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

// BoundStyle is the name of a bound in a table: arithmetic, memory and latency have a colour each.
func BoundStyle(s *iostreams.Streams, bound string) iostreams.Styled {
	switch bound {
	case arch.BoundCompute.String():
		return s.Paint(bound, iostreams.Cyan)
	case arch.BoundL1.String(), arch.BoundSharedMemory.String(), arch.BoundL2.String(), arch.BoundMALL.String(),
		arch.BoundDRAM.String():
		return s.Paint(bound, iostreams.Magenta)
	case arch.BoundLatency.String(), arch.BoundIssue.String():
		return s.Paint(bound, iostreams.Yellow)
	}
	return iostreams.Styled(s.Letters(bound))
}
