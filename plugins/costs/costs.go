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

// number is a constant as it was measured.
type number struct {
	Name, Unit, Doc, Source string
	Value                   float64
	// Generation is that of the devices that it was measured on, empty if it is of none.
	Generation string
	// Models are those that state it, none for all.
	Models []string
}

var numbers = sync.OnceValue(func() (list []number) {
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
		c := arch.Constant{Name: n.Name, Value: n.Value, Unit: n.Unit, Doc: n.Doc, Source: n.Source}
		own := n.Generation == "" || n.Generation == generation
		at := slices.IndexFunc(all, func(other arch.Constant) bool { return other.Name == n.Name })
		switch {
		case at >= 0 && own:
			all[at] = c
		case at >= 0:
		case own:
			all = append(all, c)
		default:
			c.Source = "assumed, as of the generation " + n.Generation + ": " + n.Source
			all = append(all, c)
		}
	}
	return all
}
