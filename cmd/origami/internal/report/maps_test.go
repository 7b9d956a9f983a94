package report

import (
	"encoding/xml"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMap draws both kinds and reads the files back.
func TestMap(t *testing.T) {
	folder := t.TempDir()
	m := &Map{Title: "a <title>", X: "N", Y: "M", Columns: []int{16, 4096}, Rows: []int{1, 2, 3},
		Texts: []string{"1", "", "3", "4", "5", "6"}}
	colours, err := m.Colours(Place{folder, "where it is from"}, "colours", Scale{
		Values: []float64{1, math.NaN(), 3, 4, 5, 60}, Most: 10,
		Format: Digits})
	if err != nil {
		t.Fatal(err)
	}
	classes, err := m.Classes(Place{Folder: folder}, "classes", Classes{
		Names: []string{"64×64", "other"}, Of: []int{0, 1, -1, 0, 0, 1},
		Place: []int{9, -1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range []Files{colours, classes} {
		text, err := os.ReadFile(filepath.Join(folder, files.SVG))
		if err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal(text, new(struct{})); err != nil {
			t.Errorf("%s: %v", files.SVG, err)
		}
		for _, want := range []string{"a &lt;title&gt;", ">4096<", ">6<"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %s", files.SVG, want)
			}
		}
		file, err := os.Open(filepath.Join(folder, files.PNG))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(file)
		_ = file.Close()
		if err != nil || picture.Bounds().Dx() < 200 {
			t.Errorf("%s: %v, %v", files.PNG, picture.Bounds(), err)
		}
	}
	svg, err := os.ReadFile(filepath.Join(folder, colours.SVG))
	if err != nil || !strings.Contains(string(svg), "≥ 10") {
		t.Errorf("the scale does not say that it ends below the largest value: %v", err)
	}
}

// TestViridis checks that lightness grows with the share, which is what makes the colours readable without hue.
func TestViridis(t *testing.T) {
	last := -1.0
	for i := range 101 {
		c := viridis(float64(i) / 100)
		if l := luminance(c); l < last {
			t.Fatalf("%d %%: the luminance falls from %v to %v", i, last, l)
		} else {
			last = l
		}
	}
	if viridis(-1) != viridis(0) || viridis(2) != viridis(1) {
		t.Error("shares outside of 0 to 1 have other colours")
	}
}

// TestInk checks that text on each colour has a contrast of at least 4.5 to 1.
func TestInk(t *testing.T) {
	fills := []fill{}
	for i := range classColours {
		fills = append(fills, classFill(i))
	}
	for i := range 101 {
		fills = append(fills, fill{colour: viridis(float64(i) / 100)})
	}
	for _, f := range fills {
		a, b := luminance(f.colour), luminance(color.NRGBAModel.Convert(f.ink()).(color.NRGBA))
		if contrast := (max(a, b) + 0.05) / (min(a, b) + 0.05); contrast < 4.5 {
			t.Errorf("%v: contrast %.1f", f.colour, contrast)
		}
	}
}

func TestScaleTicks(t *testing.T) {
	for _, x := range [][2]float64{{0, 1}, {29, 11700}, {0.2, 0.3}, {5, 5}, {1e-3, 1e6}} {
		ticks := scaleTicks(x[0], x[1])
		if len(ticks) > 12 || ticks[len(ticks)-1] != x[1] {
			t.Errorf("%v: %v", x, ticks)
		}
	}
}
