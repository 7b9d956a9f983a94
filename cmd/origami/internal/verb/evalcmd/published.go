package evalcmd

import (
	"cmp"
	"context"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// libraryKernel is the kernel family of what vendors' libraries take, which published times are of.
const libraryKernel = "library"

// The options with which a model takes the conditions of a time.
const (
	schemeOption  = "scheme"
	releaseOption = "release"
)

// publishedTime is a published time with what the model predicts, and a row of --each.
type publishedTime struct {
	*published.Time
	Class     string     `json:"class"`
	Predicted ask.Number `json:"predicted_seconds"`
	Ratio     ask.Number `json:"predicted_by_published"`
	Reason    string     `json:"reason"`
	From      string     `json:"source"`
	Licence   string     `json:"licence"`

	row   score.Row
	model *arch.Description // nil without a prediction
	err   error             // why there is none
}

// rowsOf lists the rows of times.
func rowsOf(times []*publishedTime) []score.Row {
	rows := make([]score.Row, len(times))
	for i, t := range times {
		rows[i] = t.row
	}
	return rows
}

// publishedOutcome is the answer for published times, with the times: all, and those with a prediction.
type publishedOutcome struct {
	publishedAnswer
	times, predicted []*publishedTime
}

// sortedBy sorts times into groups with one key, in the order of the keys.
func sortedBy(times []*publishedTime, key func(*publishedTime) string) [][]*publishedTime {
	groups := score.GroupBy(times, func(t **publishedTime) string { return key(*t) })
	slices.SortFunc(groups, func(a, b []*publishedTime) int { return cmp.Compare(key(a[0]), key(b[0])) })
	return groups
}

// joined is a key of several parts.
func joined(parts ...string) string { return strings.Join(parts, "\x00") }

func deviceOf(t *publishedTime) string { return t.Device }

// published scores models on the published times that are part of this program.
func (o *Options) published(ctx context.Context) (*answer, error) {
	if o.Intervals && o.Factory.Format() != show.JSON {
		return nil, diag.Inputf("the intervals of many devices are written as JSON only").At("--intervals").
			Do("add --json")
	}
	if o.Factory.Settings.Kernel == "" {
		o.Factory.Settings.Kernel = libraryKernel
	}
	out, err := o.publishedTimes(ctx)
	if err == nil {
		err = o.predictPublished(ctx, out)
	}
	switch {
	case err != nil:
		return nil, err
	case o.Intervals:
		return out.shipped(ctx, o.Factory.Streams)
	case o.Each:
		return out.each(), nil
	}
	return out.answer(o.Pairs), nil
}

// publishedTimes selects the times that the flags ask for.
func (o *Options) publishedTimes(ctx context.Context) (*publishedOutcome, error) {
	s := &o.Factory.Settings
	wanted, modelled := map[string]bool{}, map[string]bool{}
	if len(s.Arch) > 0 || s.Device != "" {
		targets, err := o.Factory.Targets(ctx, s.Arch, s.Device)
		if err != nil {
			return nil, err
		}
		for i := range targets {
			wanted[targets[i].ID()] = true
		}
	}
	manifests, err := o.Factory.Manifests(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range ask.Archs(manifests) {
		modelled[a.Arch+"@"+a.Device] = true
	}
	dtype := o.Query.DType
	if t, err := gemm.ParseDType(dtype); err == nil {
		dtype = t.String() // more types are published than gemm has
	}
	return session.UntilCancelled(ctx, func() (*publishedOutcome, error) {
		out, all := &publishedOutcome{}, published.Times()
		out.Kernel = s.Kernel
		without, doubts := map[string]bool{}, map[publishedDoubt]int{}
		for i := range all {
			t := &all[i]
			switch {
			case len(wanted) > 0 && !wanted[t.Device], dtype != "" && t.DType != dtype,
				len(o.Schemes) > 0 && !slices.Contains(o.Schemes, t.Scheme):
			case !modelled[t.Device]:
				without[t.Part] = true
			case t.Doubt != "":
				doubts[publishedDoubt{Device: t.Device, Reason: t.Doubt}]++
			default:
				nan := ask.Number(math.NaN())
				out.times = append(out.times, &publishedTime{Time: t, Predicted: nan, Ratio: nan, From: t.Source.ID,
					Licence: t.Source.Licence})
			}
		}
		if len(out.times) == 0 {
			return nil, noPublished(all, modelled)
		}
		out.Times = len(out.times)
		out.Without, out.Doubtful = append([]string{}, slices.Sorted(maps.Keys(without))...), []publishedDoubt{}
		for d, n := range doubts {
			out.Doubtful = append(out.Doubtful, publishedDoubt{d.Device, d.Reason, n})
		}
		slices.SortFunc(out.Doubtful, func(a, b publishedDoubt) int {
			return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Device, b.Device))
		})
		return out, nil
	})
}

// noPublished says what there are published times of.
func noPublished(all []published.Time, modelled map[string]bool) error {
	devices, schemes := map[string]bool{}, map[string]bool{}
	for i := range all {
		schemes[all[i].Scheme] = true
		if modelled[all[i].Device] {
			devices[all[i].Device] = true
		}
	}
	return diag.Inputf("there are no published times of this device, type and scheme").At("--published").
		Do("the devices: %s; the schemes: %s", strings.Join(slices.Sorted(maps.Keys(devices)), ", "),
			strings.Join(slices.Sorted(maps.Keys(schemes)), ", "))
}

// predictPublished fills in the predictions, of several devices at once. Without any it returns why.
func (o *Options) predictPublished(ctx context.Context, out *publishedOutcome) error {
	devices := sortedBy(out.times, deviceOf)
	done, stop := show.Work(o.Factory.Streams, "predicting", len(devices))
	defer stop()
	group, failed := ask.Group{Most: runtime.GOMAXPROCS(0)}, make([]error, len(devices))
	for i, times := range devices {
		group.Go(func() {
			failed[i] = o.predict(ctx, times)
			done(1)
		})
	}
	group.Wait()
	if err := cmp.Or(failed...); err != nil {
		return err
	}
	for _, t := range out.times {
		if t.err != nil {
			t.Reason = t.err.Error()
			continue
		}
		t.row.Measured = t.Median
		t.Class = score.LayerOf(t.row.Problem).String()
		t.Predicted, t.Ratio = ask.Number(t.row.Predicted), ask.Number(t.row.Ratio())
		out.predicted, out.RanksOnly = append(out.predicted, t), out.RanksOnly || t.model.RanksOnly
		if !slices.Contains(out.Models, t.model.Model) {
			out.Models = append(out.Models, t.model.Model)
		}
	}
	slices.Sort(out.Models)
	if len(out.predicted) == 0 {
		return out.times[0].err
	}
	return nil
}

// condition is the options with which the times of a device are predicted together.
type condition struct {
	timing          timing.Timing
	scheme, release string // they and the timing are empty where the model has no such option
	nearby          string // which published times correct the predictions: never the time that is predicted
	refused         bool   // the scheme cannot be asked for
}

// predict fills in the predictions of the times of a device, under the conditions that its model can take. That the
// model refuses is the error of the times.
func (o *Options) predict(ctx context.Context, times []*publishedTime) error {
	targets, err := o.Factory.Targets(ctx, []string{times[0].Device}, "")
	if err != nil {
		return err
	}
	a, err := o.Factory.Open(ctx, &targets[0])
	if err != nil {
		return refused(ctx, times, err)
	}
	d := a.Describe()
	for _, same := range score.GroupBy(times, func(t **publishedTime) condition {
		return o.conditionOf(&targets[0], d, (*t).Time)
	}) {
		c, target := o.conditionOf(&targets[0], d, same[0].Time), targets[0]
		var list []*publishedTime
		for _, t := range same {
			if t.row.Problem, t.err = t.Problem(); t.err == nil && c.refused {
				t.err = diag.Inputf("the model has no option for the scheme %s", t.Scheme)
			}
			if t.err == nil {
				list = append(list, t)
			}
		}
		if len(list) == 0 {
			continue
		}
		target.Timing = cmp.Or(c.timing, target.Timing)
		// What the user sets counts.
		options := map[string]string{schemeOption: c.scheme, releaseOption: c.release, residual.Nearby: c.nearby}
		maps.DeleteFunc(options, func(_, value string) bool { return value == "" })
		maps.Copy(options, target.OpenRequest.Options)
		target.OpenRequest.Options = options
		if err := refused(ctx, list, o.predictLike(ctx, &target, list)); err != nil {
			return err
		}
	}
	return nil
}

// predictLike fills in the predictions of times under the same conditions.
func (o *Options) predictLike(ctx context.Context, target *models.Found, times []*publishedTime) error {
	a, err := o.Factory.Open(ctx, target)
	if err != nil {
		return err
	}
	kernel, err := ask.KernelFamily(a.Describe(), o.Factory.Settings.Kernel)
	if err != nil {
		return err
	}
	list := make([]gemm.Problem, len(times))
	for i, t := range times {
		list[i] = t.row.Problem
	}
	rows, bad, err := score.Fastest(ctx, a, kernel, list)
	for i := range rows {
		times[i].row, times[i].err, times[i].model = rows[i], bad[i], a.Describe()
	}
	return err
}

// conditionOf is the condition of a time, as far as a model has options for it. Intervals to ship are of predictions
// that no time near the problem corrects: those that are near narrow them.
func (o *Options) conditionOf(target *models.Found, d *arch.Description, t *published.Time) (c condition) {
	has := func(key, value string) bool {
		return slices.ContainsFunc(d.Options, func(o arch.OptionValue) bool { return o.Key == key }) &&
			slices.ContainsFunc(target.Manifest.Options, func(o arch.Option) bool {
				return o.Key == key && slices.Contains(o.Values, value)
			})
	}
	if target.Timing == "" && d.Timing != "" && !d.RanksOnly {
		c.timing = t.Timing
	}
	if has(releaseOption, t.Release) {
		c.release = t.Release
	}
	if c.nearby = residual.WithoutSame; o.Intervals {
		c.nearby = residual.None
	}
	if !has(residual.Nearby, c.nearby) {
		c.nearby = ""
	}
	if has(schemeOption, t.Scheme) {
		c.scheme = t.Scheme
	} else {
		c.refused = plain(t.Scheme) != published.TensorScheme
	}
	return c
}

// refused notes why a model refuses some times. It returns an error that is not about the times.
func refused(ctx context.Context, times []*publishedTime, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil || diag.KindOf(err) != diag.Input {
		return err
	}
	for _, t := range times {
		t.err = err
	}
	return nil
}
