//go:build linux

package soak

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// alarming are words that no command may print.
var alarming = []string{"panic:", "DATA RACE", "internal error", "runtime error", "goroutine ", "fatal error"}

// checkEnd checks the exit code and the messages of a command.
func (w *world) checkEnd(place, what string, p past, r result) {
	how := fmt.Sprintf("exit code %d", r.code)
	ok := r.code == 0 || p.hurt && slices.Contains([]int{1, 2, 3, 4}, r.code) || p.starved
	if r.code < 0 {
		how = "died of " + signalName(r.signal)
		ok = ok || slices.Contains(p.signals, r.signal)
	}
	if r.code > 128 { // as shells count
		ok = ok || slices.Contains(p.signals, syscall.Signal(r.code-128))
	}
	w.tally.count("end: " + what + ": " + how)
	if p.late {
		w.tally.violate("%s: hung: %s did not end within %v", place, what, patience)
	}
	if !ok && !p.late {
		w.tally.violate("%s: end: %s: %v", place, what, r)
	}
	for _, word := range alarming {
		if strings.Contains(r.stderr, word) && !p.starved && !p.pluginStarved {
			w.tally.violate("%s: alarming: %s prints %q", place, what, r.stderr)
			return
		}
	}
}

// must notes a failure of the soak itself.
func (s *sweep) must(err error) {
	if err != nil {
		s.tally.violate("%s: soak: %v", s.place, err)
	}
}

func signalName(s syscall.Signal) string { return strings.TrimPrefix(unix.SignalName(s), "SIG") }

// other is the other variant of the executor.
func other(variant string) string {
	if variant == "a" {
		return "b"
	}
	return "a"
}
