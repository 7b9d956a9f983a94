package iostreams

import (
	"bytes"
	"io"
	"sync"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/origami-gemm/origami/core/printable"
)

// screen is the terminal of the standard error: lines that stay, and below them the status, one line that changes.
type screen struct {
	width func() int // of the terminal, 0 if unknown

	mutex  sync.Mutex
	to     io.Writer // the standard error
	status string    // empty for none
	// partial: the last line that stays has no end yet, so that there is no room for the status.
	partial, shown, closed bool
}

// defaultWidth is the width of a terminal that does not tell its own.
const defaultWidth = 80

// clearLine goes to the begin of the line and clears it.
const clearLine = "\r\x1b[K"

// write writes text that stays, above the status.
func (s *screen) write(to io.Writer, lines []byte) (int, error) {
	if len(lines) == 0 {
		return 0, nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.hide()
	n, err := to.Write(lines)
	s.partial = !bytes.HasSuffix(lines, []byte("\n"))
	s.show()
	return n, err
}

// set replaces the status.
func (s *screen) set(status string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.hide()
	s.status = status
	s.show()
}

// close removes the status for good.
func (s *screen) close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.hide()
	s.closed = true
}

func (s *screen) hide() {
	if s.shown {
		_, _ = io.WriteString(s.to, clearLine) // what is lost is a status
		s.shown = false
	}
}

func (s *screen) show() {
	if s.status == "" || s.partial || s.closed {
		return
	}
	width := defaultWidth
	if s.width != nil {
		if w := s.width(); w > 0 {
			width = w
		}
	}
	// A full line would move the cursor to the next one on some terminals.
	_, _ = io.WriteString(s.to, clearLine+text.Trim(s.status, width-1))
	s.shown = true
}

// above writes to a stream that is on the same terminal as the standard error.
type above struct {
	screen *screen
	to     io.Writer
}

func (a above) Write(lines []byte) (int, error) { return a.screen.write(a.to, lines) }

// SetStatus shows one line below all others on the terminal of the standard error, instead of the one before. Lines of
// both streams come above it. The text may be foreign. An empty one removes the line.
func (s *Streams) SetStatus(text string) { s.screen.set(printable.Line(text)) }

// CloseStatus removes the line of SetStatus, and shows none again: the process is about to end.
func (s *Streams) CloseStatus() { s.screen.close() }
