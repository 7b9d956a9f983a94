package pickcmd

import (
	"context"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
)

// What the flags ask for, without anything being run.
func TestRankFlags(t *testing.T) {
	for _, tc := range []struct {
		args          string
		top           int
		all, rejected bool
		err           string
	}{
		{"", 10, false, false, ""},
		{"--top 3", 3, false, false, ""},
		{"--all", 10, true, false, ""},
		{"--include-rejected", 10, true, true, ""},
		{"--top 3 --all", 0, false, false, "--all and --top contradict each other"},
		{"--top 0", 0, false, false, "--top 0 is not positive"},
		{"--top -1", 0, false, false, "--top -1 is not positive"},
	} {
		var got *RankOptions
		cmd := NewRank(&session.Factory{}, func(_ context.Context, o *RankOptions) error { got = o; return nil })
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(tc.args))
		err := cmd.Execute()
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) || diag.KindOf(err) != diag.Input || got != nil {
				t.Errorf("%q: got %v, want %q", tc.args, err, tc.err)
			}
			continue
		}
		if err != nil || got.Top != tc.top || got.All != tc.all || got.Rejected != tc.rejected {
			t.Errorf("%q: got %+v, %v", tc.args, got, err)
		}
	}
}
