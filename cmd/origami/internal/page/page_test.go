package page

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
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

// data finds what the scripts read.
var data = regexp.MustCompile(`(?s)<script type="application/json">(.*?)</script>`)

// A figure cannot end its script, and has no numbers that JSON or a logarithm lacks.
func TestFigure(t *testing.T) {
	p := &Page{}
	p.Section("s").Figure(&Figure{
		Title: "</script><b>", X: Axis{Label: "x", Log: true}, Y: Axis{Names: []string{"</script>"}},
		Marks: []Mark{{Kind: Dots, Rows: []Row{
			{X: 1.0, Y: "</script>", Tip: "<!--"}, {X: 0.0, Y: "a"}, {X: math.NaN(), Y: "a"}, {X: 1.0, Y: "a", X2: math.Inf(1)},
		}}},
		Header: []string{"x"}, Rows: [][]string{{"1"}},
	})
	text := written(t, p)
	found := data.FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("%d data scripts", len(found))
	}
	var s struct {
		Title string
		Marks []struct {
			Kind string
			Rows []struct {
				X   float64
				Y   string
				Tip string
			}
		}
	}
	if err := json.Unmarshal([]byte(found[0][1]), &s); err != nil {
		t.Fatal(err, found[0][1])
	}
	if s.Title != "</script><b>" || len(s.Marks) != 1 || len(s.Marks[0].Rows) != 1 || s.Marks[0].Rows[0].Tip != "<!--" {
		t.Errorf("%+v", s)
	}
	if strings.Contains(text, "</script><b>") {
		t.Error("a title is markup")
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

// The libraries are those that were published.
func TestVendored(t *testing.T) {
	readme, err := os.ReadFile("assets/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d3.min.js", "plot.umd.min.js"} {
		file, err := Assets.ReadFile("assets/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(file)); !strings.Contains(string(readme), sum) {
			t.Errorf("%s is not what assets/README.md says: %s", name, sum)
		}
		if strings.Contains(string(file), "</script") {
			t.Errorf("%s ends its own element", name)
		}
	}
}
