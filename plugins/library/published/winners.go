package published

import (
	"bytes"
	_ "embed" // the table
	"fmt"
	"sync"

	"github.com/origami-gemm/origami/core/columns"
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
	err := table("winners.csv", "first", "second", "dtype", "scheme", "class", "decided", "right").Each(
		bytes.NewReader(winnersCSV), func(r *columns.Row) error {
			p := pair{r.Text("first"), r.Text("second"), r.Text("dtype"), r.Text("scheme"), r.Text("class")}
			out[p] = Named{r.Number("right"), r.Number("decided")}
			return nil
		})
	if err != nil {
		panic(fmt.Sprintf("published: %v", err)) // a test reads it
	}
	return out
})
