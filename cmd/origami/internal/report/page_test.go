package report

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/figure"
)

func written(t *testing.T, p *Page) string {
	t.Helper()
	var b strings.Builder
	if err := p.File(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Columns of numbers are set right with their header, long text alone is broken into lines, foreign text is text, and a
// short row is filled up.
func TestTables(t *testing.T) {
	p := &Page{Title: "a <b>"}
	s := p.Section("<one>")
	s.Table("of sides", []string{"side", "time", "checked"}, [][]string{
		{"4090", "1.20 ms", "on 12450 published times of this device, median error 5.59 %"},
		{"<i>", "–", "never"}, {"short"},
	})
	text := written(t, p)
	for _, want := range []string{
		`<tr><th scope="col">side</th><th scope="col" class="n">time</th><th scope="col" class="long">checked</th></tr>`,
		`<td>4090</td><td class="n">1.20 ms</td>`, `<td>short</td><td class="n"></td>`,
		`<td>&lt;i&gt;</td><td class="n">–</td><td class="long">never</td>`, "<h1>a &lt;b&gt;</h1>",
		`<h2 id="s1-title">&lt;one&gt;</h2>`, "@media (prefers-color-scheme: dark)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}

// A figure is drawn into the page, its texts are text, and the table behind it has all numbers.
func TestFigure(t *testing.T) {
	p := &Page{}
	p.Section("s").Figure(&figure.Figure{Title: "</figcaption><b>", Y: figure.Axis{Names: []string{"</svg><b>"}},
		Marks:  []figure.Mark{{Kind: figure.Dots, Rows: []figure.Row{{X: 1.0, Y: "</svg><b>", Tip: "<!--"}}}},
		Header: []string{"x"}, Rows: [][]string{{"1"}},
	})
	text := written(t, p)
	for _, want := range []string{`<svg viewBox="0 0 `, `aria-labelledby="caption-1"`, "<title>&lt;!--</title>",
		`fill="var(--c0)"`, "<td>1</td>", "&lt;/figcaption&gt;&lt;b&gt;", `class="slim"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, "<b>") {
		t.Error("a text is markup")
	}
}

// The colours of the page's style are those that files have.
func TestColours(t *testing.T) {
	style, err := Assets.ReadFile("assets/page.css")
	if err != nil {
		t.Fatal(err)
	}
	f := &figure.Figure{X: figure.Axis{Label: "x"}}
	for i := range 7 {
		f.Marks = append(f.Marks, figure.Mark{Kind: figure.Dots, Series: i, Rows: []figure.Row{{X: 1.0, Y: 1.0}}})
	}
	svg := string(f.SVG("source"))
	for _, name := range []string{"text", "faint", "line", "c0", "c1", "c2", "c3", "c4", "c5", "c6"} {
		colour := regexp.MustCompile(`--` + name + `: (#[0-9a-f]{6});`).FindSubmatch(style)
		if colour == nil || !strings.Contains(svg, `"`+string(colour[1])+`"`) {
			t.Errorf("files lack the page's colour %s, %s", name, colour)
		}
	}
}

// A file needs no other: it names no address but its own parts, and forbids the rest.
func TestFileNeedsNothing(t *testing.T) {
	p := &Page{Title: "x"}
	for _, title := range []string{"a", "b", "c"} {
		p.Section(title).Choice("which", []string{"one", "two"})
	}
	text := written(t, p)
	if !strings.Contains(text, `content="default-src 'none'; `) {
		t.Error("the page may load what it likes")
	}
	for _, found := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(found[1], "#") && found[1] != "data:," {
			t.Errorf("it refers to %s", found[1])
		}
	}
	ids := map[string]bool{}
	for _, found := range regexp.MustCompile(`\bid="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if ids[found[1]] {
			t.Errorf("two parts are called %s", found[1])
		}
		ids[found[1]] = true
	}
}

// Text can be read on what is behind it, and colours of figures can be told from the page, in light and in dark. The
// Web Content Accessibility Guidelines ask for 4.5 and 3.
func TestContrast(t *testing.T) {
	style, err := Assets.ReadFile("assets/page.css")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile(`(?s)(?:^|\) \{\s+):root \{(.*?)\}`).FindAllStringSubmatch(string(style), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d sets of colours", len(blocks))
	}
	for _, block := range blocks {
		colours := map[string]float64{}
		for _, c := range regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{3,6});`).FindAllStringSubmatch(block[1], -1) {
			colours[c[1]] = luminance(t, c[2])
		}
		contrast := func(a, b string, least float64) {
			x, okX := colours[a]
			y, okY := colours[b]
			if got := (max(x, y) + 0.05) / (min(x, y) + 0.05); !okX || !okY || got < least {
				t.Errorf("%s on %s has a contrast of %.2f", a, b, got)
			}
		}
		for _, text := range []string{"text", "faint", "link"} {
			contrast(text, "page", 4.5)
			contrast(text, "panel", 4.5)
		}
		contrast("text", "note", 4.5)
		contrast("text", "error", 4.5)
		contrast("on-accent", "accent", 4.5)
		for i := range 7 {
			contrast(fmt.Sprintf("c%d", i), "page", 3)
		}
	}
}

// luminance is that of the guidelines.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	var rgb [3]int
	if _, err := fmt.Sscanf(hex, "%2x%2x%2x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
		t.Fatal(hex, err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v := float64(rgb[i]) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}
