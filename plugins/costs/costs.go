// Package costs has the constants that commands read besides the terms of a model (arch.Reader): costs.json, with where
// each was measured. A device of another generation is assumed to have the same until somebody measures it there.
package costs

import (
	_ "embed" // costs.json
	"encoding/json"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
)

//go:embed costs.json
var file []byte

// numbers are the constants as they were measured: on devices of a generation, or of none, and stated by some models,
// or by all.
var numbers = sync.OnceValue(func() (list []struct {
	arch.Constant
	Generation string
	Models     []string
}) {
	if err := json.Unmarshal(file, &list); err != nil {
		panic(err) // tests read the file
	}
	return list
})

// Of returns the constants that a model states for a device of a generation. A number of the generation itself follows
// that of another one, and replaces it.
func Of(model, generation string) (all []arch.Constant) {
	for _, n := range numbers() {
		if len(n.Models) > 0 && !slices.Contains(n.Models, model) {
			continue
		}
		own := n.Generation == "" || n.Generation == generation
		if !own {
			n.Source = "assumed, as of the generation " + n.Generation + ": " + n.Source
		}
		at := slices.IndexFunc(all, func(other arch.Constant) bool { return other.Name == n.Name })
		if at < 0 {
			all = append(all, n.Constant)
		} else if own {
			all[at] = n.Constant
		}
	}
	return all
}
