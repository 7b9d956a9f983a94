package show

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
	// quiet is how long work says nothing where there is no terminal.
	quiet = time.Minute
	// barLength is the number of letters in a bar.
	barLength = 20
)

// Bar shows on the terminal of stderr how far long work is and how much time is left, until Stop. Elsewhere it writes a
// line each minute.
type Bar struct {
	s          *iostreams.Streams
	quit, gone chan struct{} // nil if nothing is shown

	mutex       sync.Mutex
	begun       time.Time
	message     string
	done, total int64
}

// NewBar begins a bar without a known end, which is drawn if the work lasts.
func NewBar(s *iostreams.Streams, message string) *Bar {
	b := &Bar{s: s, begun: time.Now(), message: message}
	b.quit, b.gone = make(chan struct{}), make(chan struct{})
	if s.ErrTerminal {
		go b.run(soon, tick, func() { s.SetStatus(b.line(time.Now())) })
	} else {
		go b.run(quiet, quiet, func() { s.Note(b.text(time.Now())) })
	}
	return b
}

// NewListBar is NewBar for work on the problems that --problems names. There is no bar while a user types them.
func NewListBar(s *iostreams.Streams, message, problems string) *Bar {
	if problems == "-" && s.InTerminal {
		return &Bar{}
	}
	return NewBar(s, message)
}

// run shows how far the work is after a while, and then again and again.
func (b *Bar) run(after, every time.Duration, show func()) {
	defer close(b.gone)
	defer b.s.SetStatus("")
	next := time.NewTimer(after)
	defer next.Stop()
	for {
		select {
		case <-b.quit:
			return
		case <-next.C:
			show()
			next.Reset(every)
		}
	}
}

// line is what a terminal shows.
func (b *Bar) line(now time.Time) string {
	share, text := b.state(now)
	full := int(share * barLength)
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barLength-full), text)
}

// text is what a line elsewhere says.
func (b *Bar) text(now time.Time) string {
	_, text := b.state(now)
	return strings.TrimSpace(text)
}

// state is which share of the work is done, and how far that is.
func (b *Bar) state(now time.Time) (share float64, text string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	passed := now.Sub(b.begun)
	if b.done <= 0 || b.total <= 0 {
		return 0, fmt.Sprintf("%s: %s", seconds(passed), b.message)
	}
	share = min(float64(b.done)/float64(b.total), 1)
	left := time.Duration(float64(passed) * (1 - share) / share)
	return share, fmt.Sprintf("%3.0f %%, %s left: %s", 100*share, seconds(left), b.message)
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }

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
	b := NewBar(s, message)
	b.Set(0, int64(total))
	return func(parts int) { b.Add(int64(parts)) }, b.Stop
}
