package data

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/timing"
)

// near has times of picks, a file per device and kernel family, a row of residual.Measured a line: `go test
// ./plugins/nvidia -run TestNear -update` writes them. Files of kernels back to back end in -model.
//
//go:embed near/*.jsonl
var near embed.FS

// known are the decoded files, by name.
var known sync.Map

// Near returns what reads the recorded times of a kernel family on a device, nil without any. Those of kernels back to
// back count for timings of such kernels, and there before those between events.
func Near(device, kernel string, asked timing.Timing) func() []residual.Measured {
	// Of triton_persistent none are of kernels back to back. It is held at the power limit as triton is, by assumption:
	// otherwise it would be named the faster one for what nobody measured.
	name := fmt.Sprintf("near/%s-%s-model.jsonl", device, strings.TrimSuffix(kernel, "_persistent"))
	text, err := near.ReadFile(name)
	apart := asked == "" || asked == timing.Events || asked == timing.Host || asked == timing.Alone
	if apart || err != nil {
		name = fmt.Sprintf("near/%s-%s.jsonl", device, kernel)
		if text, err = near.ReadFile(name); err != nil {
			return nil
		}
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
