package evalcmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/timing"
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
	Releases []string `json:"releases"`
	// what the times are of, if the intervals hold for this alone: a known series is known better than another source
	Timing      timing.Timing    `json:"timing,omitempty"`
	Uncertainty arch.Uncertainty `json:"uncertainty"` // what a model can ship

	times []*publishedTime
}

// shipped finds the intervals that a model can ship.
func (o *publishedOutcome) shipped(ctx context.Context, s *iostreams.Streams) (*answer, error) {
	if len(o.Models) != 1 {
		return nil, diag.Inputf("intervals are of one model, and these answered: %s", strings.Join(o.Models, ", ")).
			At("--intervals").Do("name it with --model")
	}
	all := o.intervals()
	done, stop := show.Work(s, "finding intervals", len(all))
	defer stop()
	folds, sources, devices := leftOut(all)
	var known []*publishedIntervals
	for _, line := range all {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		line.Uncertainty = line.checked(o.Kernel, sources.Widening)
		for _, series := range line.byTiming() {
			series.Uncertainty = series.checked(o.Kernel, folds.Widening)
			if len(series.Uncertainty.Ranges) > 0 {
				known = append(known, series)
			}
		}
		done(1)
	}
	all = append(known, append(all, sisters(all, devices.Widening)...)...)
	for _, line := range all {
		line.Model, line.Uncertainty.Kernel = o.Models[0], o.Kernel
	}
	return &answer{rows: func(s *iostreams.Streams, f show.Format) error { return show.Write(s, f, all) }}, nil
}

// leftOut finds how ranges hold for other weights of a series, for other sources of a device, and for other devices
// of an architecture. Another device is mostly timed by another source too, so its ranges are widened for both.
func leftOut(lines []*publishedIntervals) (folds, sources, devices score.GroupsLeftOut) {
	var byFold, bySource, byDevice []score.Group
	for _, l := range lines {
		for _, series := range l.byTiming() {
			byFold = append(byFold, series.byFold()...)
		}
		bySource, byDevice = append(bySource, l.bySource()...), append(byDevice, l.byDevice())
	}
	folds = score.LeaveGroupsOut(byFold)
	sources, devices = score.LeaveGroupsOut(bySource), score.LeaveGroupsOut(byDevice)
	devices.Hold(sources.Widening + devices.Widening)
	return folds, sources, devices
}

// checked finds the uncertainty of the times of a line. Its ranges hold the errors of its sources, and are widened as a
// new time needs it.
func (l *publishedIntervals) checked(kernel string, widening float64) arch.Uncertainty {
	groups := l.bySource()
	var names []string
	var rows []score.Row
	for i := range groups {
		names, rows = append(names, groups[i].Name), append(rows, groups[i].Rows...)
	}
	u := score.CalibrateRows(kernel, "published times: "+strings.Join(names, ", "), rows,
		score.GroupRanges(groups, widening))
	u.Source = fmt.Sprintf("origami eval --published --intervals over %s",
		digits.Plural(len(rows), "published time", "published times"))
	if l.has16() {
		u.Checked.Layouts = withLayouts(u.Checked.Layouts, other16)
		u.Source += "; fp16 and bf16, which cost the same, count together"
	}
	if slices.ContainsFunc(l.times, func(t *publishedTime) bool { return t.EitherB() }) {
		u.Checked.Layouts = withLayouts(u.Checked.Layouts, otherB)
		u.Source += "; B along N counts as checked like B along K, which cuBLAS takes as fast"
	}
	return u
}

// sisters are lines of what the devices of an architecture say of another one, in types and a scheme of scales.
func sisters(lines []*publishedIntervals, widening float64) (out []*publishedIntervals) {
	parts := score.GroupBy(lines, func(l **publishedIntervals) string { return (*l).part() })
	slices.SortFunc(parts, func(a, b []*publishedIntervals) int { return cmp.Compare(a[0].part(), b[0].part()) })
	for _, part := range parts {
		var groups []score.Group
		var names []string
		var checked arch.Checked
		for _, l := range part {
			g := l.byDevice()
			groups = append(groups, g)
			for i := range g.Rows {
				checked.Add(&g.Rows[i].Problem, 1)
			}
			if !slices.Contains(names, g.Name) {
				names = append(names, g.Name)
			}
		}
		l := part[0]
		u := arch.Uncertainty{
			Level: score.Level, Evidence: arch.EvidenceSister, Ranges: score.GroupRanges(groups, widening),
			Checked: arch.Checked{Layouts: checked.Layouts}, Source: "published times of " + strings.Join(names, ", "),
		}
		if u.Ranges == nil {
			continue
		}
		if l.has16() {
			u.Checked.Layouts = withLayouts(u.Checked.Layouts, other16)
		}
		out = append(out, &publishedIntervals{Device: architectureOf(l.Device), DTypes: l.DTypes, Scheme: plain(l.Scheme),
			Releases: []string{"current", "early"}, Uncertainty: u})
	}
	return out
}

// byTiming are the series of a line, those whose times are of the same together.
func (l *publishedIntervals) byTiming() (series []*publishedIntervals) {
	for _, times := range sortedBy(l.times, func(t *publishedTime) string { return string(t.Timing) }) {
		one := *l
		one.Timing, one.times = times[0].Timing, times
		series = append(series, &one)
	}
	return series
}

// groups sorts the times into groups by a name. Groups of one part say something of each other.
func (l *publishedIntervals) groups(part string, name func(*publishedTime) string) (groups []score.Group) {
	for _, times := range sortedBy(l.times, name) {
		groups = append(groups, score.Group{Name: name(times[0]), Part: part, Rows: rowsOf(times)})
	}
	return groups
}

// byFold divides the times of a series into folds. Times of the same N and K stay together.
func (l *publishedIntervals) byFold() []score.Group {
	const folds = 5
	of := map[[2]int]int{}
	return l.groups(fmt.Sprint(l.Device, l.DTypes, l.Scheme, l.Releases, l.Timing), func(t *publishedTime) string {
		weights := [...]int{t.row.Problem.N, t.row.Problem.K}
		if _, there := of[weights]; !there {
			of[weights] = len(of) % folds
		}
		return strconv.Itoa(of[weights])
	})
}

// bySource are the times of each source, which say something of another source.
func (l *publishedIntervals) bySource() []score.Group {
	part := fmt.Sprint(l.Device, l.DTypes, plain(l.Scheme), l.Releases)
	return l.groups(part, func(t *publishedTime) string { return t.From })
}

// byDevice is one group of all times, which say something of another device of the architecture.
func (l *publishedIntervals) byDevice() score.Group { return l.groups(l.part(), deviceOf)[0] }

// part is what the line has in common with other devices of the architecture.
func (l *publishedIntervals) part() string {
	return fmt.Sprint(architectureOf(l.Device), l.DTypes, plain(l.Scheme))
}

func architectureOf(device string) string {
	name, _, _ := strings.Cut(device, "@")
	return name
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
		return sixteen[t.row.Problem.DType] != 0 || sixteen[t.row.Problem.Out] != 0
	})
}

// intervals sorts the times that the model predicts into lines.
func (o *publishedOutcome) intervals() (lines []*publishedIntervals) {
	release := func(t *publishedTime) string { return joined(t.Device, t.Release) }
	releases := sortedBy(o.predicted, release)
	same := map[string][]string{} // the releases that the model of a device does not tell apart
	for _, one := range releases {
		for _, other := range releases {
			if a, b := one[0], other[0]; a.Device == b.Device && slices.Equal(quantities(a.model), quantities(b.model)) {
				same[release(a)] = append(same[release(a)], b.Release)
			}
		}
	}
	for _, times := range sortedBy(o.predicted, func(t *publishedTime) string {
		return joined(t.Device, strings.Join(typesLike(t.DType), " "), t.Scheme, strings.Join(same[release(t)], " "))
	}) {
		t := times[0]
		lines = append(lines, &publishedIntervals{Device: t.Device, DTypes: typesLike(t.DType), Scheme: t.Scheme,
			Releases: same[release(t)], times: times})
	}
	return lines
}

// quantities are the numbers of a model but for the caches' condition.
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
func withLayouts(layouts []arch.Layout, other func(*arch.Layout)) []arch.Layout {
	out := slices.Clone(layouts)
	for _, l := range layouts {
		if other(&l); !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out
}

// otherB makes B of a layout run along the other of its sides.
func otherB(l *arch.Layout) {
	if l.BMajor == gemm.MajorK {
		l.BMajor = gemm.MajorN
	} else {
		l.BMajor = gemm.MajorK
	}
}

// sixteen has the other of the two types of 16 bits, which cost the same.
var sixteen = map[gemm.DType]gemm.DType{gemm.BF16: gemm.FP16, gemm.FP16: gemm.BF16}

// other16 gives a layout the other type of 16 bits: of the operands, or else of the results alone.
func other16(l *arch.Layout) {
	l.Types.In, l.Types.Out = cmp.Or(sixteen[l.Types.In], l.Types.In), cmp.Or(sixteen[l.Types.Out], l.Types.Out)
}
