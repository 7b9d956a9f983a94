package benchcmd

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/core/score"
)

// report writes the outcome into a folder: bench.md with the table and the plots, bench.csv and bench.json with the
// numbers, and the plots as SVG and PNG. Files of an earlier report are replaced.
func (w *writer) report(folder string) error {
	to := report.Folder(folder)
	if err := to.Make(); err != nil {
		return err
	}
	if len(w.rows) == 0 {
		return nil // what went wrong has been said
	}
	title := fmt.Sprintf("%s, %s model, kernel family %s", w.arch.ID(), w.arch.Model, w.data.Kernel)
	var points []score.Point
	for i := range w.rows {
		points = append(points, w.rows[i].Points...)
	}
	scatter, err := report.Scatter(folder, "predicted-measured", title, points)
	if err != nil {
		return report.Unwritable(folder, err)
	}
	bars, err := report.ThreeWays(folder, "three-ways", title, w.data.Libraries(), w.rows)
	if err != nil {
		return report.Unwritable(folder, err)
	}
	if err := to.Numbers("bench", w.again); err != nil {
		return err
	}
	// Thousands of points are smaller as pixels.
	return to.Text("bench.md", w.markdown(title, bars.SVG, scatter.PNG))
}

// again writes all rows to another stream, in another format.
func (w *writer) again(s *iostreams.Streams, format render.Format) error {
	other := newWriter(s, format, w.arch, w.data)
	for i := range w.rows {
		if err := other.write(&w.rows[i]); err != nil {
			return err
		}
	}
	return other.close()
}

func (w *writer) markdown(title, bars, scatter string) string {
	t := w.text()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n%s\n\n%s", title, report.List(t.above), report.Table(t.header, t.rows),
		report.List(t.below))
	fmt.Fprintf(&b, "\n![rate of the pick, the best candidate and the libraries](%s)\n\n![predicted against measured "+
		"times](%s)\n", bars, scatter)
	w.listExcluded(&b)
	return b.String()
}

// listExcluded lists the measurements that have no valid time.
func (w *writer) listExcluded(b *strings.Builder) {
	heading := "\n## Left out\n\n"
	for i := range w.rows {
		for _, e := range w.rows[i].Excluded {
			fmt.Fprintf(b, "%s- %s, %s: %s: %s\n", heading, w.rows[i].Problem, e.Label(), words(e.Status),
				strings.Join(strings.Fields(e.Detail), " "))
			heading = ""
		}
	}
}
