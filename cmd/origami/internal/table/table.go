// Package table writes tables for people, and the lines and sentences around them.
package table

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
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

// JSONLine writes v as one line of JSON.
func JSONLine(s *iostreams.Streams, v any) error {
	line, err := ask.Encode(v)
	if err != nil {
		return err
	}
	_, err = s.Data().Write(line)
	return err
}

// WriteColumns prints rows with their columns aligned and no header. All rows must have the same number of cells. The
// last cells are broken into lines where the screen is too narrow.
func WriteColumns(s *iostreams.Streams, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			row[i] = s.Letters(printable.Line(cell))
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], text.StringWidthWithoutEscSequences(row[i]))
		}
	}
	before := 0
	for _, width := range widths[:max(len(widths)-1, 0)] {
		before += width + 2
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i < len(row)-1 {
				cell = text.Pad(cell, widths[i]+2, ' ')
			}
			line.WriteString(cell)
		}
		for _, part := range broken(s, strings.TrimRight(line.String(), " "), before) {
			s.Printf("%s\n", part)
		}
	}
}

// broken breaks a line where the screen ends. The further lines are indented.
func broken(s *iostreams.Streams, line string, indent int) []string {
	room := ScreenWidth(s)
	if room-indent < 2*leastColumn {
		indent = min(indent, 6)
	}
	if text.StringWidthWithoutEscSequences(line) <= room || room-indent < leastColumn {
		return []string{line}
	}
	head, rest := cut(line, room)
	lines := []string{head}
	for rest != "" {
		head, rest = cut(rest, room-indent)
		lines = append(lines, strings.Repeat(" ", indent)+head)
	}
	return lines
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

// Pasted reports whether a format is for configurations that are pasted into a program.
func (f Format) Pasted() bool { return slices.Contains(config.PasteFormats, string(f)) }
