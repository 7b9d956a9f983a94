//go:build linux

package soak

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"strings"
	"syscall"
	"testing"
)

const (
	problemA = `"problem":{"m":1,"n":2,"k":3},"config":{"block_m":16}`
	problemB = `"problem":{"m":1,"n":2,"k":3},"config":{"block_m":32}`
	good     = `{"phase":"sweep","status":"ok","median_seconds":1,"samples_seconds":[1,1,2],` + problemA + "}\n"
	killing  = `{"phase":"sweep","status":"failed","detail":"it died",` + problemB + "}\n"
	final    = `{"phase":"final","block":1,"arms":2,"status":"ok",` + problemA + "}\n"
	null     = `{"phase":"final","block":1,"arms":2,"null_arm":true,"status":"ok",` + problemA + "}\n"
)

func parsed(t *testing.T, text string) records {
	t.Helper()
	r := must.Get(parseRecords([]byte(text)))(t)
	return r
}

// What a disturbed sweep must not leave is found, and what it may leave is not.
func TestCompare(t *testing.T) {
	want := parsed(t, good+killing+final+null)
	second := strings.NewReplacer(`"block":1`, `"block":2`).Replace
	finals := final + null
	change := func(line, from, to string) string { return strings.Replace(line, from, to, 1) }
	for name, c := range map[string]struct{ text, wrong string }{
		"equal":                 {good + killing + finals, ""},
		"in another order":      {killing + good + null + final, ""},
		"a block begun again":   {good + killing + final + second(finals), ""},
		"lost":                  {killing + finals, "lost: sweep"},
		"twice":                 {good + good + killing + finals, "twice: sweep"},
		"torn at the end":       {good + killing + finals + `{"phase"`, "torn: "},
		"blamed":                {change(good, `"ok"`, `"failed","detail":"?"`) + killing + finals, "blamed: sweep"},
		"timed out":             {change(good, `"ok"`, `"timeout"`) + killing + finals, "blamed: sweep"},
		"another value":         {change(good, `_seconds":1`, `_seconds":2`) + killing + finals, "changed: sweep"},
		"left at two samples":   {change(good, "[1,1,2]", "[1,1]") + killing + finals, ""},
		"left at one sample":    {change(good, "[1,1,2]", "[1]") + killing + finals, "changed: sweep"},
		"another sample":        {change(good, "[1,1,2]", "[1,3]") + killing + finals, "changed: sweep"},
		"a killer that works":   {good + change(killing, `"failed"`, `"ok"`) + finals, "not failed: sweep"},
		"no finals":             {good + killing, "lost: final"},
		"half of the finals":    {good + killing + final, "lost: final"},
		"finals twice":          {good + killing + finals + second(finals), "twice: final"},
		"another configuration": {good + killing + finals + change(good, "16", "64"), "unexpected: sweep"},
	} {
		t.Run(name, func(t *testing.T) {
			r := parsed(t, c.text)
			got := strings.Join(r.compare(want), "\n")
			must.That(t, (got == "") == (c.wrong == "") && strings.HasPrefix(got, c.wrong), "got %q, want %q", got, c.wrong)
		})
	}
}

// The end of a command is right only for a reason.
func TestCheckEnd(t *testing.T) {
	kill := []syscall.Signal{syscall.SIGKILL}
	for name, c := range map[string]struct {
		past   past
		result result
		wrong  bool
	}{
		"answered":                {past{}, result{code: 0}, false},
		"failed for no reason":    {past{}, result{code: 3}, true},
		"its plugin was killed":   {past{hurt: true}, result{code: 3}, false},
		"an unknown code":         {past{hurt: true}, result{code: 7}, true},
		"killed":                  {past{signals: kill}, result{code: -1, signal: syscall.SIGKILL}, false},
		"as a shell says it":      {past{signals: kill}, result{code: 128 + 9}, false},
		"killed by somebody else": {past{hurt: true}, result{code: -1, signal: syscall.SIGKILL}, true},
		"crashed":                 {past{hurt: true}, result{code: 2, stderr: "panic: nil map"}, true},
		"crashed without memory":  {past{starved: true}, result{code: 2, stderr: "fatal error: out of memory"}, false},
		"hung":                    {past{hurt: true, late: true}, result{code: -1, signal: syscall.SIGKILL}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{tally: newTally(false)}
			w.checkEnd("here", "a command", c.past, c.result)
			got := w.tally.violations()
			must.That(t, (got > 0) == c.wrong, "%d violations", got)
		})
	}
}
