package builtins

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// advised is a question, the rules that it has advice of, and a part of the first text.
type advised struct {
	device  string
	problem gemm.Problem
	config  string
	rules   string
	do      string
}

func questions() []advised {
	sized := func(m, n, k int) gemm.Problem { return gemm.New(m, n, k) }
	strided := sized(4096, 4096, 4096)
	strided.LDA = 4097
	misaligned := sized(4096, 4096, 4096)
	misaligned.AlignB = 2
	eight := sized(4096, 4096, 4096)
	eight.DType = gemm.FP8
	return []advised{
		{"h200", sized(5000, 5000, 5000), "", "family pad", "pad M from 5000 to 5008, N from 5000 to 5008, K from 5000 to"},
		{"h200", strided, "", "strides", "begin the rows of A every 4112 elements instead of 4097"},
		{"h200", misaligned, "", "strides", "begin B at multiples of 16 bytes"},
		{"h200", eight, "", "layout", "store B contiguous along K"},
		{"h200", sized(8192, 8192, 8192), "", "", ""},
		{"h200", sized(256, 4096, 4096), "128x128x32 w4 s3", "config config", "set block_k = "},
		{"h200", sized(1, 4096, 4096), "", "rows fuse", "compute 16 rows at once instead of 1"},
		{"sm89", sized(1000, 1000, 1000), "", "family", "use the kernel family library"},
		{"b200", sized(16, 7168, 2048), "", "rows fuse", "rows at once instead of 16"},
	}
}

// The time that an advice promises is the answer to the changed question.
func TestAdvice(t *testing.T) {
	ctx := t.Context()
	conn := must.Get(Connect(ctx, config.Settings{InProcess: true}, nil))(t)
	for _, c := range questions() {
		target := models.Target{Arch: c.device, Timing: timing.Model}
		found := must.Get(models.Find(ctx, conn, &target))(t)
		a := must.Get(found.Open(ctx, conn))(t)
		side := must.Get(ask.NewContender(conn, &found, a))(t)
		e := must.Get(side.Explain(ctx, c.problem, "", c.config))(t)
		must.Do(t, side.Advise(ctx, e.Ranking, &e.Entry, nil))
		var rules []string
		for i, o := range e.Advice {
			rules = append(rules, o.Rule)
			must.That(t, o.Gain >= 1.1 && (i <= 0 || o.Gain <= e.Advice[i-1].Gain),
				"%s %s: a gain of %g", c.device, &c.problem, o.Gain)
			p := must.Get(o.Problem.Problem())(t)
			changed := models.Target{Arch: c.device, Kernel: o.Kernel, Timing: timing.Model}
			if changed.Model = "refined"; o.Kernel == "library" {
				changed.Model = "library"
			}
			if o.Rule == "config" {
				again, err := side.Explain(ctx, p, "", o.Config.String())
				must.That(t, err == nil && math.Abs(float64(again.Seconds(&again.Entry))/o.Seconds-1) <= 1e-9,
					"%s %s: %q promises %g s, %v", c.device, &c.problem, o.Do, o.Seconds, err)
				continue
			}
			a := must.Get(changed.Open(ctx, conn))(t)
			answers := must.Get(ask.Rankings(ctx, a, ask.Question{Problems: []gemm.Problem{p}, Kernel: o.Kernel, Top: 1}))(t)
			one := &answers[0]
			if one.Err != nil || math.Abs(float64(one.Seconds(&one.Entries[0]))/o.Seconds-1) > 1e-9 {
				t.Errorf("%s %s: %q promises %g s, %v", c.device, &c.problem, o.Do, o.Seconds, one.Err)
			}
		}
		for _, rule := range strings.Fields(c.rules) {
			must.That(t, slices.Contains(rules, rule), "%s %s: advice %v, want %s", c.device, &c.problem, rules, rule)
		}
		must.That(t, c.rules != "" || len(rules) <= 0, "%s %s: %+v", c.device, &c.problem, e.Advice)
		if !slices.ContainsFunc(e.Advice, func(o ask.Advice) bool { return strings.Contains(o.Do, c.do) }) && c.do != "" {
			t.Errorf("%s %s: %+v, want %q", c.device, &c.problem, e.Advice, c.do)
		}
	}
}
