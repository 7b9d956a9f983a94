// Package report writes the outcome of a command into a folder: Markdown with plots for a reader, CSV and JSON with the
// numbers.
package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/core/diag"
)

// Folder is where a report is written. Files of an earlier report are replaced.
type Folder string

// Make makes the folder.
func (f Folder) Make() error {
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return Unwritable(string(f), err)
	}
	return nil
}

// Numbers writes name.csv and name.json with write, which gets a stream of that format.
func (f Folder) Numbers(name string, write func(*iostreams.Streams, render.Format) error) error {
	for _, format := range []render.Format{render.CSV, render.JSON} {
		path := filepath.Join(string(f), name+"."+string(format))
		if err := numbers(path, format, write); err != nil {
			return Unwritable(path, err)
		}
	}
	return nil
}

func numbers(path string, format render.Format, write func(*iostreams.Streams, render.Format) error) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	s := iostreams.Plain(strings.NewReader(""), file, file)
	if err := write(s, format); err != nil {
		return err
	}
	return s.Flush()
}

// Text writes a file of text.
func (f Folder) Text(name, text string) error {
	path := filepath.Join(string(f), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return Unwritable(path, err)
	}
	return nil
}

// Table writes a table in Markdown.
func Table(header []string, rows [][]string) string {
	grid := table.NewWriter()
	line := func(cells []string) table.Row {
		row := make(table.Row, len(cells))
		for i, c := range cells {
			row[i] = c
		}
		return row
	}
	grid.AppendHeader(line(header))
	for _, row := range rows {
		grid.AppendRow(line(row))
	}
	return grid.RenderMarkdown()
}

// List writes lines as a list in Markdown, with runs of blanks as one.
func List(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "- %s\n", strings.Join(strings.Fields(line), " "))
	}
	return b.String()
}

// Unwritable is the error for a report that cannot be written.
func Unwritable(path string, err error) error {
	return &diag.Error{What: fmt.Sprintf("the report cannot be written: %v", err), Where: path,
		Fix: "name another folder with --report", Err: err}
}
