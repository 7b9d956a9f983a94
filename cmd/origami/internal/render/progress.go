package render

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
)

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
