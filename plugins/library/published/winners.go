package published

import (
	_ "embed" // the table
	"fmt"
	"strconv"
	"sync"

	"github.com/origami-gemm/origami/core/score"
)

// winners.csv is written with the scores of the models.
//
//go:embed winners.csv
var winnersCSV []byte

// Named says how often the family library named the faster one of two devices, of the shapes of a class that were timed
// on both, with times that differ by more than score.Decided.
type Named struct{ Right, Decided int }

type pair struct {
	first, second, dtype, scheme string
	class                        string
}

// WinnerNamed returns how often the faster one of two devices, in any order, was named right. An empty scheme is that
// of operands without scales, or with one for the matrix. Without enough shapes it returns zeros.
func WinnerNamed(first, second, dtype, scheme string, class score.Layer) Named {
	if first > second {
		first, second = second, first
	}
	if scheme != "" {
		return winners()[pair{first, second, dtype, scheme, class.String()}]
	}
	none := winners()[pair{first, second, dtype, NoScheme, class.String()}]
	if none.Decided > 0 {
		return none
	}
	return winners()[pair{first, second, dtype, TensorScheme, class.String()}]
}

var winners = sync.OnceValue(func() map[pair]Named {
	out := map[pair]Named{}
	err := rows(winnersCSV, 7, func(c []string) error {
		decided, err := strconv.Atoi(c[5])
		if err != nil {
			return err
		}
		right, err := strconv.Atoi(c[6])
		out[pair{c[0], c[1], c[2], c[3], c[4]}] = Named{right, decided}
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("published: %v", err)) // a test reads it
	}
	return out
})
