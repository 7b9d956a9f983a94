//go:build linux

package soak

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// records are the measurements of a folder.
type records struct {
	text  []byte // the complete lines
	torn  int    // the bytes after the last complete line
	lines []line
}

// line is what identifies a measurement and what its outcome is.
type line struct {
	Phase   string          `json:"phase"`
	Block   int             `json:"block"`
	Arms    int             `json:"arms"`
	Null    bool            `json:"null_arm"`
	Status  string          `json:"status"`
	Detail  string          `json:"detail"`
	Problem json.RawMessage `json:"problem"`
	Config  json.RawMessage `json:"config"`
	Library string          `json:"library"`
	Samples []float64       `json:"samples_seconds"`

	text string // all of the line but the number of its block, the samples and the checksum
}

// same reports whether two lines have the same measurement. A configuration that was set aside is measured last, so
// another best is known when each of the others is measured: what cannot be the fastest is left at two samples.
func (l *line) same(m *line) bool {
	n := min(len(l.Samples), len(m.Samples))
	counts := len(l.Samples) == len(m.Samples) || l.Phase == "sweep" && n >= 2
	return l.text == m.text && counts && slices.Equal(l.Samples[:n], m.Samples[:n])
}

func (l *line) key() string {
	null := ""
	if l.Null {
		null = " null"
	}
	return fmt.Sprintf("%s %s %s%s%s", l.Phase, l.Problem, l.Config, l.Library, null)
}

// readRecords reads the log of a folder. A folder without one has no lines. A complete line that is no measurement is
// an error.
func readRecords(folder string) (records, error) {
	text, err := os.ReadFile(filepath.Join(folder, "measurements.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return records{}, err
	}
	return parseRecords(text)
}

func parseRecords(text []byte) (records, error) {
	whole := bytes.LastIndexByte(text, '\n') + 1
	r := records{text: text[:whole], torn: len(text) - whole}
	for text := range strings.Lines(string(r.text)) {
		var l line
		var all map[string]any
		if err := errors.Join(json.Unmarshal([]byte(text), &l), json.Unmarshal([]byte(text), &all)); err != nil {
			return r, fmt.Errorf("line %d is torn: %w", len(r.lines)+1, err)
		}
		delete(all, "block")
		delete(all, "samples_seconds")
		delete(all, "sum")
		rest, err := json.Marshal(all)
		if err != nil {
			return r, err
		}
		l.text = string(rest)
		r.lines = append(r.lines, l)
	}
	return r, nil
}

func (r *records) failed() int {
	n := 0
	for _, l := range r.lines {
		if isFailed(&l) {
			n++
		}
	}
	return n
}

func isFailed(l *line) bool { return l.Status == "failed" || l.Status == "timeout" }

// grown says what is wrong with the log of a sweep, given what it was before: lines are only added.
func (r *records) grown(before records) []string {
	if !bytes.HasPrefix(r.text, before.text) {
		return []string{"lost: a line that was complete is gone or changed"}
	}
	return nil
}

// compare says what is wrong with the records of a finished sweep, given those of one that nothing disturbed. A line
// that was blamed changes what is measured after it, so then only the sweep's own lines are looked for.
func (r *records) compare(want records) []string {
	var faults, blamed []string
	if r.torn > 0 {
		faults = append(faults, "torn: the last line is not complete")
	}
	got := map[string]line{}
	for _, l := range r.countedLines() {
		if _, twice := got[l.key()]; twice {
			faults = append(faults, "twice: "+l.key())
		}
		got[l.key()] = l
	}
	expected := map[string]bool{}
	for _, l := range want.lines {
		key := l.key()
		expected[key] = true
		have, there := got[key]
		switch {
		case !there && l.Phase == "sweep":
			faults = append(faults, "lost: "+key)
		case isFailed(&have) && !isFailed(&l):
			blamed = append(blamed, fmt.Sprintf("blamed: %s: %s: %s", key, have.Status, have.Detail))
		case there && isFailed(&l) && !isFailed(&have):
			faults = append(faults, fmt.Sprintf("not failed: %s ends its process and is %s", key, have.Status))
		}
	}
	if len(blamed) > 0 {
		return append(faults, blamed...)
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if !expected[key] {
			faults = append(faults, "unexpected: "+key)
		}
	}
	for _, l := range want.lines {
		have, there := got[l.key()]
		if !there && l.Phase != "sweep" {
			faults = append(faults, "lost: "+l.key())
		}
		if there && !isFailed(&l) && !have.same(&l) {
			faults = append(faults, fmt.Sprintf("changed: %s\ngot  %s\nwant %s", l.key(), have.text, l.text))
		}
	}
	return faults
}

// countedLines returns the lines without those of blocks of finals that are not complete, which readers leave out too.
func (r *records) countedLines() []line {
	type block struct {
		problem string
		number  int
	}
	count := map[block]int{}
	for _, l := range r.lines {
		if l.Phase == "final" {
			count[block{string(l.Problem), l.Block}]++
		}
	}
	var counted []line
	for _, l := range r.lines {
		if l.Phase != "final" || count[block{string(l.Problem), l.Block}] == l.Arms {
			counted = append(counted, l)
		}
	}
	return counted
}
