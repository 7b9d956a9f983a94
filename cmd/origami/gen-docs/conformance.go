package main

import (
	_ "embed" // conformanceIntroduction
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/sdk/conformance"
)

// conformanceIntroduction stands before the lists of the checks.
//
//go:embed conformance.txt
var conformanceIntroduction string

func conformancePage() string {
	var b strings.Builder
	b.WriteString(mark + conformanceIntroduction)
	for _, kind := range []struct {
		title  string
		checks []conformance.Check
	}{
		{"Plugins that model architectures", conformance.ArchitectureChecks()},
		{"Plugins that run kernels", conformance.ExecutorChecks()},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n", kind.title)
		for _, c := range kind.checks {
			fmt.Fprintf(&b, "- `%s`: %s\n", c.Name, c.Doc)
		}
	}
	return b.String()
}
