package data

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/residual"
)

// near has times of picks, a file per device and kernel family, a row of residual.Measured a line: `go test
// ./plugins/nvidia -run TestNear -update` writes them. Files of kernels back to back end in -model.
//
//go:embed near/*.jsonl
var near embed.FS

// known are the decoded files, by name.
var known sync.Map

// Near returns what reads the recorded times of a kernel family on a device, nil without any.
func Near(device, kernel string) func() []residual.Measured {
	// Of triton_persistent none are of kernels back to back. It is held at the power limit as triton is, by assumption:
	// otherwise it would be named the faster one for what nobody measured.
	name := device + "-" + kernel
	running, _ := near.ReadFile(fmt.Sprintf("near/%s-%s-model.jsonl", device, strings.TrimSuffix(kernel, "_persistent")))
	launch, _ := near.ReadFile(fmt.Sprintf("near/%s.jsonl", name))
	text := slices.Concat(running, launch)
	if len(text) == 0 {
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
