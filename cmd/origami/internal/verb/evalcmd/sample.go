package evalcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/score"
)

func (o *outcome) count(holds func(*score.Evaluation) bool) int {
	n := 0
	for i := range o.rows {
		if holds(&o.rows[i]) {
			n++
		}
	}
	return n
}

// inSample counts the problems that numbers of the model were fitted to.
func (o *outcome) inSample() int {
	return o.count(func(r *score.Evaluation) bool { return o.arch.InSample(r.Problem, o.data.Kernel) })
}

// mixed reports whether some of the problems are in-sample, but not all.
func (o *outcome) mixed() bool { return o.inSample() > 0 && o.inSample() < len(o.rows) }

// outside counts the problems outside of what the intervals were found on.
func (o *outcome) outside() int {
	return o.count(func(r *score.Evaluation) bool {
		s := o.scope(&r.Problem, r.Pick.Config.SplitK)
		return s.Uncertainty == nil || s.Wide
	})
}

// inSampleText says how many of the scores are in-sample, and why.
func (o *outcome) inSampleText() string {
	n, of := o.inSample(), len(o.rows)
	switch {
	case len(o.fitted()) == 0:
		return "no: the model was fitted to no data set"
	case n == 0 && slices.ContainsFunc(o.fitted(), func(f arch.Fitted) bool { return len(f.Problems) == 0 }):
		return "unknown: the model was fitted to " + strings.Join(dataSets(o.fitted()), ", ") +
			", and does not list its problems"
	case n == 0:
		return "no: the model was fitted to other problems, of " + strings.Join(dataSets(o.fitted()), ", ")
	}
	to := strings.Join(dataSets(o.fitted()), ", ")
	if n == of {
		return fmt.Sprintf("yes: the model was fitted to measurements of these problems, in %s", to)
	}
	return fmt.Sprintf("in part: the model was fitted to measurements of %d of the %s, in %s", n,
		digits.Plural(of, "problem", "problems"), to)
}

func (o *outcome) inSampleWord(r *score.Evaluation) string {
	if o.arch.InSample(r.Problem, o.data.Kernel) {
		return "yes"
	}
	return "no"
}

// fitted lists the data sets that numbers were fitted to which enter predictions of the measured kernels.
func (o *outcome) fitted() []arch.Fitted {
	return slices.DeleteFunc(slices.Clone(o.arch.Fitted), func(f arch.Fitted) bool { return !f.Concerns(o.data.Kernel) })
}

func dataSets(fitted []arch.Fitted) []string {
	names := []string{}
	for _, f := range fitted {
		names = append(names, f.DataSet)
	}
	return names
}
