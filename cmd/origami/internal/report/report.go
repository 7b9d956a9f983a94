// Package report writes what a command found for its readers: into a folder, as Markdown with figures, CSV and JSON,
// and as a page for a browser.
package report

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	pretty "github.com/jedib0t/go-pretty/v6/table"

	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/core/score"
)

// Report is a folder with a page in Markdown, its figures, and the numbers. What its methods are given may be foreign.
// After the first error they do nothing.
type Report struct {
	folder, source string
	text           strings.Builder
	err            error
}

// Contents are what a command puts into a report: name.md has what Page writes, name.csv and name.json what Numbers
// writes in these formats. Figures are about Subject.
type Contents struct {
	Name, Subject string
	Numbers       func(*iostreams.Streams, table.Format) error
	Page          func(*Report)
}

// Write writes a report to the folder that --report names, where it replaces files of an earlier one, and says so.
// Without a folder it does nothing.
func Write(ctx context.Context, f *session.Factory, folder string, c Contents) error {
	if folder == "" {
		return nil
	}
	_, err := session.UntilCancelled(ctx, func() (struct{}, error) { return struct{}{}, c.write(folder, f.Args) })
	if err == nil {
		f.Streams.Note("the report is in " + folder)
	}
	return err
}

func (c *Contents) write(folder string, args []string) error {
	r := &Report{folder: folder, source: fmt.Sprintf("%s · %s · %s · origami %s", c.Subject,
		time.Now().UTC().Format(time.DateOnly), session.Software(), strings.Join(args, " "))}
	if r.check(folder, os.MkdirAll(folder, 0o755)); c.Page == nil {
		return r.err
	}
	c.Page(r)
	for _, format := range []table.Format{table.CSV, table.JSON} {
		r.numbers(c.Name+"."+string(format), format, c.Numbers)
	}
	if r.text.Len() > 0 {
		r.file(c.Name+".md", []byte(r.text.String()))
	}
	return r.err
}

// check keeps the first error, of a path.
func (r *Report) check(path string, err error) {
	if err != nil && r.err == nil {
		r.err = &diag.Error{What: fmt.Sprintf("the report cannot be written: %v", err), Where: path,
			Fix: "name another folder with --report", Err: err}
	}
}

func (r *Report) file(name string, text []byte) {
	if path := filepath.Join(r.folder, name); r.err == nil {
		r.check(path, os.WriteFile(path, text, 0o644))
	}
}

// Rows writes what write writes as CSV into name.csv.
func (r *Report) Rows(name string, write func(*iostreams.Streams, table.Format) error) {
	r.numbers(name+".csv", table.CSV, write)
}

func (r *Report) numbers(name string, format table.Format, write func(*iostreams.Streams, table.Format) error) {
	r.create(name, func(file io.Writer) error {
		s := iostreams.Plain(strings.NewReader(""), file, file)
		if err := write(s, format); err != nil {
			return err
		}
		return s.Flush()
	})
}

// create writes a file. An error of closing it counts, since what was written may be lost.
func (r *Report) create(name string, write func(io.Writer) error) {
	path := filepath.Join(r.folder, name)
	if r.err != nil {
		return
	}
	file, err := os.Create(path)
	if err == nil {
		err = write(file)
		if closed := file.Close(); err == nil {
			err = closed
		}
	}
	r.check(path, err)
}

// Heading writes a heading: level 1 is the title of the page.
func (r *Report) Heading(level int, text string) {
	r.paragraph(strings.Repeat("#", level) + " " + printable.Markdown(text) + "\n")
}

// List writes the lines of a terminal as a list: "label   text" as "label: text", and a line that begins with blanks as
// more of the one before. Runs of blanks become one.
func (r *Report) List(lines []string) {
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
	r.paragraph(b.String())
}

// Table writes a table.
func (r *Report) Table(header []string, rows [][]string) {
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
	r.paragraph(grid.RenderMarkdown() + "\n")
}

func (r *Report) paragraph(text string) {
	if r.text.Len() > 0 && text != "" {
		r.text.WriteString("\n")
	}
	r.text.WriteString(text)
}

// Figure draws a figure into name.svg and name.png, with a line below that says where it comes from, and shows it on
// the page. Nothing is drawn without a figure.
func (r *Report) Figure(name, what string, picture *figure.Figure) {
	if r.err != nil || picture == nil {
		return
	}
	r.Draw(name, picture)
	r.paragraph("![" + printable.Markdown(what) + "](" + name + ".svg)\n")
}

// Draw draws a figure into files alone.
func (r *Report) Draw(name string, picture *figure.Figure) {
	if r.err != nil {
		return
	}
	pixels, err := picture.PNG(r.source)
	r.check(r.folder, err)
	r.file(name+".png", pixels)
	r.file(name+".svg", picture.SVG(r.source))
}

// Agreement draws predicted against measured times, if there are any.
func (r *Report) Agreement(title string, times []score.Point) {
	r.Figure("predicted-measured", "predicted against measured times", figure.Agreement(title, times))
}

// HTML writes a page into a file.
func (r *Report) HTML(name string, p *Page) { r.create(name, p.File) }
