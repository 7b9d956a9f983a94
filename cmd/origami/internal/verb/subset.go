package verb

import (
	"context"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/score"
)

// Subset returns what of the measurements that read returns can be scored, or the context's error as soon as it is
// cancelled.
func Subset(ctx context.Context, read func() (*dataset.Dataset, error)) (*score.Subset, error) {
	return UntilCancelled(ctx, func() (*score.Subset, error) {
		data, err := read()
		if err != nil {
			return nil, err
		}
		return score.SubsetOf(data), nil
	})
}
