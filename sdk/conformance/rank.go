package conformance

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
)

// here hides the Ranker of an architecture, so that the selector of this process ranks.
type here struct{ arch.Architecture }

// checkRank compares Rank with the selector of this process over Candidates, Estimate and Mapping.
func checkRank(ctx context.Context, _ *subject, found *findings, groups [][]*testcase) error {
	for _, group := range groups {
		t, problems := group[0].target, problemsOf(group)
		for _, depth := range []struct{ top, mapped int }{{1, 0}, {10, 3}, {0, 1}} {
			r := selector.Request{Problems: problems, Space: t.space(), Top: depth.top, Map: depth.mapped}
			want, err := selector.Rank(ctx, here{t.Architecture}, r)
			if err != nil {
				return err
			}
			got, err := t.Rank(ctx, r)
			if t.RanksHere() {
				return skipped("Rank is not served")
			}
			if err != nil {
				found.add("%s: Rank: %s", t, err)
				continue
			}
			for i := range want {
				if what := differ(&got[i], &want[i]); what != "" {
					found.add("%s, %s, the best %d: %s", t, problems[i], depth.top, what)
				}
			}
		}
	}
	return nil
}

// byTarget groups the answered cases, which are ordered by target.
func (s *subject) byTarget(ctx context.Context) (groups [][]*testcase, err error) {
	cases, err := s.answered(ctx)
	for _, c := range cases {
		if n := len(groups); n > 0 && groups[n-1][0].target == c.target {
			groups[n-1] = append(groups[n-1], c)
		} else {
			groups = append(groups, []*testcase{c})
		}
	}
	return groups, err
}

func problemsOf(cases []*testcase) []gemm.Problem {
	problems := make([]gemm.Problem, len(cases))
	for i, c := range cases {
		problems[i] = c.problem
	}
	return problems
}

// differ describes the first difference from the expected ranking.
func differ(got, want *selector.Result) string {
	if (got.Err == nil) != (want.Err == nil) || diag.KindOf(got.Err) != diag.KindOf(want.Err) {
		return fmt.Sprintf("Rank gives the error %v, and its parts %v", got.Err, want.Err)
	}
	if len(got.Entries) != len(want.Entries) || got.Feasible != want.Feasible {
		return fmt.Sprintf("Rank lists %d of %d feasible candidates, and its parts %d of %d",
			len(got.Entries), got.Feasible,
			len(want.Entries), want.Feasible)
	}
	if len(got.Rejected)+len(want.Rejected) > 0 && !reflect.DeepEqual(got.Rejected, want.Rejected) {
		return fmt.Sprintf("Rank counts the rejected as %v, and its parts as %v", got.Rejected, want.Rejected)
	}
	for i := range want.Entries {
		g, w := got.Entries[i], want.Entries[i]
		if g.Index != w.Index || g.Config != w.Config || g.Mapping != w.Mapping || !sameBits(g.Estimate, w.Estimate) {
			return fmt.Sprintf("place %d of Rank is %s (%s), and of its parts %s (%s)", i+1, g.Config, text(g.Estimate),
				w.Config, text(w.Estimate))
		}
	}
	return ""
}

const (
	timedConfigs = 1000
	timedLimit   = 5 * time.Millisecond
	timedTries   = 20
	// timedPatience is how long a slow answer is tried again: other processes may keep the machine busy.
	timedPatience = time.Second
)

// checkSpeed takes the fastest of several tries: other load can only make a try slower.
func checkSpeed(ctx context.Context, s *subject, found *findings) error {
	if s.Untimed {
		return skipped("times are not measured: by request or under the race detector")
	}
	groups, err := s.byTarget(ctx)
	for _, group := range groups {
		c := group[0]
		configs := repeated(c.candidates.Configs, timedConfigs)
		est := make([]arch.Estimate, len(configs))
		fastest := time.Duration(math.MaxInt64)
		start := time.Now()
		for try := 0; try < 5 ||
			fastest >= timedLimit && (try < timedTries || time.Since(start) < timedPatience); try++ {
			begin := time.Now()
			if err := c.Estimate(ctx, est, c.problem, configs); err != nil {
				return err
			}
			fastest = min(fastest, time.Since(begin))
		}
		if fastest >= timedLimit {
			found.add("%s: %d configurations take %v at best, the limit is %v", c, len(configs),
				fastest.Round(10*time.Microsecond), timedLimit)
		}
	}
	return err
}

// repeated makes a list of n configurations from a shorter one.
func repeated(configs []gemm.Config, n int) []gemm.Config {
	list := make([]gemm.Config, n)
	for i := range list {
		list[i] = configs[i%len(configs)]
	}
	return list
}
