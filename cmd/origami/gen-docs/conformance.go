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
	}{{"Plugins that model architectures", conformance.ArchitectureChecks()},
		{"Plugins that run kernels", conformance.ExecutorChecks()}} {
		fmt.Fprintf(&b, "\n## %s\n\n| check | what is demanded |\n| --- | --- |\n", kind.title)
		for _, c := range kind.checks {
			fmt.Fprintf(&b, "| `%s` | %s |\n", c.Name, c.Doc)
		}
	}
	return b.String()
}

const conformanceIntroduction = `# What a plugin is held to

origami relies on what its plugins promise: the same bits for the same request, an error for what cannot be, an answer in
time. The checks below hold a plugin to that, each under a name. They go through gRPC with the client that origami uses,
over every architecture, device, model and kernel family that the manifest lists (of a long list, 32 spread over it), and
problems of one element, prime sizes, one row, long K, batches, every storage order and every element type that the model takes.

A plugin in Go runs them in its tests, each as a test of its own:

` + "```go" + `
func TestConformance(t *testing.T) {
	conformance.Architecture(t, myProvider{}, conformance.Options{}) // or conformance.Executor
}
` + "```" + `

Any plugin, in whatever language, is checked as the binary that it is:

` + "```sh" + `
origami plugin check ./origami-plugin-mine
` + "```" + `

A line per check says ` + "`ok`, `FAIL` or `skip`" + `; what is wrong stands below it. The exit code is 3 if a check fails. With
` + "`--json`" + ` it is an object per check: ` + "`plugin`, `check`, `result` (`ok`, `fail`, `skip`), `seconds`, `findings`, `reason` (why it is skipped), `demands`." + `
The binary runs though it is not in the lock file, as naming it is the consent
([ADR 14](adr/0014-checking-a-binary.md)). A check that takes the plugin's process along fails, and those after it get a fresh one.

` + "`-short` (`--short`)" + ` checks the default device of each architecture only, and fewer problems; so do tests under the race
detector. The one check that takes a time is left out there and with ` + "`Options.Untimed` (`--untimed`)" + `.

**Golden rankings** show a change of predictions before a user does. ` + "`Options.Golden` (`--golden FILE`)" + ` names a file with a
JSON object per line: a problem, the five best configurations and their totals, which must come out to the bit.
` + "`Options.UpdateGolden` (`--update-golden`)" + ` writes it; the check fails then, so that nobody leaves that on.

**Monotone.** More K must never be predicted to take less time. A model for which the same holds in M or N says so in
` + "`arch.Description.Monotone`" + ` and is held to it; one that knows that it does not keep it even in K declares ` + "`DimNone`" + `, as
AMD's reference model does where it emulates tf32. None of the built-in models is monotone in M and N: where tiles are few, more of
them reach more of the memory bandwidth.

Without a device the checks of an executor that need one are skipped. With ` + "`ORIGAMI_REQUIRE_GPU=1`" + ` they fail.
`
