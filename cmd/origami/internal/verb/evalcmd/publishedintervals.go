package evalcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
)

// publishedIntervals is a line of `eval --published --intervals`: how far a model's times of a device, a type and a
// scheme are from the published ones, for the model to ship.
type publishedIntervals struct {
	Device      string                 `json:"device"`
	Model       string                 `json:"model"`
	DType       string                 `json:"dtype"`
	Scheme      string                 `json:"scheme"`
	Uncertainty arch.UncertaintyRecord `json:"uncertainty"`
}

// writeIntervals writes a line for each device, type and scheme that is modelled.
func (o *publishedOutcome) writeIntervals(s *iostreams.Streams, f render.Format) error {
	if f != render.JSON {
		return diag.Inputf("the intervals of many devices are written as JSON only").At("--intervals").Do("add --json")
	}
	if len(o.models) != 1 {
		return diag.Inputf("intervals are of one model, and these answered: %s", strings.Join(o.models, ", ")).
			At("--intervals").Do("name it with --model")
	}
	groups := o.groups()
	for i := range groups {
		g := &groups[i]
		if g.Count == 0 {
			continue
		}
		u := score.CalibrateSingles(o.kernel, "published times: "+strings.Join(g.sources(), ", "), g.singles())
		u.Source = fmt.Sprintf("origami eval --published --intervals over %d published times", g.Count)
		if slices.ContainsFunc(g.times, func(t *publishedTime) bool { return t.EitherB() }) {
			u.Checked.Layouts = eitherB(u.Checked.Layouts)
			u.Source += "; B along N counts as checked like B along K, which cuBLAS takes as fast"
		}
		line := publishedIntervals{g.device, o.models[0], g.dtype, g.scheme, u.Record()}
		if err := render.JSONLine(s, line); err != nil {
			return err
		}
	}
	return nil
}

// eitherB adds to each layout that with B the other way up.
func eitherB(layouts []arch.Layout) []arch.Layout {
	out := slices.Clone(layouts)
	for _, l := range layouts {
		if l.BMajor == gemm.MajorK {
			l.BMajor = gemm.MajorN
		} else {
			l.BMajor = gemm.MajorK
		}
		if !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// singles are the times of a group that the model predicts.
func (g *publishedGroup) singles() []score.Single {
	var out []score.Single
	for _, t := range g.times {
		if t.Err == nil {
			out = append(out, score.Single{Problem: t.problem, Point: t.point()})
		}
	}
	return out
}

func (t *publishedTime) point() score.Point {
	return score.Point{Config: t.Config, Bound: t.Bound, Predicted: t.Prediction.Time, Measured: t.Median}
}

// sources are the ids of those of a group.
func (g *publishedGroup) sources() []string {
	var ids []string
	for _, t := range g.times {
		if !slices.Contains(ids, t.Source.ID) {
			ids = append(ids, t.Source.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
