package evalcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/score"
)

// mixed reports whether some of the problems are in-sample, but not all.
func (o *outcome) mixed() bool { return o.InSample() > 0 && o.InSample() < len(o.Rows) }

// outside counts the problems outside of what the intervals were found on.
func (o *outcome) outside() int {
	return o.Count(func(r *score.Evaluation) bool {
		s := o.Scope(&r.Problem, r.Pick.Config.SplitK)
		return s.Uncertainty == nil || s.Wide
	})
}

// inSampleText says how many of the scores are in-sample, and why.
func (o *outcome) inSampleText() string {
	n, of := o.InSample(), len(o.Rows)
	switch {
	case len(o.Fitted()) == 0:
		return "no: the model was fitted to no data set"
	case n == 0 && slices.ContainsFunc(o.Fitted(), func(f arch.Fitted) bool { return len(f.Problems) == 0 }):
		return "unknown: the model was fitted to " + strings.Join(ask.DataSets(o.Fitted()), ", ") +
			", and does not list its problems"
	case n == 0:
		return "no: the model was fitted to other problems, of " + strings.Join(ask.DataSets(o.Fitted()), ", ")
	}
	to := strings.Join(ask.DataSets(o.Fitted()), ", ")
	if n == of {
		return fmt.Sprintf("yes: the model was fitted to measurements of these problems, in %s", to)
	}
	return fmt.Sprintf("in part: the model was fitted to measurements of %d of the %s, in %s", n,
		digits.Plural(of, "problem", "problems"), to)
}

func (o *outcome) inSampleWord(r *score.Evaluation) string {
	if o.Arch.InSample(r.Problem, o.Data.Kernel) {
		return "yes"
	}
	return "no"
}
