package measuring

import (
	bar "github.com/jedib0t/go-pretty/v6/progress"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
)

// Progress is a bar on the terminal of stderr. Elsewhere nothing is shown of it but warnings.
type Progress struct {
	bar.Tracker

	s    *iostreams.Streams
	bar  bar.Writer // nil without a terminal
	stop func()
}

// NewProgress begins a bar. Stop ends it.
func NewProgress(s *iostreams.Streams, message string) *Progress {
	p := &Progress{Tracker: bar.Tracker{Message: message, AutoStopDisabled: true}, s: s}
	if s.ErrTerminal {
		p.bar, p.stop = render.Progress(s, &p.Tracker)
	}
	return p
}

// Shown reports whether there is a terminal to show it on.
func (p *Progress) Shown() bool { return p.bar != nil }

// Warn writes a line that stays.
func (p *Progress) Warn(text string) {
	if p.bar == nil {
		p.s.Warn(text)
		return
	}
	p.bar.Log("%s", p.s.Warning(text))
}

// Stop ends the bar, and leaves nothing of it.
func (p *Progress) Stop() {
	if p.stop != nil {
		p.stop()
	}
}
