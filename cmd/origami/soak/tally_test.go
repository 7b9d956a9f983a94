//go:build linux

package soak

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts what was done and what was found. It is safe for concurrent use.
type tally struct {
	verbose bool
	mu      sync.Mutex
	counts  map[string]int
	wrong   []string
}

func newTally(verbose bool) *tally { return &tally{verbose: verbose, counts: map[string]int{}} }

// count counts what happened: "kill: …", "hurt: …", "end: …".
func (t *tally) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
	if t.verbose {
		fmt.Println(time.Now().Format("15:04:05.000"), what)
	}
}

// violate notes that something happened which must not happen.
func (t *tally) violate(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	_, kind, _ := strings.Cut(what, ": ")
	kind, _, _ = strings.Cut(kind, ":")
	t.counts["violation: "+kind]++
	t.wrong = append(t.wrong, what)
	fmt.Println("VIOLATION", what)
}

// since returns the violations after the first ones.
func (t *tally) since(first int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.wrong[first:])
}

func (t *tally) violations() int { return len(t.since(0)) }

func (t *tally) print(w io.Writer, rounds int, took time.Duration, seed uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(w, "\nseed %d: %d rounds in %v\n", seed, rounds, took.Round(time.Second))
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(w, "%7d  %s\n", t.counts[what], what)
	}
	fmt.Fprintf(w, "%7d violations\n", len(t.wrong))
}
