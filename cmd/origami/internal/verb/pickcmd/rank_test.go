package pickcmd

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/diag"
)

// What the flags ask for, without anything being run.
func TestRankFlags(t *testing.T) {
	for _, tc := range []struct {
		args     string
		top      int
		rejected bool
		err      string
	}{
		{"", 10, false, ""},
		{"--top 3", 3, false, ""},
		{"--all", 0, false, ""},
		{"--include-rejected", 0, true, ""},
		{"--top 3 --all", 0, false, "--all and --top contradict each other"},
		{"--top 0", 0, false, "--top 0 is not positive"},
		{"--top -1", 0, false, "--top -1 is not positive"},
	} {
		got, flags := &RankOptions{}, pflag.NewFlagSet("rank", pflag.ContinueOnError)
		got.register(flags)
		if err := flags.Parse(strings.Fields(tc.args)); err != nil {
			t.Fatal(err)
		}
		q, err := got.Question("")
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || diag.KindOf(err) != diag.Input {
				t.Errorf("%q: got %v, want %q", tc.args, err, tc.err)
			}
			continue
		}
		if err != nil || q.Top != tc.top || q.Rejected != tc.rejected {
			t.Errorf("%q: got %+v, %v", tc.args, q, err)
		}
	}
}
