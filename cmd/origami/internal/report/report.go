// Package report writes the outcome of a command into a folder: Markdown with plots for a reader, CSV and JSON with the
// numbers.
package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	pretty "github.com/jedib0t/go-pretty/v6/table"

	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/page"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/core/score"
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
func (f Folder) Numbers(name string, write func(*iostreams.Streams, table.Format) error) error {
	for _, format := range []table.Format{table.CSV, table.JSON} {
		path := filepath.Join(string(f), name+"."+string(format))
		if err := numbers(path, format, write); err != nil {
			return Unwritable(path, err)
		}
	}
	return nil
}

// CSV writes rows into name.csv.
func (f Folder) CSV(name string, header []string, rows [][]string) error {
	path := filepath.Join(string(f), name+".csv")
	err := numbers(path, table.CSV, func(s *iostreams.Streams, format table.Format) error {
		return table.WriteRows(s, format, header, rows)
	})
	if err != nil {
		return Unwritable(path, err)
	}
	return nil
}

func numbers(path string, format table.Format, write func(*iostreams.Streams, table.Format) error) error {
	return create(path, func(file io.Writer) error {
		s := iostreams.Plain(strings.NewReader(""), file, file)
		if err := write(s, format); err != nil {
			return err
		}
		return s.Flush()
	})
}

// create writes a file. An error of closing it counts, since what was written may be lost.
func create(path string, write func(io.Writer) error) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	return write(file)
}

// Page is a page in Markdown. What its methods are given may be foreign.
type Page struct{ text strings.Builder }

// Heading writes a heading: level 1 is the title of the page.
func (p *Page) Heading(level int, text string) {
	p.paragraph(strings.Repeat("#", level) + " " + printable.Markdown(text) + "\n")
}

// List writes the lines of a terminal as a list: "label   text" as "label: text", and a line that begins with blanks as
// more of the one before. Runs of blanks become one.
func (p *Page) List(lines []string) {
	var items []string
	for _, line := range lines {
		if label, text, ok := strings.Cut(line, "  "); ok && label != "" && strings.TrimSpace(text) != "" {
			line = label + ": " + text
		}
		text := strings.Join(strings.Fields(line), " ")
		if last := len(items) - 1; last >= 0 && strings.HasPrefix(line, " ") {
			items[last] += ", " + text
		} else {
			items = append(items, text)
		}
	}
	var b strings.Builder
	for _, item := range items {
		b.WriteString("- " + printable.Markdown(item) + "\n")
	}
	p.paragraph(b.String())
}

// Table writes a table.
func (p *Page) Table(header []string, rows [][]string) {
	grid := pretty.NewWriter()
	line := func(cells []string) pretty.Row {
		row := make(pretty.Row, len(cells))
		for i, c := range cells {
			row[i] = printable.Markdown(c)
		}
		return row
	}
	grid.AppendHeader(line(header))
	for _, row := range rows {
		grid.AppendRow(line(row))
	}
	p.paragraph(grid.RenderMarkdown() + "\n")
}

// Image shows a file of the same folder.
func (p *Page) Image(what, file string) {
	p.paragraph("![" + printable.Markdown(what) + "](" + file + ")\n")
}

func (p *Page) paragraph(text string) {
	if p.text.Len() > 0 && text != "" {
		p.text.WriteString("\n")
	}
	p.text.WriteString(text)
}

// Page writes a page into a file.
func (f Folder) Page(name string, p *Page) error {
	path := filepath.Join(string(f), name)
	if err := os.WriteFile(path, []byte(p.text.String()), 0o644); err != nil {
		return Unwritable(path, err)
	}
	return nil
}

// Figure writes a figure as name.svg and name.png, with a line below that says where it comes from. It returns the name
// of the first.
func (f Folder) Figure(name string, picture *figure.Figure, source string) (svg string, err error) {
	svg = name + ".svg"
	pixels, err := picture.PNG(source)
	if err == nil {
		err = os.WriteFile(filepath.Join(string(f), name+".png"), pixels, 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(string(f), svg), picture.SVG(source), 0o644)
	}
	if err != nil {
		return "", Unwritable(string(f), err)
	}
	return svg, nil
}

// Agreement writes predicted-measured.svg and .png, if there is a time, and shows the figure on a page.
func (f Folder) Agreement(p *Page, title string, times []score.Point, source string) error {
	picture := figure.Agreement(title, times)
	if picture == nil {
		return nil
	}
	svg, err := f.Figure("predicted-measured", picture, source)
	p.Image("predicted against measured times", svg)
	return err
}

// Source says where figures about a device come from: the device, the day, the version and the words of the command.
func Source(device string, args []string) string {
	return fmt.Sprintf("%s · %s · %s · origami %s", device, time.Now().UTC().Format(time.DateOnly), session.Software(),
		strings.Join(args, " "))
}

// HTML writes a page into a file.
func (f Folder) HTML(name string, p *page.Page) error {
	path := filepath.Join(string(f), name)
	if err := create(path, p.File); err != nil {
		return Unwritable(path, err)
	}
	return nil
}

// Unwritable is the error for a report that cannot be written.
func Unwritable(path string, err error) error {
	return &diag.Error{What: fmt.Sprintf("the report cannot be written: %v", err), Where: path,
		Fix: "name another folder with --report", Err: err}
}
