package benchcmd

import (
	"fmt"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/measuring"
	"github.com/origami-gemm/origami/core/score"
)

// report writes the outcome into a folder: bench.md with the table and the plots, bench.csv and bench.json with the
// numbers, and the plots as SVG and PNG. Files of an earlier report are replaced.
func (w *writer) report(folder string, args []string) error {
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
	place := report.PlaceOf(folder, w.arch.DeviceName, args)
	scatter, err := report.Scatter(place, "predicted-measured", title, points)
	if err != nil {
		return report.Unwritable(folder, err)
	}
	bars, err := report.ThreeWays(place, "three-ways", title, w.data.Libraries(), w.comparisons())
	if err != nil {
		return report.Unwritable(folder, err)
	}
	if err := to.Numbers("bench", w.again); err != nil {
		return err
	}
	return to.Page("bench.md", w.page(title, bars.SVG, scatter.SVG))
}

// again writes all rows to another stream, in another format.
func (w *writer) again(s *iostreams.Streams, format table.Format) error {
	other := newWriter(s, format, w.arch, w.data, w.labels)
	for i := range w.rows {
		if err := other.write(w.rows[i]); err != nil {
			return err
		}
	}
	return other.close()
}

func (w *writer) page(title, bars, scatter string) *report.Page {
	s := w.summarised()
	var p report.Page
	p.Heading(1, title)
	p.List(w.above())
	p.Table(w.columns(&s).Text(w.rows))
	p.List(w.below(&s))
	p.Image("speed of the pick and of the libraries, relative to the fastest candidate", bars)
	p.Image("predicted against measured times", scatter)
	if excluded := w.excluded(); len(excluded) > 0 {
		p.Heading(2, "Left out")
		p.List(excluded)
	}
	return &p
}

// excluded lists the measurements that have no valid time.
func (w *writer) excluded() (lines []string) {
	for i := range w.rows {
		for _, e := range w.rows[i].Excluded {
			lines = append(lines, fmt.Sprintf("%s, %s: %s: %s", w.rows[i].Problem, e.Label(),
				measuring.Words(e.Status), e.Detail))
		}
	}
	return lines
}
