package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Columns of numbers are set right with their header, long text alone is broken into lines, and foreign text is text.
func TestHTMLTables(t *testing.T) {
	h := &HTML{Title: "a <b>"}
	h.Table([]string{"side", "time", "checked"}, [][]string{
		{"4090", "1.20 ms", "on 12450 published times of this device, median error 5.59 %"}, {"<i>", "–", "never"},
	})
	to := Folder(t.TempDir())
	if err := to.HTML("page.html", h); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(string(to), "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, want := range []string{
		`<tr><th>side</th><th class="n">time</th><th class="long">checked</th></tr>`,
		`<td>4090</td><td class="n">1.20 ms</td>`,
		`<td>&lt;i&gt;</td><td class="n">–</td><td class="long">never</td>`, "<h1>a &lt;b&gt;</h1>",
		"@media (prefers-color-scheme: dark)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}
