package show

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestBarLine(t *testing.T) {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := &Bar{begun: begun, message: "ranking"}
	now := begun.Add(30 * time.Second)
	for _, tc := range []struct {
		done, total int64
		want        string
	}{
		{0, 0, "[....................] 30s: ranking"},
		{3, 0, "[....................] 30s: ranking"}, // of a pipe
		{1, 4, "[#####...............]  25 %, 1m30s left: ranking"},
		{4, 4, "[####################] 100 %, 0s left: ranking"},
		{5, 4, "[####################] 100 %, 0s left: ranking"},
	} {
		b.done, b.total = tc.done, tc.total
		must.Equal(t, b.line(now), tc.want, tc.done, "of", tc.total)
	}
}

// Without a terminal, work says after a while how far it is, in lines that stay.
func TestBarWithoutATerminal(t *testing.T) {
	b := &Bar{begun: time.Now(), message: "measuring", quit: make(chan struct{}), gone: make(chan struct{})}
	s := iostreams.Plain(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	b.s = s
	b.Set(1, 4)
	said := make(chan string)
	go b.run(0, time.Nanosecond, func() {
		select {
		case said <- b.text(b.begun.Add(30 * time.Second)):
		case <-b.quit:
		}
	})
	for range 2 {
		got := <-said
		must.That(t, got == "25 %, 1m30s left: measuring", "%q", got)
	}
	b.Stop()
}

// A bar leaves nothing of itself, however early or often it is stopped, and is not there without a terminal.
func TestBarLeavesNothing(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var errs bytes.Buffer
		s := iostreams.Plain(strings.NewReader(""), &bytes.Buffer{}, &errs)
		s.ErrTerminal = terminal
		for range 100 {
			b := NewBar(s, "working")
			b.Set(1, 2)
			b.Stop()
			b.Stop()
		}
		got := errs.String()
		must.That(t, (!terminal || got == "" || strings.HasSuffix(got, "\r\x1b[K")) && (terminal || got == ""),
			"terminal %v: %q", terminal, got)
	}
}

// A table is plain text: aligned, without trailing blanks, with escape sequences only if colour is wanted.
func TestGrid(t *testing.T) {
	rows := [][]string{{"alpha", "1.5 µs", "x"}, {"be", "137 µs", ""}}
	for _, tc := range []struct {
		colour bool
		want   string
	}{
		{false, "name     time  note\nalpha  1.5 µs  x\nbe     137 µs\n"},
		{true, "\x1b[1mname\x1b[0m     \x1b[1mtime\x1b[0m  \x1b[1mnote\x1b[0m\nalpha  1.5 µs  x\nbe     137 µs\n"},
	} {
		var out bytes.Buffer
		s := iostreams.Plain(strings.NewReader(""), &out, &out)
		s.Colour = tc.colour
		Grid{Header: []string{"name", "time", "note"}, Rows: rows}.Write(s)
		must.Do(t, s.Flush())
		must.That(t, out.String() == tc.want, "colour %v: got\n%q, want\n%q", tc.colour, out.String(), tc.want)
	}
}
