package figure

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"image/color"
	"image/png"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/roofline"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
)

// examples has a figure of each kind.
func examples() map[string]*Figure {
	var points []score.Point
	device := &roofline.Device{Ceilings: []roofline.Ceiling{
		{Name: "fp16", Level: roofline.Compute, Limit: 1e15}, {Name: "L2", Level: roofline.L2, Reached: 9e12},
		{Name: "DRAM", Level: roofline.DRAM, Limit: 4e12}}}
	side := RoofSide{Name: "one", Device: device}
	for i := range 12 {
		x := float64(i + 1)
		points = append(points, score.Point{Predicted: unit.Seconds(x * 1e-5), Measured: unit.Seconds(x * x * 1e-6)})
		side.Kernels = append(side.Kernels, RoofKernel{Name: "k", Large: i == 3, Kernel: roofline.Kernel{Rate: 1e13 * x,
			Points: []roofline.Point{{Level: roofline.DRAM, Intensity: 10 * x}, {Level: roofline.L2, Intensity: 5 * x}}}})
	}
	cells := &Figure{Title: "map", X: Axis{Label: "N", Names: []string{"16", "4096"}},
		Y: Axis{Label: "M", Names: []string{"1", "2"}}, Series: []string{"64x64", "128x64"},
		Marks: []Mark{{Kind: Cells, Series: 1, Rows: []Row{{X: "16", Y: "1", Text: "7", Tip: "cell"}}},
			{Kind: Cells, Rows: []Row{{X: "4096", Y: "2", Text: "8"}}}}}
	bars := &Figure{Title: "bars", Series: []string{"a", "b"}, X: Axis{Label: "time", Unit: "s"},
		Y: Axis{Names: []string{"first"}}, Marks: []Mark{
			{Kind: Bars, Rows: []Row{{X: 0.0, X2: 2e-6, Y: "first", Tip: "a"}}},
			{Kind: Bars, Series: 1, Rows: []Row{{X: 0.0, X2: -1e-6, Y: "first", Tip: "b"}}},
			{Kind: Texts, Series: Neutral, Rows: []Row{{X: 2e-6, Y: "first", Text: "1 µs"}}}}}
	groups := &Figure{Title: "groups", Series: []string{"a", "b"}, X: Axis{Label: "speed", Unit: "÷", Reference: 1},
		Y: Axis{Names: []string{"first", "second"}}, Marks: []Mark{
			{Kind: Groups, Rows: []Row{{X: 1.0, Y: "first"}, {X: 0.5, Y: "second"}}},
			{Kind: Groups, Series: 1, Rows: []Row{{X: 2.0, Y: "first"}, {X: math.NaN(), Y: "second"}}}}}
	return map[string]*Figure{
		"agreement": Agreement("times", points), "roofline": Roofline("roofs", []RoofSide{side}),
		"rooflines": Roofline("roofs", []RoofSide{side, side}), "cells": cells, "bars": bars, "groups": groups,
		"sorted": Sorted("curves", "share", "speed", []Curve{{"a", []float64{1, 0.5, 0.7}}, {"b", []float64{0.9}}}),
		"empty":  {Title: "nothing", X: Axis{Log: true}, Y: Axis{Log: true}},
		"one":    {Title: "a point", Marks: []Mark{{Kind: Dots, Rows: []Row{{X: 3.0, Y: 3.0}}}}},
	}
}

// The same figure is the same file, also after it was sent as JSON. Every drawing is XML with finite places.
func TestDrawings(t *testing.T) {
	for name, f := range examples() {
		pixels, err := f.PNG("where it is from")
		if err != nil {
			t.Fatal(name, err)
		}
		svg := f.SVG("where it is from")
		for i := range f.Marks { // JSON has no NaN
			f.Marks[i].Rows = slices.DeleteFunc(f.Marks[i].Rows, func(r Row) bool {
				v, ok := r.X.(float64)
				return ok && math.IsNaN(v)
			})
		}
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(name, err)
		}
		var again Figure
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(name, err)
		}
		same, err := again.PNG("where it is from")
		if err != nil || !bytes.Equal(same, pixels) || !bytes.Equal(again.SVG("where it is from"), svg) {
			t.Errorf("%s: the files differ: %v", name, err)
		}
		for _, text := range []string{string(svg), again.Inline("caption")} {
			if err := xml.Unmarshal([]byte("<a>"+text+"</a>"), new(struct{})); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Errorf("%s has a place that is no number", name)
			}
		}
		picture, err := png.Decode(bytes.NewReader(pixels))
		if err != nil || picture.Bounds().Dx() < 600 {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range []string{">" + f.Title + "</text>", ">where it is from<"} {
			if !strings.Contains(string(svg), want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
}

// A PNG has the colours of the figure where SVG has them: here a bar across the middle.
func TestPNGColours(t *testing.T) {
	f := &Figure{Series: []string{"a"}, Y: Axis{Names: []string{"x"}}, X: Axis{High: 1},
		Marks: []Mark{{Kind: Bars, Rows: []Row{{X: 0.0, X2: 1.0, Y: "x"}}}}}
	pixels, err := f.PNG("")
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(pixels))
	if err != nil {
		t.Fatal(err)
	}
	corners := regexp.MustCompile(`<g fill="#0072b2"><path d="M([0-9.]+) ([0-9.]+)L([0-9.]+) [0-9.]+L[0-9.]+ ([0-9.]+)`).
		FindSubmatch(f.SVG(""))
	if corners == nil {
		t.Fatalf("no bar: %s", f.SVG(""))
	}
	var at [4]float64
	for i := range at {
		if at[i], err = strconv.ParseFloat(string(corners[i+1]), 64); err != nil {
			t.Fatal(err)
		}
	}
	x, y := int((at[0]+at[2])/2*pngScale), int((at[1]+at[3])/2*pngScale)
	if got, want := color.NRGBAModel.Convert(picture.At(x, y)), ink("#0072b2").rgba(1); got != want {
		t.Errorf("%v at %d, %d in place of %v", got, x, y, want)
	}
	if got := color.NRGBAModel.Convert(picture.At(2, 2)); got != (color.NRGBA{0xFF, 0xFF, 0xFF, 0xFF}) {
		t.Errorf("the ground is %v", got)
	}
}

// What takes time away is left of zero, and the number behind a bar is where the parts above zero end.
func TestNegativeParts(t *testing.T) {
	svg := string(examples()["bars"].SVG(""))
	bar := func(tip string) (from, to float64) {
		found := regexp.MustCompile(`M([0-9.]+) [0-9.]+L([0-9.]+) [^>]*><title>` + tip + `<`).FindStringSubmatch(svg)
		if found == nil {
			t.Fatalf("no bar %s in %s", tip, svg)
		}
		from, _ = strconv.ParseFloat(found[1], 64)
		to, _ = strconv.ParseFloat(found[2], 64)
		return from, to
	}
	zero, right := bar("a")
	left, stop := bar("b")
	if !(left < stop && stop <= zero && zero < right) || math.Abs((right-zero)/(stop-left)-2) > 0.05 {
		t.Errorf("b from %v to %v, a from %v to %v", left, stop, zero, right)
	}
	if !strings.Contains(svg, ">−1 µs<") && !strings.Contains(svg, ">-1 µs<") {
		t.Error("the axis has no number below zero")
	}
}

// Text that may be foreign is text, one line of it, and a tip has its own lines only.
func TestForeignText(t *testing.T) {
	evil := "</text><b>\x1b[2J\n"
	f := &Figure{Title: evil, Series: []string{evil, "b"}, X: Axis{Label: evil}, Y: Axis{Names: []string{evil}},
		Marks: []Mark{{Kind: Bars, Rows: []Row{{X: 0.0, X2: 1.0, Y: evil, Tip: Tip("a\n%s", evil)}}},
			{Kind: Bars, Series: 1, Rows: []Row{{X: 1.0, X2: 2.0, Y: evil}}}}}
	for _, text := range []string{string(f.SVG(evil)), f.Inline("x")} {
		if strings.Contains(text, "<b>") || strings.Contains(text, "\x1b") {
			t.Errorf("foreign markup or control characters: %s", text)
		}
		if !strings.Contains(text, "<title>a&#xA;&lt;/text&gt;") {
			t.Error("the tip has lost its line")
		}
	}
}

// Rows without a place are left out, and all others stay.
func TestRowsWithoutPlace(t *testing.T) {
	f := &Figure{X: Axis{Log: true}, Marks: []Mark{{Kind: Dots, Rows: []Row{{X: 1.0, Y: 1.0, Tip: "kept"},
		{X: 0.0, Y: 1.0, Tip: "zero"}, {X: math.NaN(), Y: 1.0, Tip: "nan"}, {X: 1.0, Y: math.Inf(1), Tip: "inf"},
		{X: 10.0, Y: -1.0, Tip: "kept too"}}}}}
	found := regexp.MustCompile("<title>([^<]+)</title>").FindAllStringSubmatch(f.Inline("x"), -1)
	if len(found) < 2 || found[0][1] != "kept" || found[1][1] != "kept too" || strings.Contains(f.Inline("x"), ">zero<") {
		t.Errorf("%v", found)
	}
}

// A map crosses out the places without a value, says where its scale ends below the largest value, and writes numbers
// where they can be read alone.
func TestMap(t *testing.T) {
	f := examples()["cells"]
	if crosses := strings.Count(string(f.SVG("")), `opacity="0.4"`); crosses != 1 {
		t.Errorf("%d groups of crosses", crosses)
	}
	f.Scale, f.Series = &Scale{Label: "regret", Unit: "%", High: 0.2}, nil
	f.Marks = []Mark{{Kind: Cells, Rows: []Row{{X: "16", Y: "1", Value: 0.5, Text: "half"}}}}
	if svg := string(f.SVG("")); !strings.Contains(svg, ">≥ 20 %<") || !strings.Contains(svg, ">half<") {
		t.Errorf("%s", svg)
	}
	f.X.Names = nil
	for i := range 200 {
		f.X.Names = append(f.X.Names, strconv.Itoa(i))
	}
	f.Marks[0].Rows[0].X = "16"
	if svg := string(f.SVG("")); strings.Contains(svg, ">half<") {
		t.Error("a text is too small to be read")
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{1.23e-5, "s", "12.3 µs"}, {1e-4, "s", "100 µs"}, {0.5, "%", "50 %"}, {1, "÷", "1×"}, {0, "s", "0 s"},
		{1234567, "", "1.23e+06"}, {4096, "", "4100"}, {9.86e12, "B/s", "9.86 TB/s"}, {-1.5e-6, "s", "-1.5 µs"},
	} {
		if got := Number(c.v, c.unit); got != c.want {
			t.Errorf("%v %s: %q in place of %q", c.v, c.unit, got, c.want)
		}
	}
}

// Ticks are round numbers within the axis, in order, at least two and not many more than there is room for.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		log       bool
		most      int
	}{
		{0, 1, false, 8}, {29, 11700, false, 6}, {-3, 7, false, 5}, {0.97, 1.02, false, 8}, {1e-6, 2e-6, true, 5},
		{4, 2500, true, 9}, {1, 1.3, true, 4}, {1e-9, 1e9, true, 6},
	} {
		s := scaled{Axis: &Axis{Log: c.log}, low: c.low, high: c.high}
		ticks := s.ticks(c.most)
		if len(ticks) < 2 || len(ticks) > c.most+1 || !slices.IsSorted(ticks) ||
			ticks[0] < c.low*0.999-1e-9 || ticks[len(ticks)-1] > c.high*1.001 {
			t.Errorf("%+v: %v", c, ticks)
		}
		for _, v := range ticks {
			if digits, _, _ := strings.Cut(strconv.FormatFloat(rounded(v, 6), 'e', -1, 64), "e"); len(digits) > 5 {
				t.Errorf("%+v: %v is not round", c, v)
			}
		}
	}
}

// Classes of a map have a colour each, and from the ninth on a texture besides: what tells them apart are both.
func TestClasses(t *testing.T) {
	f := &Figure{Y: Axis{Names: []string{"m"}}}
	looks := map[string]bool{}
	for i := range 24 {
		f.Series, f.X.Names = append(f.Series, strconv.Itoa(i)), []string{"n"}
		f.Marks = []Mark{{Kind: Cells, Series: i, Rows: []Row{{X: "n", Y: "m"}}}}
		looks[string(f.SVG(""))] = true
		if _, err := f.PNG(""); err != nil {
			t.Error(err)
		}
	}
	if len(looks) != 24 {
		t.Errorf("24 classes have %d looks", len(looks))
	}
}

// The lightness of viridis grows evenly, which is what makes the colours readable without hue.
func TestViridis(t *testing.T) {
	last := -1.0
	for i := range 101 {
		l := luminance(viridis(float64(i) / 100))
		if l < last {
			t.Fatalf("%d %%: the luminance falls from %v to %v", i, last, l)
		}
		last = l
	}
	if viridis(-1) != viridis(0) || viridis(2) != viridis(1) {
		t.Error("shares outside of 0 to 1 have other colours")
	}
}

// Text on each colour of a cell has a contrast of at least 4.5.
func TestTextOnCells(t *testing.T) {
	fills := slices.Clone(classColours)
	for i := range 101 {
		fills = append(fills, viridis(float64(i)/100))
	}
	for _, f := range fills {
		a, b := luminance(f), luminance(f.onTop())
		if contrast := (max(a, b) + 0.05) / (min(a, b) + 0.05); contrast < 4.5 {
			t.Errorf("%v: contrast %.1f", f, contrast)
		}
	}
}

// luminance is WCAG's.
func luminance(i ink) (sum float64) {
	c := i.rgba(1)
	for k, v := range []uint8{c.R, c.G, c.B} {
		linear := float64(v) / 255 / 12.92
		if v > 10 {
			linear = math.Pow((float64(v)/255+0.055)/1.055, 2.4)
		}
		sum += linear * []float64{0.2126, 0.7152, 0.0722}[k]
	}
	return sum
}
