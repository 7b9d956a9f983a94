package datastore

import (
	"fmt"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
)

// checkInterval is how long a GPU measures between two looks at its known kernels. A look takes about a tenth of a
// second. What was measured since the last one is lost with the process.
const checkInterval = 10 * time.Second

// NewFleet returns a fleet that measures into a store. It tells a bar what goes wrong, and done of each measurement.
// best has a configuration for each problem of the whole work, with its predicted time, to choose known kernels from.
func NewFleet(
	store *Store, gpus []*measure.GPU, retryFailed bool, best []dataset.Measurement, predicted []unit.Seconds,
	bar *table.Bar, done func(dataset.Measurement),
) *measure.Fleet {
	f := &measure.Fleet{GPUs: gpus, Known: measure.KnownFrom(best, predicted), Data: store.Data, Interval: checkInterval}
	f.Keep = func(ms ...dataset.Measurement) error {
		if err := store.Append(ms...); err != nil {
			return err
		}
		return store.Sync()
	}
	for _, g := range gpus {
		g.RetryFailed, g.Retry = retryFailed, retrying(bar)
	}
	f.Done = telling(bar, done)
	f.Aside = func(g *measure.GPU, why error) {
		bar.Warn(fmt.Sprintf("GPU %s is set aside, and its work is for others: %s", g.Name, diag.Line(why)))
	}
	return f
}
