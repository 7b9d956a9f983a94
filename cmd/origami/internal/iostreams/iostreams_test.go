package iostreams_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// What is written in pieces is as printable as what is written at once, and origami's own styles pass in colour only.
func TestWriter(t *testing.T) {
	const text = "µs \x1b[1mbold\x1b[0m \x1b[2J 日本\u202e\xe6\tx\n\u009b\xff\x1b["
	for colour, want := range map[bool]string{
		false: "µs \\x1b[1mbold\\x1b[0m \\x1b[2J 日本\\u202e\\xe6\tx\n\\u009b\\xff\\x1b[",
		true:  "µs \x1b[1mbold\x1b[0m \\x1b[2J 日本\\u202e\\xe6\tx\n\\u009b\\xff\\x1b[",
	} {
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			s := iostreams.Plain(strings.NewReader(""), &out, nil)
			s.Colour = colour
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				written, err := s.Writer().Write([]byte(rest[:n]))
				must.Need(t, written == n && err == nil, "%v %v", written, err)
				rest = rest[n:]
			}
			must.Do(t, s.Flush())
			must.Need(t, out.String() == want, "colour %v in pieces of %d: %q, want %q", colour, size, out.String(), want)
		}
	}
}

type named string

func TestPrintf(t *testing.T) {
	var out bytes.Buffer
	s := iostreams.Plain(strings.NewReader(""), &out, nil)
	s.Colour = true
	s.Printf("%s|%s|%v|%v|%5.1f|%-4d|%s\n", "a\nb", named("\x1b[1m"), errors.New("\u202e"),
		diag.Inputf("x").At("y\x1b"), 1.25, 7, s.Bold("c\x1b[0m"))
	must.Do(t, s.Flush())
	want := "a\\nb|\\x1b[1m|\\u202e|y\\x1b: x|  1.2|7   |\x1b[1mc\\x1b[0m\x1b[0m\n"
	must.That(t, out.String() == want, "%q, want %q", out.String(), want)
}

// A failed write is an error in the end.
func TestFlush(t *testing.T) {
	s := iostreams.Plain(strings.NewReader(""), failing{}, nil)
	s.Printf("x")
	err := s.Flush()
	must.That(t, errors.Is(err, iotest.ErrTimeout), "%v", err)
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, iotest.ErrTimeout }

// An error is bounded in text and in JSON, and says something even if it has no text.
func TestReport(t *testing.T) {
	long := strings.Repeat("x", 26<<20)
	for _, tc := range []struct {
		err                    error
		text, kind, what, when string
	}{
		{&diag.Error{Kind: diag.Plugin}, "origami: it failed, and no reason is given\n", "plugin",
			"it failed, and no reason is given", "empty"},
		{diag.Inputf("%s", long).At("a.csv").Do("leave it out"),
			"origami: a.csv: " + long[:4096] + "… (27258880 bytes more); leave it out\n", "input",
			long[:4096] + "… (27258880 bytes more)", "long"},
		{fmt.Errorf("read: %s", long), "origami: read: " + long[:4090] + "… (27258886 bytes more)\n", "internal",
			"read: " + long[:4090] + "… (27258886 bytes more)", "long, of another kind"},
	} {
		var text, object bytes.Buffer
		iostreams.Plain(nil, nil, &text).Report(tc.err)
		must.That(t, text.String() == tc.text, "%s: %.200q", tc.when, text.String())
		s := iostreams.Plain(nil, nil, &object)
		s.JSONErrors = true
		s.Report(tc.err)
		var got struct{ Error ask.Error }
		if err := json.Unmarshal(object.Bytes(), &got); err != nil || got.Error.Kind != tc.kind ||
			got.Error.What != tc.what {
			t.Errorf("%s: %v, %.200q", tc.when, err, object.String())
		}
	}
}

// An entry of the log stays on its line.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	n, err := iostreams.Log(&out).Write([]byte("[WARN] x: a\u202e\nFORGED\x1b[2J\n"))
	must.That(t, n == 26 && err == nil, "%v %v", n, err)
	must.That(t, out.String() == "[WARN] x: a\\u202e\\nFORGED\\x1b[2J\n", "%q", out.String())
}
