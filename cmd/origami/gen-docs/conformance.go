package main

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/sdk/conformance"
)

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
		fmt.Fprintf(&b, "\n## %s\n\n| check | requirement |\n| --- | --- |\n", kind.title)
		for _, c := range kind.checks {
			fmt.Fprintf(&b, "| `%s` | %s |\n", c.Name, c.Doc)
		}
	}
	return b.String()
}

const conformanceIntroduction = `# Conformance checks of plugins

origami relies on promises of its plugins: the same bits for the same request, an error for an impossible request, an
answer in time. The checks below test these promises; each has a name. They go through gRPC with the client that origami
uses. They cover every architecture, device, model and kernel family of the manifest (32 of them if there are more), and
problems of one element, with prime sizes, one row or a long K, with batches, and with every storage order and element
type that the model takes.

A plugin in Go runs the checks as subtests:

` + "```go" + `
func TestConformance(t *testing.T) {
	conformance.Architecture(t, myProvider{}, conformance.Options{}) // or conformance.Executor
}
` + "```" + `

A plugin in any language is checked as a binary:

` + "```sh" + `
origami plugin check ./origami-plugin-mine
` + "```" + `

A line per check says ` + "`ok`, `FAIL` or `skip`" + `, with the findings below it. The exit code is 3 if a check fails.
With ` + "`--json`" + ` there is an object per check:
` + "`plugin`, `check`, `result` (`ok`, `fail`, `skip`), `seconds`, `findings`, `reason` (why it is skipped), `demands`." + `
The binary runs even if it is not in the lock file: you named it ([ADR 14](adr/0014-checking-a-binary.md)). A check that
kills the plugin's process fails. The next check gets a new process.

` + "`-short` (`--short`)" + ` checks only the default device of each architecture, and fewer problems. So do tests under
the race detector. They also leave out the one check that measures time, as ` + "`Options.Untimed` (`--untimed`)" + ` does.

**Golden rankings** show a change of predictions before a user sees it. ` + "`Options.Golden` (`--golden FILE`)" + `
names a file with a JSON object per line: a problem, the five best configurations and their totals. They must be
reproduced bit for bit. ` + "`Options.UpdateGolden` (`--update-golden`)" + ` writes the file. The check then fails, so
that the option is not left on.

**Monotone.** A larger K must not have a shorter predicted time. A model that promises the same for M or N lists them in
` + "`arch.Description.Monotone`" + `, and is checked for it. A model that cannot promise it even for K declares
` + "`DimNone`" + `, as AMD's reference model does where it emulates tf32. No built-in model is monotone in M and N: if
there are few tiles, more tiles reach more of the memory bandwidth.

Without a device, the checks of an executor that need one are skipped. With ` + "`ORIGAMI_REQUIRE_GPU=1`" + ` they fail.
`
