package data

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/origami-gemm/origami/core/residual"
)

// near has the shortest time of each problem of the data sets that the tests of package nvidia list, a file per device
// and kernel family, a row of residual.Measured a line: `go test ./plugins/nvidia -run TestNear -update` writes them.
//
//go:embed near/*.jsonl
var near embed.FS

// known are the decoded files, by name.
var known sync.Map

// Near returns what reads the recorded times of a kernel family on a device, between events. It is nil without any.
func Near(device, kernel string) func() []residual.Measured {
	name := fmt.Sprintf("near/%s-%s.jsonl", device, kernel)
	text, err := near.ReadFile(name)
	if err != nil {
		return nil
	}
	read, _ := known.LoadOrStore(name, sync.OnceValue(func() (all []residual.Measured) {
		for line := range bytes.Lines(text) {
			var one residual.Measured
			if err := json.Unmarshal(line, &one); err != nil {
				panic(fmt.Sprintf("%s: %v", name, err)) // a test reads it
			}
			all = append(all, one)
		}
		return all
	}))
	return read.(func() []residual.Measured)
}
