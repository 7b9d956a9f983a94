package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/origami-gemm/origami/core/roofline"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
)

// The same figure is the same file.
func TestFiguresAreTheSameFiles(t *testing.T) {
	var points []score.Point
	side := RoofSide{Name: "one", Device: &roofline.Device{Ceilings: []roofline.Ceiling{
		{Name: "fp16", Level: roofline.Compute, Limit: 1e15}, {Name: "DRAM", Level: roofline.DRAM, Limit: 4e12}}}}
	for i := range 12 {
		x := float64(i + 1)
		points = append(points, score.Point{Predicted: unit.Seconds(x * 1e-5), Measured: unit.Seconds(x * x * 1e-6)})
		side.Points = append(side.Points, RoofPoint{Level: roofline.DRAM, X: 10 * x, Y: 1e13 * x})
	}
	for name, draw := range map[string]func(Place) (Files, error){
		"scatter":  func(to Place) (Files, error) { return Scatter(to, "f", "points", points) },
		"roofline": func(to Place) (Files, error) { return Roofline(to, "f", "roofs", []RoofSide{side}) },
	} {
		var first []byte
		for range 2 {
			to := Place{Folder: t.TempDir()}
			files, err := draw(to)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(to.Folder, files.SVG))
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && !bytes.Equal(first, text) {
				t.Errorf("%s: the files differ", name)
			}
			first = text
		}
	}
}

// An axis of percent has a few ticks, all of whole numbers within it, whatever its span.
func TestPercentTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		first     string
		count     int
	}{
		{97.6, 103, "98 %", 6}, {55, 110, "55 %", 12}, {60, 180, "60 %", 7}, {0, 1234, "0 %", 7}, {99.5, 100.5, "100 %", 1},
	} {
		ticks := percentTicks(c.low, c.high)
		if len(ticks) != c.count || ticks[0].Label != c.first {
			t.Errorf("%v to %v: %v", c.low, c.high, ticks)
		}
	}
}
