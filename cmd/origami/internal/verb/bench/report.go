package benchverb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/plots"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/record"
)

// report writes the outcome into a folder: bench.md with the table and the plots, bench.csv and bench.json with the
// numbers, and the plots as SVG and PNG. Files of an earlier report are replaced.
func (w *writer) report(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return unwritable(folder, err)
	}
	if len(w.rows) == 0 {
		return nil // what went wrong has been said
	}
	title := fmt.Sprintf("%s, %s model, kernel family %s", w.arch.ID(), w.arch.Model, w.data.Kernel)
	scatter, err := plots.Scatter(folder, "predicted-measured", title, w.rows)
	if err != nil {
		return unwritable(folder, err)
	}
	bars, err := plots.ThreeWays(folder, "three-ways", title, w.data.Libraries(), w.rows)
	if err != nil {
		return unwritable(folder, err)
	}
	for _, format := range []render.Format{render.CSV, render.JSON} {
		if err := w.copyTo(filepath.Join(folder, "bench."+string(format)), format); err != nil {
			return err
		}
	}
	// Thousands of points are smaller as pixels.
	path := filepath.Join(folder, "bench.md")
	if err := os.WriteFile(path, []byte(w.markdown(title, bars.SVG, scatter.PNG)), 0o644); err != nil {
		return unwritable(path, err)
	}
	return nil
}

// copyTo writes all rows again, in another format, to a file.
func (w *writer) copyTo(path string, format render.Format) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return unwritable(path, err)
	}
	defer func() {
		if e := f.Close(); err == nil && e != nil {
			err = unwritable(path, e)
		}
	}()
	s := iostreams.Plain(strings.NewReader(""), f, f)
	own := newWriter(s, format, w.arch, w.data)
	for i := range w.rows {
		if err := own.write(&w.rows[i]); err != nil {
			return unwritable(path, err)
		}
	}
	if err := own.close(); err != nil {
		return unwritable(path, err)
	}
	if err := s.Flush(); err != nil {
		return unwritable(path, err)
	}
	return nil
}

func (w *writer) markdown(title, bars, scatter string) string {
	t := w.text()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", title)
	for _, line := range t.above {
		fmt.Fprintf(&b, "- %s\n", strings.Join(strings.Fields(line), " "))
	}
	grid := table.NewWriter()
	header := make(table.Row, len(t.header))
	for i, h := range t.header {
		header[i] = h
	}
	grid.AppendHeader(header)
	for _, row := range t.rows {
		cells := make(table.Row, len(row))
		for i, c := range row {
			cells[i] = c
		}
		grid.AppendRow(cells)
	}
	fmt.Fprintf(&b, "\n%s\n\n", grid.RenderMarkdown())
	for _, line := range t.below {
		fmt.Fprintf(&b, "- %s\n", strings.Join(strings.Fields(line), " "))
	}
	fmt.Fprintf(&b, "\n![rate of the pick, the best candidate and the libraries](%s)\n\n![predicted against measured times](%s)\n", bars, scatter)
	w.listExcluded(&b)
	return b.String()
}

// listExcluded lists what was measured and does not count.
func (w *writer) listExcluded(b *strings.Builder) {
	heading := "\n## Left out\n\n"
	for i := range w.rows {
		for _, e := range w.rows[i].Excluded {
			fmt.Fprintf(b, "%s- %s, %s: %s: %s\n", heading, w.rows[i].Problem, record.Label(e.Config), words(e.Status), strings.Join(strings.Fields(e.Detail), " "))
			heading = ""
		}
	}
}

func unwritable(path string, err error) error {
	return &diag.Error{What: fmt.Sprintf("the report cannot be written: %v", err), Where: path, Fix: "name another folder with --report", Err: err}
}
