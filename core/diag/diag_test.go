package diag_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestErrorIsOneLine(t *testing.T) {
	err := diag.Inputf("not a device file: %v", errors.New("yaml: unmarshal errors:\n  line 3: field clok not found")).
		At("sm89.yaml").Do("see configs/README.md\n")
	const want = "sm89.yaml: not a device file: yaml: unmarshal errors: line 3: field clok not found; " +
		"see configs/README.md"
	got := err.Error()
	must.That(t, got == want, "got  %q\nwant %q", got, want)
	got = diag.Inputf("m is missing").Error()
	must.That(t, got == "m is missing", "without where and fix: %q", got)
	got = diag.Inputf("a\r\n\tb").At("x\ny").Error()
	must.That(t, !strings.ContainsAny(got, "\r\n\t"), "more than one line: %q", got)
}

func TestErrorCannotSteerTheTerminal(t *testing.T) {
	got := diag.Inputf("unknown kernel \x1b[2Jtiled\a").At("p\x9b").Error()
	must.That(t, got == `p\x9b: unknown kernel \x1b[2Jtiled\a`, "%q", got)
	got = diag.Inputf("a\u202eb\u009bc\u2028d").Do("\u2066e").Error()
	must.That(t, got == `a\u202eb\u009bc\u2028d; \u2066e`, "%q", got)
}

func TestErrorWithoutText(t *testing.T) {
	for _, e := range []*diag.Error{{}, {What: " \n"}, {Where: "plugin x"}} {
		got := e.Error()
		must.That(t, strings.HasSuffix(got, "it failed, and no reason is given"), "%+v: %q", e, got)
	}
	if got := diag.Line(errors.New("")); got != "it failed, and no reason is given" {
		t.Errorf("%q", got)
	}
}

func TestLine(t *testing.T) {
	inner := diag.Inputf("%s", strings.Repeat("x", 5000)).At("a.csv").Do("leave it out")
	got := diag.Line(inner)
	must.That(t, got == inner.Error() && strings.HasSuffix(got, "; leave it out"), "%s", got)
	got = diag.Line(fmt.Errorf("read\x1b: %w", io.EOF))
	must.That(t, got == `read\x1b: EOF`, "%q", got)
}

func TestErrorIsBounded(t *testing.T) {
	err := diag.Inputf("unknown column %q", strings.Repeat("ä", 1<<20)).At("a.csv:1:1").Do("leave it out")
	if got := err.Error(); len(got) > 5000 || !strings.HasPrefix(got, "a.csv:1:1: unknown column \"ää") ||
		!strings.HasSuffix(got, "ä… (2093073 bytes more); leave it out") {
		t.Errorf("%d bytes: %.40s … %s", len(got), got, got[max(0, len(got)-60):])
	}
	long := strings.Repeat("x", 1<<20)
	got := diag.Inputf("%s", long).At("%s", long).Do("%s", long).Error()
	must.That(t, len(got) <= 13000, "%d bytes", len(got))
}

func TestAtAndDoDoNotChangeTheOriginal(t *testing.T) {
	plain := diag.Inputf("wrong")
	_ = plain.At("here").Do("fix")
	must.That(t, plain.Where == "" && plain.Fix == "", "%+v", plain)
}

func TestKindOf(t *testing.T) {
	wrapped := fmt.Errorf("select: %w", &diag.Error{Kind: diag.Device, What: "no GPU", Err: io.EOF})
	got := diag.KindOf(wrapped)
	must.That(t, got == diag.Device, "wrapped device error: %v", got)
	must.That(t, errors.Is(wrapped, io.EOF), "the cause is lost")
	got = diag.KindOf(errors.New("x"))
	must.That(t, got == diag.Internal, "foreign error: %v", got)
	got = diag.KindOf(diag.Inputf("x").At("y"))
	must.That(t, got == diag.Input, "input error: %v", got)
	for kind, name := range map[diag.Kind]string{
		diag.Internal: "internal", diag.Input: "input", diag.Plugin: "plugin", diag.Device: "device", 99: "internal",
	} {
		must.That(t, kind.String() == name, "kind %d is %q, want %q", kind, kind, name)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"num_sms", "l2_bytes", "l2_perf_ratio", "dram_perf_ratio", "mma_latency", "hbm_latency_penalty"}
	for _, c := range []struct {
		got  string
		n    int
		want []string
	}{
		{"l2_perf_ration", 1, []string{"l2_perf_ratio"}},
		{"L2_PERF_RATIO", 1, []string{"l2_perf_ratio"}}, // case does not count
		{"perf_ratio", 3, []string{"l2_perf_ratio", "dram_perf_ratio"}},
		{"num_sm", 5, []string{"num_sms"}},
		{"sms", 5, []string{"num_sms"}}, {"l2", 5, []string{"l2_bytes", "l2_perf_ratio"}}, // a word of the name
		{"hbm_latency", 1, []string{"hbm_latency_penalty"}},
		{"zzzzzz", 5, nil},
		{"l2_perf_ratio", 0, nil},
		{"", 3, nil},
	} {
		got := diag.Nearest(c.got, names, c.n)
		must.That(t, slices.Equal(got, c.want), "Nearest(%q, %d) = %q, want %q", c.got, c.n, got, c.want)
	}
	// What is far too long for any name is not compared with each.
	if got := diag.Nearest(strings.Repeat("l2_perf_ratio", 1<<20), names, 5); got != nil {
		t.Errorf("%q", got)
	}
	// Equals keep their order; a short word allows two edits.
	got := diag.Nearest("sm9", []string{"sm90", "sm89", "sm80", "gfx942"}, 4)
	must.That(t, slices.Equal(got, []string{"sm90", "sm89", "sm80"}), "%q", got)
}

func TestNearestIsEditDistance(t *testing.T) {
	// Known Levenshtein distances; the limit is half the length of the first word.
	for _, c := range []struct {
		a, b string
		d    int
	}{
		{"kitten", "sitting", 3}, {"saturday", "sunday", 3}, {"flaw", "lawn", 2}, {"abcdef", "abcdef", 0},
		{"intention", "execution", 5},
	} {
		limit := max(2, len(c.a)/2)
		found := len(diag.Nearest(c.a, []string{c.b}, 1)) == 1
		must.That(t, found == (c.d <= limit),
			"distance of %q and %q is %d, limit %d, found %v", c.a, c.b, c.d, limit, found)
	}
}

func TestWithin(t *testing.T) {
	cause := errors.New("broken pipe")
	for _, c := range []struct {
		place string
		err   error
		want  string
	}{
		{"a.csv:3", diag.Inputf("m is zero"), "a.csv:3: m is zero"},
		{"a.csv:3", diag.Inputf("m is zero").At("-m").Do("give more"), "a.csv:3: -m: m is zero; give more"},
		{"sm89", diag.Inputf("no").At("sm89"), "sm89: no"},
		{"", diag.Inputf("no").At("sm89"), "sm89: no"},
		{"", cause, "broken pipe"},
		{"stdout", cause, "stdout: broken pipe"},
	} {
		if got := diag.Within(c.place, c.err); got.Error() != c.want || diag.KindOf(got) != diag.KindOf(c.err) {
			t.Errorf("%v within %q is %v, want %s", c.err, c.place, got, c.want)
		}
	}
	must.That(t, errors.Is(diag.Within("stdout", cause), cause) && diag.Within("stdout", nil) == nil,
		"the cause is lost, or nothing became an error")
}
