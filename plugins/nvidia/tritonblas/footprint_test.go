package tritonblas

import (
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/plugins/nvidia/tritonblas/terms"
)

// The closed form of the footprint equals a count over the program ids.
func TestFootprintCountsTheLaunchOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		gridM, gridN, g := 1+rng.IntN(40), 1+rng.IntN(40), terms.Groups[rng.IntN(len(terms.Groups))]
		wave := 1 + rng.IntN(min(gridM*gridN, 200))
		seenRows, seenColumns := map[int]bool{}, map[int]bool{}
		for id := range wave {
			first := id / (g * gridN) * g
			height := min(gridM-first, g)
			in := id % (g * gridN)
			seenRows[first+in%height] = true
			seenColumns[in/height] = true
		}
		if rows, columns := footprint(wave, g, gridM, gridN); rows != len(seenRows) || columns != len(seenColumns) {
			t.Fatalf("footprint(%d, %d, %d, %d) = %d, %d, want %d, %d", wave, g, gridM, gridN, rows, columns,
				len(seenRows), len(seenColumns))
		}
	}
}
