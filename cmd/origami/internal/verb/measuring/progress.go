package measuring

import "github.com/origami-gemm/origami/cmd/origami/internal/iostreams"

// Progress is a bar, and warnings above it.
type Progress struct {
	*iostreams.Bar

	s *iostreams.Streams
}

// NewProgress begins a bar. Stop ends it.
func NewProgress(s *iostreams.Streams, message string) *Progress {
	return &Progress{iostreams.NewBar(s, message), s}
}

// Warn writes a line that stays.
func (p *Progress) Warn(text string) { p.s.Warn(text) }
