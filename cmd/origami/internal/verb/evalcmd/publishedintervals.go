package evalcmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// publishedIntervals is a line of `eval --published --intervals`: how far a model's times are from the published ones
// that are of one device, of types that cost the same, and of one scheme and release, for the model to ship.
type publishedIntervals struct {
	Device string   `json:"device"` // as `arch@device`, and the model
	Model  string   `json:"model"`
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
	sources, devices := leftOut(lines)
	for _, line := range append(lines, sisters(lines, devices.Widening)...) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if line.Uncertainty.Evidence == "" {
			line.Uncertainty = line.checked(o.kernel, &sources)
			done(1)
		}
		line.Model, line.Uncertainty.Kernel = o.models[0], o.kernel
		if err := table.JSONLine(s, line); err != nil {
			return err
		}
	}
	return nil
}

// leftOut finds how ranges hold for other sources of a device, and for other devices of an architecture. Another device
// is mostly timed by another source too, so its ranges are widened for both.
func leftOut(lines []*publishedIntervals) (sources, devices score.Ungrouped) {
	sources = score.LeaveGroupsOut(groupsOf(lines, (*publishedIntervals).bySource))
	devices = score.LeaveGroupsOut(groupsOf(lines, (*publishedIntervals).byDevice))
	devices.Hold(sources.Widening + devices.Widening)
	return sources, devices
}

// checked finds the uncertainty of the times of a line. Its ranges are those of its sources, widened as another source
// needs it.
func (l *publishedIntervals) checked(kernel string, sources *score.Ungrouped) arch.UncertaintyRecord {
	groups := l.bySource()
	var names []string
	var singles []score.Single
	either := false
	for i := range groups {
		names, singles = append(names, groups[i].Name), append(singles, groups[i].Singles...)
	}
	for _, t := range l.times {
		either = either || t.EitherB()
	}
	u := score.CalibrateSingles(kernel, "published times: "+strings.Join(names, ", "), singles,
		score.GroupRanges(groups, sources.Widening))
	u.Source = fmt.Sprintf("origami eval --published --intervals over %s",
		digits.Plural(len(singles), "published time", "published times"))
	if l.has16() {
		u.Checked.Layouts = withLayouts(u.Checked.Layouts, other16)
		u.Source += "; fp16 and bf16, which cost the same, count together"
	}
	if either {
		u.Checked.Layouts = withLayouts(u.Checked.Layouts, otherB)
		u.Source += "; B along N counts as checked like B along K, which cuBLAS takes as fast"
	}
	return u.Record()
}

// sisters are lines of what the devices of an architecture say of another one, in types and a scheme of scales.
func sisters(lines []*publishedIntervals, widening float64) (out []*publishedIntervals) {
	byPart := map[string][]score.Group{}
	first := map[string]*publishedIntervals{}
	for _, l := range lines {
		g := l.byDevice()[0]
		byPart[g.Part] = append(byPart[g.Part], g)
		if first[g.Part] == nil {
			first[g.Part] = l
		}
	}
	for _, part := range slices.Sorted(maps.Keys(byPart)) {
		u := arch.Uncertainty{
			Level: score.Level, Evidence: arch.EvidenceSister, Ranges: score.GroupRanges(byPart[part], widening),
		}
		if u.Ranges == nil {
			continue
		}
		var names []string
		for _, g := range byPart[part] {
			for i := range g.Singles {
				u.Checked.Add(&g.Singles[i].Problem, 1)
			}
			if !slices.Contains(names, g.Name) {
				names = append(names, g.Name)
			}
		}
		l := first[part]
		u.Checked = arch.Checked{Layouts: u.Checked.Layouts}
		if l.has16() {
			u.Checked.Layouts = withLayouts(u.Checked.Layouts, other16)
		}
		u.Source = "published times of " + strings.Join(names, ", ")
		architecture, _, _ := strings.Cut(l.Device, "@")
		out = append(out, &publishedIntervals{Device: architecture, DTypes: l.DTypes, Scheme: plain(l.Scheme),
			Releases: []string{"current", "early"}, Uncertainty: u.Record()})
	}
	return out
}

// groupsOf are the groups of all lines.
func groupsOf(lines []*publishedIntervals, groups func(*publishedIntervals) []score.Group) (all []score.Group) {
	for _, l := range lines {
		all = append(all, groups(l)...)
	}
	return all
}

// bySource are the times of each source, which say something of another source.
func (l *publishedIntervals) bySource() (groups []score.Group) {
	part := fmt.Sprint(l.Device, l.DTypes, plain(l.Scheme), l.Releases)
	for _, t := range l.times {
		at := slices.IndexFunc(groups, func(g score.Group) bool { return g.Name == t.Source.ID })
		if at < 0 {
			at = len(groups)
			groups = append(groups, score.Group{Name: t.Source.ID, Part: part})
		}
		groups[at].Singles = append(groups[at].Singles, score.Single{Problem: t.problem, Point: t.point()})
	}
	slices.SortFunc(groups, func(a, b score.Group) int { return cmp.Compare(a.Name, b.Name) })
	return groups
}

// byDevice is one group of all times, which say something of another device of the architecture.
func (l *publishedIntervals) byDevice() []score.Group {
	architecture, _, _ := strings.Cut(l.Device, "@")
	g := score.Group{Name: l.Device, Part: fmt.Sprint(architecture, l.DTypes, plain(l.Scheme))}
	for _, t := range l.times {
		g.Singles = append(g.Singles, score.Single{Problem: t.problem, Point: t.point()})
	}
	return []score.Group{g}
}

// plain is a scheme of scales, with one word for those that cost nothing.
func plain(scheme string) string {
	if scheme == published.NoScheme {
		return published.TensorScheme
	}
	return scheme
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
