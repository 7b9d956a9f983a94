package measurecmd

import (
	"fmt"
	"time"

	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
)

// progress shows on a terminal how far a sweep is. Elsewhere it shows warnings only.
type progress struct {
	*table.Bar

	data     *dataset.Dataset
	problems []problems.Problem

	begun   time.Time
	current int // the problem that is being measured, from 1
	// per is the number of configurations of the last problem that was begun.
	per, finished, total int
}

func newProgress(s *iostreams.Streams, sweep *measure.Sweep, list []problems.Problem) *progress {
	return &progress{
		Bar: table.NewBar(s, "measuring"), data: sweep.Data, problems: list, begun: time.Now(),
	}
}

// begin says that a problem is next, with todo of all its configurations left to measure.
func (p *progress) begin(problem gemm.Problem, all, todo int) {
	p.current++
	p.per = all
	p.total = p.finished + todo
	left := int64(todo) * weight(problem)
	for _, later := range p.problems[min(p.current, len(p.problems)):] {
		n := max(0, all-p.data.SweepLen(later.Problem))
		p.total += n
		left += int64(n) * weight(later.Problem)
	}
	if p.Shown() {
		p.SetLeft(left)
		p.show(problem)
	}
}

// done says that a configuration has been measured.
func (p *progress) done(m dataset.Measurement) {
	p.finished++
	if p.Shown() {
		p.Add(weight(m.Problem))
		p.show(m.Problem)
	}
}

func (p *progress) show(problem gemm.Problem) {
	rate := float64(p.finished) / max(time.Since(p.begun).Seconds(), 1e-3)
	p.SetMessage(fmt.Sprintf("%d/%d configs, %.1f/s, %d/%d %s", p.finished, p.total, rate, p.current,
		len(p.problems), problem))
}
