package render

import (
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
)

// soon is how long work lasts before it is worth a bar.
const soon = time.Second

// Work shows a bar with the time left on the terminal of stderr, if the work lasts, until stop. done counts parts of
// total.
func Work(s *iostreams.Streams, message string, total int) (done func(parts int), stop func()) {
	if !s.ErrTerminal {
		return func(int) {}, func() {}
	}
	tracker := &progress.Tracker{Message: message, Total: int64(total), AutoStopDisabled: true}
	var mutex sync.Mutex
	ended, end := false, func() {}
	timer := time.AfterFunc(soon, func() {
		mutex.Lock()
		defer mutex.Unlock()
		if !ended {
			_, end = Progress(s, tracker)
		}
	})
	return func(parts int) { tracker.Increment(int64(parts)) }, func() {
		timer.Stop()
		mutex.Lock()
		defer mutex.Unlock()
		ended = true
		end()
	}
}

// Progress shows a bar for long work on the terminal of stderr, until stop, which leaves nothing of it.
func Progress(s *iostreams.Streams, t *progress.Tracker) (bar progress.Writer, stop func()) {
	bar = progress.NewWriter()
	bar.SetOutputWriter(s.Screen())
	bar.SetTrackerLength(20)
	style := *bar.Style()
	style.Visibility.Value, style.Visibility.Time, style.Visibility.ETA = false, false, true
	style.Options.ETAString = "left "
	bar.SetStyle(style)
	t.RemoveOnCompletion = true
	bar.AppendTracker(t)
	go bar.Render()
	return bar, func() {
		bar.Stop()
		for bar.IsRenderInProgress() {
			time.Sleep(time.Millisecond)
		}
	}
}
