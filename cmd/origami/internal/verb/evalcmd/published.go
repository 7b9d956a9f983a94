package evalcmd

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/report"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// libraryKernel is the kernel family of what vendors' libraries take, which published times are of.
const libraryKernel = "library"

// The options with which a model takes the conditions of a time.
const (
	schemeOption  = "scheme"
	releaseOption = "release"
)

// publishedTime is a published time with what the model predicts.
type publishedTime struct {
	*published.Time
	problem gemm.Problem
	// model is what predicted it, nil without a prediction.
	model *arch.Description
	score.Prediction
}

// ratio is the predicted time ÷ the published time.
func (t *publishedTime) ratio() float64 { return float64(t.Prediction.Time / t.Median) }

// publishedDevice is a device with published times.
type publishedDevice struct {
	id    string
	times []*publishedTime
}

// publishedOutcome is the score of models on published times.
type publishedOutcome struct {
	kernel string
	// models are those that answered, ranksOnly says that one of them predicts no times.
	models    []string
	ranksOnly bool
	times     []publishedTime
	// without are parts with times that no plugin has a device file for.
	without []string
	// doubtful counts the times that are not scored, by device and why.
	doubtful map[doubt]int
	pairs    bool
}

// doubt is a device with the reason why some of its times are not scored, a word that docs/published.md explains.
type doubt struct{ device, reason string }

func (o *Options) registerPublished(flags *pflag.FlagSet) {
	flags.BoolVar(&o.Published, "published", false,
		"score predicted times of tuned libraries against published times of many devices")
	flags.StringSliceVar(&o.Schemes, "scheme", nil,
		"of the published times, those with these `SCHEMES` of scales only: none, tensor, row, block128+quant, …")
	flags.BoolVar(&o.Pairs, "pairs", false,
		"with --published, also list how well each pair of devices is compared, by type and class of shape")
}

// runPublished scores models on the published times that are part of this program.
func (o *Options) runPublished(ctx context.Context) error {
	for _, c := range []struct {
		flag  string
		given bool
	}{
		{"--times", o.Times != ""}, {"--problems", o.Query.Problems != ""},
		{"--candidates", o.Query.Candidates.Asked()}, {"--space", len(o.Query.Search.Space) > 0},
		{"--trans-a", o.Query.TransA}, {"--trans-b", o.Query.TransB}, {"--out-dtype", o.Query.Out != ""},
	} {
		if c.given {
			return diag.Inputf("--published and %s contradict each other", c.flag).Do("leave one of them out")
		}
	}
	if t, err := gemm.ParseDType(o.DType); err == nil {
		o.DType = t.String() // published types are more than those of gemm
	}
	if o.Factory.Settings.Kernel == "" {
		o.Factory.Settings.Kernel = libraryKernel
	}
	out := &publishedOutcome{kernel: o.Factory.Settings.Kernel, pairs: o.Pairs}
	format := o.Factory.Format()
	if o.Intervals && format != table.JSON {
		return diag.Inputf("the intervals of many devices are written as JSON only").At("--intervals").Do("add --json")
	}
	devices, err := o.publishedDevices(ctx, out)
	if err != nil {
		return err
	}
	if err := o.predictPublished(ctx, out, devices); err != nil {
		return err
	}
	if o.Intervals {
		return out.writeIntervals(ctx, o.Factory.Streams)
	}
	if err := out.write(o.Factory.Streams, format); err != nil {
		return err
	}
	return report.Write(ctx, o.Factory, o.Report, out.contents())
}

// publishedDevices selects the times that the flags ask for, by device.
func (o *Options) publishedDevices(ctx context.Context, out *publishedOutcome) ([]publishedDevice, error) {
	wanted, err := o.publishedIDs(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	manifests, err := o.Factory.Manifests(ctx)
	if err != nil {
		return nil, err
	}
	for i := range manifests {
		for _, a := range manifests[i].Archs {
			for _, d := range a.Devices {
				known[a.ID+"@"+d.ID] = true
			}
		}
	}
	return session.UntilCancelled(ctx, func() ([]publishedDevice, error) { return o.choose(out, wanted, known) })
}

// choose selects the times of some devices, nil for all, that plugins know.
func (o *Options) choose(out *publishedOutcome, wanted []string, known map[string]bool) ([]publishedDevice, error) {
	all := published.Times()
	without := map[string]bool{}
	out.doubtful = map[doubt]int{}
	for i := range all {
		t := &all[i]
		switch {
		case wanted != nil && !slices.Contains(wanted, t.Device):
		case o.DType != "" && t.DType != o.DType, len(o.Schemes) > 0 && !slices.Contains(o.Schemes, t.Scheme):
		case !known[t.Device]:
			without[t.Part] = true
		case t.Doubt != "":
			out.doubtful[doubt{t.Device, t.Doubt}]++
		default:
			out.times = append(out.times, publishedTime{Time: t})
		}
	}
	out.without = slices.Sorted(maps.Keys(without))
	if len(out.times) == 0 {
		return nil, noPublished(all, known)
	}
	at := map[string]int{}
	var devices []publishedDevice
	for i := range out.times {
		t := &out.times[i]
		if _, ok := at[t.Device]; !ok {
			at[t.Device] = len(devices)
			devices = append(devices, publishedDevice{id: t.Device})
		}
		d := &devices[at[t.Device]]
		d.times = append(d.times, t)
	}
	return devices, nil
}

// publishedIDs returns the devices that the settings name, nil for all.
func (o *Options) publishedIDs(ctx context.Context) ([]string, error) {
	s := &o.Factory.Settings
	if len(s.Arch) == 0 && s.Device == "" {
		return nil, nil
	}
	targets, err := o.Factory.Targets(ctx, s.Arch, s.Device)
	if err != nil {
		return nil, err
	}
	var ids []string
	for i := range targets {
		ids = append(ids, targets[i].ID())
	}
	return ids, nil
}

// noPublished says what there are published times of.
func noPublished(all []published.Time, known map[string]bool) error {
	var devices, schemes []string
	for i := range all {
		if t := &all[i]; known[t.Device] && !slices.Contains(devices, t.Device) {
			devices = append(devices, t.Device)
		}
		if s := all[i].Scheme; !slices.Contains(schemes, s) {
			schemes = append(schemes, s)
		}
	}
	slices.Sort(devices)
	slices.Sort(schemes)
	return diag.Inputf("there are no published times of this device, type and scheme").At("--published").
		Do("the devices: %s; the schemes: %s", strings.Join(devices, ", "), strings.Join(schemes, ", "))
}

// condition is the options with which the times of a device are predicted together.
type condition struct{ timing, scheme, release string }

// publishedJob are times that a model predicts under the same conditions.
type publishedJob struct {
	target *models.Found
	times  []*publishedTime
}

// predictPublished fills in the predictions, those of several devices at once. Without any it returns why.
func (o *Options) predictPublished(ctx context.Context, out *publishedOutcome, devices []publishedDevice) error {
	bar := table.NewLateBar(o.Factory.Streams, "opening the models")
	defer bar.Stop()
	var jobs []publishedJob
	for i := range devices {
		more, err := o.jobs(ctx, &devices[i])
		if err != nil {
			return err
		}
		jobs = append(jobs, more...)
	}
	bar.Set(0, int64(len(jobs)))
	bar.SetMessage("predicting")
	next := make(chan publishedJob)
	var wg sync.WaitGroup
	var mutex sync.Mutex
	failed := error(nil)
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for j := range next {
				d, err := o.predict(ctx, j)
				mutex.Lock()
				failed = cmp.Or(failed, err)
				out.answered(d)
				mutex.Unlock()
				bar.Add(1)
			}
		})
	}
	for _, j := range jobs {
		next <- j
	}
	close(next)
	wg.Wait()
	if failed != nil {
		return failed
	}
	slices.Sort(out.models)
	return out.anyPredicted()
}

// jobs sorts the times of a device by the conditions that its model can take.
func (o *Options) jobs(ctx context.Context, d *publishedDevice) ([]publishedJob, error) {
	targets, err := o.Factory.Targets(ctx, []string{d.id}, "")
	if err != nil {
		return nil, err
	}
	a, err := o.Factory.Open(ctx, &targets[0])
	if err != nil {
		return nil, refused(ctx, d.times, err)
	}
	var jobs []publishedJob
	at := map[condition]int{}
	for _, t := range d.times {
		target, c := asked(&targets[0], a.Describe(), t.Time)
		if t.problem, t.Err = t.Problem(); t.Err == nil && target == nil {
			t.Err = diag.Inputf("the model has no option for the scheme %s", t.Scheme)
		}
		if t.Err != nil {
			continue
		}
		if _, ok := at[c]; !ok {
			at[c] = len(jobs)
			jobs = append(jobs, publishedJob{target: target})
		}
		j := &jobs[at[c]]
		j.times = append(j.times, t)
	}
	return jobs, nil
}

// answered notes the model that answered, nil if none did.
func (o *publishedOutcome) answered(d *arch.Description) {
	if d == nil {
		return
	}
	if !slices.Contains(o.models, d.Model) {
		o.models = append(o.models, d.Model)
	}
	o.ranksOnly = o.ranksOnly || d.RanksOnly
}

// anyPredicted returns why no time was predicted, if none was.
func (o *publishedOutcome) anyPredicted() error {
	for i := range o.times {
		if o.times[i].Err == nil {
			return nil
		}
	}
	return o.times[0].Err
}

// asked returns the target with the options for the conditions of a time, as far as its model has them and the user
// does not set them. It is nil if the scheme cannot be asked for.
func asked(target *models.Found, d *arch.Description, t *published.Time) (*models.Found, condition) {
	c, out := condition{}, *target
	out.OpenRequest.Options = maps.Clone(target.OpenRequest.Options)
	if out.OpenRequest.Options == nil {
		out.OpenRequest.Options = map[string]string{}
	}
	set := func(key, value string) bool {
		has := slices.ContainsFunc(d.Options, func(o arch.OptionValue) bool { return o.Key == key })
		takes := slices.ContainsFunc(target.Manifest.Options, func(o arch.Option) bool {
			return o.Key == key && slices.Contains(o.Values, value)
		})
		if !has || !takes {
			return false
		}
		if _, users := target.OpenRequest.Options[key]; !users {
			out.OpenRequest.Options[key] = value
		}
		return true
	}
	if target.Timing == "" && d.Timing != "" && !d.RanksOnly {
		out.Timing, c.timing = t.Timing, string(t.Timing)
	}
	if set(releaseOption, t.Release) {
		c.release = t.Release
	}
	switch {
	case set(schemeOption, t.Scheme):
		c.scheme = t.Scheme
	case t.Scheme != published.NoScheme && t.Scheme != published.TensorScheme:
		return nil, c
	}
	return &out, c
}

// refused notes why a model refuses some times. It returns an error that is not about the times.
func refused(ctx context.Context, times []*publishedTime, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if diag.KindOf(err) != diag.Input {
		return err
	}
	for _, t := range times {
		t.Err = err
	}
	return nil
}

// predict opens a model and fills in the predictions of some times. That the model refuses is the error of the times.
func (o *Options) predict(ctx context.Context, j publishedJob) (*arch.Description, error) {
	a, err := o.Factory.Open(ctx, j.target)
	if err != nil {
		return nil, refused(ctx, j.times, err)
	}
	kernel, err := ask.KernelFamily(a.Describe(), o.Factory.Settings.Kernel)
	if err != nil {
		return nil, refused(ctx, j.times, err)
	}
	problems := make([]gemm.Problem, len(j.times))
	for i := range j.times {
		problems[i] = j.times[i].problem
	}
	predictions, err := score.Fastest(ctx, a, kernel, problems)
	if err != nil {
		return nil, refused(ctx, j.times, err)
	}
	for i := range j.times {
		j.times[i].Prediction, j.times[i].model = predictions[i], a.Describe()
	}
	return a.Describe(), nil
}
