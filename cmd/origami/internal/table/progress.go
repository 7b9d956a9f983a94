package table

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
)

const (
	// soon is how long work lasts before it is worth a bar.
	soon = time.Second
	// tick is how often a bar is drawn.
	tick = 200 * time.Millisecond
	// barLength is the number of letters in a bar.
	barLength = 20
)

// Bar shows on the terminal of stderr how far long work is and how much time is left, until Stop. Elsewhere it shows
// nothing.
type Bar struct {
	s          *iostreams.Streams
	quit, gone chan struct{} // nil without a terminal

	mutex       sync.Mutex
	begun       time.Time
	message     string
	done, total int64
}

// NewBar begins a bar without a known end, which is drawn at once.
func NewBar(s *iostreams.Streams, message string) *Bar { return newBar(s, message, 0) }

// NewLateBar begins a bar without a known end, which is drawn if the work lasts.
func NewLateBar(s *iostreams.Streams, message string) *Bar { return newBar(s, message, soon) }

// NewListBar is NewLateBar for work on the problems that --problems names. There is no bar while a user types them.
func NewListBar(s *iostreams.Streams, message, problems string) *Bar {
	if problems == "-" && s.InTerminal {
		return &Bar{}
	}
	return NewLateBar(s, message)
}

func newBar(s *iostreams.Streams, message string, after time.Duration) *Bar {
	b := &Bar{s: s, begun: time.Now(), message: message}
	if s.ErrTerminal {
		b.quit, b.gone = make(chan struct{}), make(chan struct{})
		go b.run(after)
	}
	return b
}

// run draws the bar now and then.
func (b *Bar) run(after time.Duration) {
	defer close(b.gone)
	defer b.s.SetStatus("")
	next := time.NewTimer(after)
	defer next.Stop()
	for {
		select {
		case <-b.quit:
			return
		case <-next.C:
			b.s.SetStatus(b.line(time.Now()))
			next.Reset(tick)
		}
	}
}

// line is what is shown, as "[#####...............]  25 %, 12s left: predicting".
func (b *Bar) line(now time.Time) string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	passed := now.Sub(b.begun)
	if b.done <= 0 || b.total <= 0 {
		return fmt.Sprintf("[%s] %s: %s", strings.Repeat(".", barLength), seconds(passed), b.message)
	}
	share := min(float64(b.done)/float64(b.total), 1)
	full := int(share * barLength)
	left := time.Duration(float64(passed) * (1 - share) / share)
	return fmt.Sprintf("[%s%s] %3.0f %%, %s left: %s", strings.Repeat("#", full), strings.Repeat(".", barLength-full),
		100*share, seconds(left), b.message)
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }

// Shown reports whether there is a terminal to show it on.
func (b *Bar) Shown() bool { return b.quit != nil }

// Set says how much of how much work is done, in any unit. A total of 0 is unknown. The work begins where nothing of it
// is done.
func (b *Bar) Set(done, total int64) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if done == 0 {
		b.begun = time.Now()
	}
	b.done, b.total = done, total
}

// Add says that more of the work is done.
func (b *Bar) Add(more int64) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.done += more
}

// SetLeft says how much work is left after what is done.
func (b *Bar) SetLeft(left int64) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.total = b.done + left
}

// SetShare says which share of the work is done, from 0 to 1. A share of 0 may be unknown, and changes nothing.
func (b *Bar) SetShare(share float64) {
	if share > 0 {
		b.Set(int64(share*1e6), 1e6)
	}
}

// SetMessage replaces the text beside the bar.
func (b *Bar) SetMessage(text string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.message = text
}

// Warn writes a line that stays, above the bar.
func (b *Bar) Warn(text string) { b.s.Warn(text) }

// Stop ends the bar and leaves nothing of it. It may be called again.
func (b *Bar) Stop() {
	if b.quit == nil {
		return
	}
	select {
	case <-b.gone:
	default:
		close(b.quit)
		<-b.gone
	}
}

// Work begins a bar that is drawn if the work lasts. done counts parts of total.
func Work(s *iostreams.Streams, message string, total int) (done func(parts int), stop func()) {
	b := NewLateBar(s, message)
	b.Set(0, int64(total))
	return func(parts int) { b.Add(int64(parts)) }, b.Stop
}
