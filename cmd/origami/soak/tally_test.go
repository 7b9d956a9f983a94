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
	kills   map[string]int
	hurts   map[string]int
	ends    map[string]int
	lines   int
	wrong   []string
}

func newTally(verbose bool) *tally {
	return &tally{verbose: verbose, kills: map[string]int{}, hurts: map[string]int{}, ends: map[string]int{}}
}

func (t *tally) count(counts map[string]int, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts[what]++
	if t.verbose {
		fmt.Println(time.Now().Format("15:04:05.000"), what)
	}
}

func (t *tally) measured(lines int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines += lines
}

// violate notes that something happened which must not happen.
func (t *tally) violate(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	t.wrong = append(t.wrong, what)
	fmt.Println("VIOLATION", what)
}

// since returns the violations after the first ones.
func (t *tally) since(first int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.wrong[first:])
}

func (t *tally) violations() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.wrong)
}

func (t *tally) print(w io.Writer, rounds int, took time.Duration, seed uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(w, "\nseed %d: %d rounds in %v, %d lines measured, %d kills, %d other disturbances, %d commands\n", seed,
		rounds, took.Round(time.Second), t.lines, total(t.kills), total(t.hurts), total(t.ends))
	for _, part := range []struct {
		name   string
		counts map[string]int
	}{{"kills", t.kills}, {"other disturbances", t.hurts}, {"ends of commands", t.ends}} {
		fmt.Fprintf(w, "\n%s\n", part.name)
		for _, what := range slices.Sorted(maps.Keys(part.counts)) {
			fmt.Fprintf(w, "%7d  %s\n", part.counts[what], what)
		}
	}
	fmt.Fprintf(w, "\n%d violations\n", len(t.wrong))
	kinds := map[string]int{}
	for _, what := range t.wrong {
		_, what, _ = strings.Cut(what, ": ")
		kind, _, _ := strings.Cut(what, ":")
		kinds[kind]++
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(w, "%7d  %s\n", kinds[kind], kind)
	}
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
