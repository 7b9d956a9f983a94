package measurecmd

import (
	"fmt"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
)

// shownRemoved is how many of the measurements that were taken out are listed one by one.
const shownRemoved = 20

// mend takes the measurements out of the folder that were failed for faults of the executor, and lists them.
func (o *BenchOptions) mend() error {
	switch {
	case !o.Mend:
		return nil
	case o.Records == "":
		return diag.Inputf("it is not said which measurements to mend").At("--mend").Do("name their folder with --records")
	}
	removed, err := datastore.Mend(o.Records)
	for i, m := range removed {
		if i == shownRemoved {
			o.Factory.Streams.Note(fmt.Sprintf("… and %d more", len(removed)-i))
			break
		}
		o.Factory.Streams.Note(fmt.Sprintf("%s: %s of %s is taken out: %s: %s", m.Where, m.Label(), m.Problem,
			datastore.Words(m.Status), m.Detail))
	}
	if err != nil {
		return err
	}
	if len(removed) == 0 {
		o.Factory.Streams.Note("no failure in " + o.Records + " was the executor's fault")
		return nil
	}
	o.Factory.Streams.Note(fmt.Sprintf("%s taken out of %s; the next run with --executor measures %s again",
		digits.Plural(len(removed), "failure is", "failures are"), o.Records, them(len(removed))))
	return nil
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}
