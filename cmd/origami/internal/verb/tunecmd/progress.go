package tunecmd

import (
	"fmt"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/tune"
)

// progress shows on a terminal how far a tuning is. Elsewhere it shows warnings only.
type progress struct {
	*table.Bar

	run *tuning
	t   *tune.Tuner
}

func newProgress(s *table.Streams, run *tuning, t *tune.Tuner) *progress {
	return &progress{table.NewBar(s, "tuning"), run, t}
}

// show says how many sizes are open. The measurements that are left are expected to be as many per size as those that
// were made.
func (p *progress) show(open int) {
	if !p.Shown() {
		return
	}
	made := len(p.t.Log)
	left := max(open, open*made/max(1, len(p.t.Sizes)-open))
	if p.t.Most > 0 {
		left = min(left, p.t.Most-made)
	}
	p.Set(int64(made), int64(made+left))
	rate := float64(made) / max(time.Since(p.run.begun).Seconds(), 1e-3)
	p.SetMessage(fmt.Sprintf("%d measured, %.1f/s, %d of %d sizes open", made, rate, open, len(p.t.Sizes)))
}
