package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
)

const (
	// knownKernels is how many known kernels a check times. The middle one of their ratios counts, so that one hiccup
	// does not decide.
	knownKernels = 3
	// offBy is the share by which times of known kernels may differ. Medians repeat within 1 %, and GPUs of a kind in one
	// machine differ by 1 to 3 %. A GPU that is off by 5 % changes which kernel is the best.
	offBy = 0.04
	// rechecks is how often a check is repeated before a GPU is set aside, after a pause. A GPU at its power limit is slow
	// for a moment after heavy kernels, and one that throttles stays slow.
	rechecks     = 2
	recheckPause = time.Second
	// knownTime is about the time that a known kernel should take: much longer than a launch, short enough to be timed
	// often.
	knownTime = unit.Seconds(200e-6)
	// overPeak is the least share of the time at the peak rate that is believed: clocks go a little above the data
	// sheet's.
	overPeak = 0.9
)

// KnownFrom orders the best predictions of problems by how well they serve as known kernels: those whose predicted
// times are nearest to a time that is quick and precise to measure. The order depends on the list alone.
func KnownFrom(list []dataset.Measurement, predicted []unit.Seconds) []dataset.Measurement {
	distance := func(i int) float64 { return max(float64(predicted[i]/knownTime), float64(knownTime/predicted[i])) }
	order := make([]int, 0, len(list))
	for i := range list {
		if predicted[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(distance(a), distance(b)) })
	const most = 8 // some may not run on a GPU
	known := make([]dataset.Measurement, 0, most)
	for _, i := range order[:min(most, len(order))] {
		known = append(known, dataset.Measurement{Problem: list[i].Problem, Config: list[i].Config})
	}
	return known
}

// measureKnown times a known kernel. What fails because the executor does is tried again, unless the kernel is new and
// may have ended the executor's process.
func (s *Sweep) measureKnown(ctx context.Context, like dataset.Measurement, isNew bool) (dataset.Measurement, error) {
	todo := dataset.Measurement{Problem: like.Problem, Config: like.Config, GPU: like.GPU}
	for {
		m, err := s.attempt(ctx, &entry{todo: todo}, nil, 0)
		m.Phase = dataset.Check
		switch {
		case err == nil:
			s.recorded(&m)
			return m, nil
		case ctx.Err() != nil:
			return m, ctx.Err()
		case diag.KindOf(err) != diag.Plugin, errors.Is(err, exec.ErrNonsense), isNew && died(err):
			return m, err
		}
		if end := s.await(ctx, err); end != nil {
			return m, end
		}
	}
}

// check times the known kernels. It is an error of kind Device if one of them is wrong, or if they are not as fast as
// they were.
func (g *GPU) check(ctx context.Context) ([]dataset.Measurement, error) {
	for attempt := 0; ; attempt++ {
		var checks []dataset.Measurement
		for _, k := range g.known {
			m, err := g.again(ctx, k)
			if err != nil {
				return nil, err
			}
			m.GPU = g.Name
			checks = append(checks, m)
		}
		switch r := ratio(checks, g.known); {
		case within(r):
			return checks, nil
		case attempt == rechecks:
			return nil, off(r, checks)
		case g.Pause != nil:
			if err := g.Pause(ctx, recheckPause); err != nil {
				return nil, err
			}
		}
	}
}

func within(ratio float64) bool { return ratio < 1+offBy && ratio > 1-offBy }

// ratio is the median of times of known kernels ÷ their times in a reference, 1 if that has none of them.
func ratio(times, reference []dataset.Measurement) float64 {
	var ratios []float64
	for i := range times {
		if t := medianOf(reference, &times[i]); t > 0 {
			ratios = append(ratios, float64(times[i].Median/t))
		}
	}
	if ratios == nil {
		return 1
	}
	return stats.Median(ratios)
}

// medianOf returns the median of the medians of a kernel's times, 0 without any.
func medianOf(list []dataset.Measurement, k *dataset.Measurement) unit.Seconds {
	var all []unit.Seconds
	for i := range list {
		if list[i].Status == dataset.OK && list[i].Problem == k.Problem && list[i].Config == k.Config {
			all = append(all, list[i].Median)
		}
	}
	if all == nil {
		return 0
	}
	return stats.Median(all)
}

// again times a known kernel that has run before. It is an error if it has no time now.
func (g *GPU) again(ctx context.Context, todo dataset.Measurement) (dataset.Measurement, error) {
	m, err := g.measureKnown(ctx, todo, false)
	if err == nil && m.Status != dataset.OK {
		err = notRight(&m)
	}
	return m, err
}

func notRight(m *dataset.Measurement) error {
	return &diag.Error{Kind: diag.Device, What: fmt.Sprintf("the known kernel %s of %s is %s: %s", m.Label(), m.Problem,
		strings.ReplaceAll(string(m.Status), "_", " "), m.Detail), Fix: "see to the GPU"}
}

// off says that a GPU is not as fast as it should be, and why, as far as is known.
func off(ratio float64, checks []dataset.Measurement) error {
	direction, share := "longer", ratio-1
	if ratio < 1 {
		direction, share = "shorter", 1-ratio
	}
	what := fmt.Sprintf("known kernels take %.1f %% %s than before", 100*share, direction)
	if reasons := slowed(checks); reasons != "" {
		what += ": the driver reports " + reasons
	}
	return &diag.Error{Kind: diag.Device, What: what, Fix: "see what else uses the GPU, and how it is cooled"}
}

// slowed lists the driver's reasons for a low clock that a measurement should not see.
func slowed(checks []dataset.Measurement) string {
	var reasons []string
	for i := range checks {
		if e := checks[i].Environment; e != nil {
			for _, r := range e.ThrottleReasons {
				if strings.HasPrefix(r, "hw_") || strings.Contains(r, "thermal") {
					reasons = append(reasons, r)
				}
			}
		}
	}
	slices.Sort(reasons)
	return strings.Join(slices.Compact(reasons), ", ")
}

// compare times the known kernels on all GPUs at once, and decides which of them belong together.
func (f *Fleet) compare(ctx context.Context) error {
	errs := make([]error, len(f.GPUs))
	var all sync.WaitGroup
	for i, g := range f.GPUs {
		all.Go(func() { g.known, errs[i] = f.tryKnown(ctx, g) })
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	checks, err := f.takeAlike(errs)
	if err != nil {
		return err
	}
	return f.store(checks)
}

// takeAlike sets GPUs aside that failed or are not like the others, and returns the checks of the others. The known
// kernels that ran on all of them are left.
func (f *Fleet) takeAlike(errs []error) (checks []dataset.Measurement, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, g := range f.GPUs {
		if errs[i] != nil {
			f.setAside(g, errs[i])
		}
	}
	gpus := f.healthy()
	for _, g := range gpus {
		g.known = slices.DeleteFunc(g.known, func(m dataset.Measurement) bool {
			return slices.ContainsFunc(gpus, func(other *GPU) bool { return medianOf(other.known, &m) == 0 })
		})
	}
	if err := f.judge(gpus); err != nil {
		return nil, err
	}
	if len(f.healthy()) == 0 {
		return nil, noneLeft(f.GPUs, f.last)
	}
	for _, g := range f.healthy() {
		g.checked = time.Now()
		checks = append(checks, g.known...)
	}
	return checks, nil
}

// tryKnown times the known kernels on a GPU until enough of them have run. One that the GPU cannot build or run is left
// out, and so are a few that end the executor's process. It is an error if one is wrong, or faster than possible, or if
// none runs.
func (f *Fleet) tryKnown(ctx context.Context, g *GPU) (times []dataset.Measurement, err error) {
	ran, deaths := 0, 0
	var last error
	for _, todo := range f.Known {
		if ran == knownKernels {
			break
		}
		m, err := g.measureKnown(ctx, todo, true)
		if deaths++; err != nil && died(err) && deaths < maxCrashes {
			last = err
			continue
		}
		if err != nil {
			return nil, err
		}
		deaths = 0
		m.GPU = g.Name
		switch m.Status {
		case dataset.OK:
			ran++
			if least := g.leastTime(&todo.Problem); m.Median < overPeak*least {
				return nil, &diag.Error{Kind: diag.Device, Fix: "see to the GPU",
					What: fmt.Sprintf("%s of %s took %v, and the GPU's peak rate allows %v", m.Label(), m.Problem, m.Median, least)}
			}
			times = append(times, m)
		case dataset.Wrong:
			return nil, notRight(&m)
		case dataset.NotBuilt, dataset.Failed, dataset.Timeout:
			last = notRight(&m)
		}
	}
	if ran == 0 && last == nil {
		last = diag.Inputf("there is no kernel whose time could be compared").Do("tune or measure other problems")
	}
	if ran == 0 {
		return nil, last
	}
	// The first round took the clock out of idle, and loaded code. The second one counts.
	for i := range times {
		if times[i], err = g.again(ctx, times[i]); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// leastTime is the time of a problem at the peak rate of its type, 0 if that is unknown.
func (s *Sweep) leastTime(p *gemm.Problem) unit.Seconds {
	peak := s.Arch.Describe().PeakFor(p.DType)
	if !(peak > 0) {
		return 0
	}
	return unit.Seconds(p.Flops() / float64(peak))
}

// judge sets the GPUs aside whose times differ from the others'. They are compared with the recorded times of the known
// kernels, or without these with the median of at least three GPUs. Of two that differ, the one that the driver slows
// down is set aside. If nothing says which of them is right, it is an error.
func (f *Fleet) judge(gpus []*GPU) error {
	switch {
	case len(gpus) == 0:
		return nil
	case len(gpus[0].known) == 0:
		return diag.Inputf("no known kernel runs on all GPUs").Do("name GPUs of one kind")
	}
	others, reference := "the recorded ones", f.Data.Checks()
	if medianOf(reference, &gpus[0].known[0]) == 0 {
		if len(gpus) == 2 {
			return f.judgeTwo(gpus[0], gpus[1])
		}
		others, reference = "the other GPUs", nil
		for _, g := range gpus {
			reference = append(reference, g.known...)
		}
	}
	for _, g := range gpus {
		if r := ratio(g.known, reference); !within(r) {
			f.setAside(g, &diag.Error{Kind: diag.Device, Fix: "see what else uses the GPU, and how it is cooled",
				What: fmt.Sprintf("the times of its known kernels are %.3g times %s", r, others)})
		}
	}
	return nil
}

// judgeTwo decides between two GPUs.
func (f *Fleet) judgeTwo(slow, fast *GPU) error {
	r := ratio(slow.known, fast.known)
	if r < 1 {
		slow, fast, r = fast, slow, 1/r
	}
	if within(r) {
		return nil
	}
	what := fmt.Sprintf("known kernels take %.3g times as long on GPU %s as on GPU %s", r, slow.Name, fast.Name)
	if reasons := slowed(slow.known); reasons != "" {
		f.setAside(slow, &diag.Error{Kind: diag.Device, What: what + ": the driver reports " + reasons,
			Fix: "see how the GPU is cooled"})
		return nil
	}
	return &diag.Error{Kind: diag.Device, What: what + ", and nothing says which of them is right",
		Fix: "see what else uses them, or name one of them alone"}
}
