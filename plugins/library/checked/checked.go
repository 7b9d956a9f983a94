// Package checked has how far the predicted times of kernel family library are from published times. It is apart from
// those, which only the command line needs.
package checked

import (
	"bytes"
	_ "embed" // the file
	"encoding/json"
	"fmt"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
)

// checked.jsonl is written by `make checked`.
//
//go:embed checked.jsonl
var lines []byte

type line struct {
	Device, Model, Scheme string
	Uncertainty           arch.UncertaintyRecord
}

var read = sync.OnceValue(func() []line {
	var all []line
	for text := range bytes.Lines(lines) {
		var one line
		if err := json.Unmarshal(text, &one); err != nil {
			panic(fmt.Sprintf("checked.jsonl: %v", err)) // a test reads it
		}
		all = append(all, one)
	}
	return all
})

// Of returns the uncertainty of the times of a model of a device (arch@device), an entry for each type, for a scheme of
// scales. Without scales and with one for a whole matrix are the same.
func Of(device, model, scheme string) []arch.Uncertainty {
	plain := func(s string) bool { return s == "" || s == "none" || s == "tensor" }
	var out []arch.Uncertainty
	for _, one := range read() {
		same := one.Scheme == scheme || plain(one.Scheme) && plain(scheme)
		if one.Device != device || one.Model != model || !same {
			continue
		}
		u, err := one.Uncertainty.Uncertainty()
		if err != nil {
			panic(fmt.Sprintf("checked.jsonl: %v", err))
		}
		out = append(out, u)
	}
	return out
}
