package main

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/formula/page"
	"github.com/origami-gemm/origami/plugins/amd-ref/refined/terms"
)

// path is that of the page from the folder of go generate.
const path = "../../../docs/model-amd-refined.md"

// fill returns the page with new tables.
func fill(text string) (string, error) {
	var b strings.Builder
	b.WriteString("\n## Quantities\n\n| quantity | unit | gfx900 | gfx90a | gfx942, gfx950 | bounds | what |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, q := range terms.Quantities {
		fmt.Fprintf(&b, "| `%s` | %s | %.4g | %.4g | %.4g | %.3g–%.3g | %s |\n",
			q.Name, q.Unit, q.Values[0], q.Values[1], q.Values[2], q.Low, q.High, q.Doc)
	}
	b.WriteString("\n## Equations\n")
	for _, part := range terms.Parts {
		fmt.Fprintf(&b, "\n### %s%s\n\n```text\n", strings.ToUpper(part.Name[:1]), part.Name[1:])
		for _, t := range part.Terms {
			if t.Input != "" {
				fmt.Fprintf(&b, "# %s (%s)\n%s: %s\n", t.Doc, t.Unit, t.Name, t.Input)
				continue
			}
			formula := strings.ReplaceAll(strings.Join(strings.Fields(t.Formula), " "), "( ", "(")
			fmt.Fprintf(&b, "# %s (%s)\n%s = %s\n", t.Doc, t.Unit, t.Name, formula)
		}
		b.WriteString("```\n")
	}
	b.WriteString("\n")
	return page.Fill(text, map[string]string{"the tables": b.String()})
}
