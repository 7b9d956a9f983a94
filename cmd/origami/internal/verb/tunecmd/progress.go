package tunecmd

import (
	"fmt"
	"time"

	bar "github.com/jedib0t/go-pretty/v6/progress"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/core/tune"
)

// progress shows on a terminal how far a tuning is. Elsewhere it shows warnings only.
type progress struct {
	s       *iostreams.Streams
	run     *tuning
	t       *tune.Tuner
	bar     bar.Writer // nil without a terminal
	end     func()
	tracker bar.Tracker
}

func newProgress(s *iostreams.Streams, run *tuning, t *tune.Tuner) *progress {
	p := &progress{s: s, run: run, t: t}
	if s.ErrTerminal {
		p.tracker = bar.Tracker{Message: "tuning", AutoStopDisabled: true}
		p.bar, p.end = render.Progress(s, &p.tracker)
	}
	return p
}

// show says how many sizes are open. The measurements that are left are expected to be as many per size as those that
// were made.
func (p *progress) show(open int) {
	if p.bar == nil {
		return
	}
	made := len(p.t.Log)
	left := max(open, open*made/max(1, len(p.t.Sizes)-open))
	if p.t.Most > 0 {
		left = min(left, p.t.Most-made)
	}
	p.tracker.SetValue(int64(made))
	p.tracker.UpdateTotal(int64(made + left))
	rate := float64(made) / max(time.Since(p.run.begun).Seconds(), 1e-3)
	p.tracker.UpdateMessage(fmt.Sprintf("%d measured, %.1f/s, %d of %d sizes open", made, rate, open, len(p.t.Sizes)))
}

// warn writes a line that stays.
func (p *progress) warn(text string) {
	if p.bar == nil {
		p.s.Warn(text)
		return
	}
	p.bar.Log("%s", p.s.Warning(text))
}

func (p *progress) stop() {
	if p.bar != nil {
		p.end()
	}
}
