package selector

import (
	"context"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// fastest is mapped, and finds the fastest by itself: the estimates of the others are too low. It counts its calls.
type fastest struct {
	mapped
	window float64
	asked  int
}

func (f *fastest) Describe() *arch.Description {
	return &arch.Description{Arch: "test", Device: "test", Order: arch.Order{Window: f.window}}
}

func (f *fastest) EstimateFastest(
	ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config, top int,
) error {
	f.asked++
	err := f.Estimate(ctx, dst, p, cfgs)
	for i := range dst[:len(dst)-top] {
		dst[i] = arch.Estimate{Cycles: 99}
	}
	return err
}

// A ranking of a few asks an architecture for these alone, if it can, and has the same result. A ranking of all, and
// one that orders candidates with similar totals, estimate all.
func TestFastest(t *testing.T) {
	for _, test := range []struct {
		top    int
		window float64
		asked  int
	}{{1, 0, 1}, {3, 0, 1}, {0, 0, 0}, {3, 0.05, 0}} {
		a := &fastest{window: test.window}
		var got, want Result
		must.Do(t, New(a, arch.Space{}).Rank(t.Context(), gemm.New(64, 64, 64), test.top, &got))
		must.Do(t, New(&a.mapped, arch.Space{}).Rank(t.Context(), gemm.New(64, 64, 64), test.top, &want))
		must.Equal(t, a.asked, test.asked, test.top, test.window)
		for i, e := range got.Entries {
			if e != want.Entries[i] && test.window == 0 {
				t.Errorf("top %d: entry %d is %+v, want %+v", test.top, i, e, want.Entries[i])
			}
		}
	}
}
