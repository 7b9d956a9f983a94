package evalcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
)

// publishedIntervals is a line of `eval --published --intervals`: how far a model's times are from the published ones
// that are of one device, of types that cost the same, and of one scheme and release, for the model to ship.
type publishedIntervals struct {
	Device string   `json:"device"` // as `arch@device`
	Model  string   `json:"model"`  // the model
	DTypes []string `json:"dtypes"` // types that cost the same
	Scheme string   `json:"scheme"` // the scheme of scales
	// releases of the library that the model does not tell apart
	Releases    []string               `json:"releases"`
	Uncertainty arch.UncertaintyRecord `json:"uncertainty"` // what a model can ship

	times []*publishedTime
}

func (o *publishedOutcome) writeIntervals(ctx context.Context, s *iostreams.Streams) error {
	if len(o.models) != 1 {
		return diag.Inputf("intervals are of one model, and these answered: %s", strings.Join(o.models, ", ")).
			At("--intervals").Do("name it with --model")
	}
	lines := o.intervals()
	done, stop := table.Work(s, "finding intervals", len(lines))
	defer stop()
	for _, line := range lines {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		singles := make([]score.Single, len(line.times))
		var sources []string
		either := false
		for i, t := range line.times {
			singles[i] = score.Single{Problem: t.problem, Point: t.point()}
			if !slices.Contains(sources, t.Source.ID) {
				sources = append(sources, t.Source.ID)
			}
			either = either || t.EitherB()
		}
		slices.Sort(sources)
		u := score.CalibrateSingles(o.kernel, "published times: "+strings.Join(sources, ", "), singles)
		u.Source = fmt.Sprintf("origami eval --published --intervals over %d published times", len(singles))
		if line.has16() {
			u.Checked.Layouts = withLayouts(u.Checked.Layouts, other16)
			u.Source += "; fp16 and bf16, which cost the same, count together"
		}
		if either {
			u.Checked.Layouts = withLayouts(u.Checked.Layouts, otherB)
			u.Source += "; B along N counts as checked like B along K, which cuBLAS takes as fast"
		}
		line.Model, line.Uncertainty = o.models[0], u.Record()
		if err := table.JSONLine(s, line); err != nil {
			return err
		}
		done(1)
	}
	return nil
}

// has16 reports whether an operand or a result has 16 bits.
func (l *publishedIntervals) has16() bool {
	return slices.ContainsFunc(l.times, func(t *publishedTime) bool {
		_, in := sixteen[t.problem.DType]
		_, out := sixteen[t.problem.Out]
		return in || out
	})
}

// intervals sorts the times that the model predicts into lines.
func (o *publishedOutcome) intervals() []*publishedIntervals {
	same := o.releases()
	var lines []*publishedIntervals
	for i := range o.times {
		t := &o.times[i]
		if t.Err != nil {
			continue
		}
		types, releases := typesLike(t.DType), same[released{t.Device, t.Release}]
		at := slices.IndexFunc(lines, func(l *publishedIntervals) bool {
			return l.Device == t.Device && l.Scheme == t.Scheme && slices.Equal(l.DTypes, types) &&
				slices.Equal(l.Releases, releases)
		})
		if at < 0 {
			at = len(lines)
			lines = append(lines, &publishedIntervals{Device: t.Device, DTypes: types, Scheme: t.Scheme, Releases: releases})
		}
		lines[at].times = append(lines[at].times, t)
	}
	slices.SortFunc(lines, func(a, b *publishedIntervals) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), slices.Compare(a.DTypes, b.DTypes), cmp.Compare(a.Scheme, b.Scheme),
			slices.Compare(a.Releases, b.Releases))
	})
	return lines
}

// released is a device with a release of its library.
type released struct{ device, release string }

// releases lists, for each device and release, the releases that its model does not tell apart.
func (o *publishedOutcome) releases() map[released][]string {
	models := map[released]*arch.Description{}
	for i := range o.times {
		if t := &o.times[i]; t.Err == nil && models[released{t.Device, t.Release}] == nil {
			models[released{t.Device, t.Release}] = t.model
		}
	}
	same := map[released][]string{}
	for one, model := range models {
		for other, d := range models {
			if other.device == one.device && slices.Equal(quantities(d), quantities(model)) {
				same[one] = append(same[one], other.release)
			}
		}
		slices.Sort(same[one])
	}
	return same
}

// quantities are the numbers of a model without those of the caches' condition.
func quantities(d *arch.Description) []arch.Constant {
	return slices.DeleteFunc(slices.Clone(d.Constants), func(c arch.Constant) bool {
		return strings.HasPrefix(c.Source, "option ")
	})
}

// typesLike lists the types that cost the same as one.
func typesLike(dtype string) []string {
	sixteen := []string{gemm.BF16.String(), gemm.FP16.String()}
	if slices.Contains(sixteen, dtype) {
		return sixteen
	}
	return []string{dtype}
}

// withLayouts adds the other of each layout.
func withLayouts(layouts []arch.Layout, other func(arch.Layout) arch.Layout) []arch.Layout {
	out := slices.Clone(layouts)
	for _, l := range layouts {
		if l = other(l); !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// otherB is a layout with B the other way up.
func otherB(l arch.Layout) arch.Layout {
	if l.BMajor == gemm.MajorK {
		l.BMajor = gemm.MajorN
	} else {
		l.BMajor = gemm.MajorK
	}
	return l
}

// sixteen has the other of the two types of 16 bits, which cost the same.
var sixteen = map[gemm.DType]gemm.DType{gemm.BF16: gemm.FP16, gemm.FP16: gemm.BF16}

// other16 is a layout with the other type of 16 bits: of the operands, or else of the results alone.
func other16(l arch.Layout) arch.Layout {
	if in, ok := sixteen[l.Types.In]; ok {
		l.Types.In = in
	}
	if out, ok := sixteen[l.Types.Out]; ok {
		l.Types.Out = out
	}
	return l
}

func (t *publishedTime) point() score.Point {
	return score.Point{Config: t.Config, Bound: t.Bound, Predicted: t.Prediction.Time, Measured: t.Median}
}
