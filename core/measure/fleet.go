package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Fleet measures with one GPU or with several at once. Each GPU has an executor of its own, so that none suffers from
// the kernels of another. All candidates of a problem are measured on one GPU, since their times are compared with each
// other.
//
// The same known kernels are timed on all GPUs before anything else, then on each now and then, and at the end. What a
// GPU measured in between is held back until its known kernels are as fast as before and right. Then it is kept. If
// they are not, or if the GPU or its executor fails, it is set aside: what is held back is dropped, and other GPUs
// measure it. So Data and the records have only what was measured between two checks that passed.
type Fleet struct {
	GPUs []*GPU
	// Known are candidates for known kernels, the best suited first: configurations of problems. The first few that
	// run everywhere are taken.
	Known []dataset.Measurement
	// Data holds the measurements so far. A new measurement is added to it after Keep has stored it.
	Data *dataset.Dataset
	Keep func(...dataset.Measurement) error
	// Interval is how long a GPU measures between two checks.
	Interval time.Duration
	// Done is called after each measurement, which may still be dropped. Aside is called with a GPU that is set aside
	// while others are left, and why. Neither is called twice at the same time.
	Done  func(dataset.Measurement)
	Aside func(g *GPU, why error)
	// Alone means that one GPU measures and nothing vouches for it: what it measures is kept at once, and an error of its
	// executor ends the fleet.
	Alone bool

	mu sync.Mutex
	// changed wakes GPUs and Wait, news Wait alone: an outcome is nothing to the other GPUs, of which there may be many.
	changed, news sync.Cond
	ctx           context.Context // ends with the fleet
	// waiting are the jobs of the problems that no GPU has begun, free is how many there are. order are these problems,
	// the first ones first. owners are the GPUs that the others are measured on.
	waiting  map[gemm.Problem][]Job
	free     int
	order    []gemm.Problem
	owners   map[gemm.Problem]*GPU
	outcomes []Outcome
	storing  sync.Mutex // held while something is stored
	// draining means that nothing is left to do but to check what is held back.
	draining bool
	end      error
	last     error // why a GPU was set aside last
	workers  sync.WaitGroup
	stop     context.CancelFunc
}

// GPU is a GPU of a fleet: a sweep on it, whose Data and Keep are the fleet's to set.
type GPU struct {
	// Name is what records call the GPU: its number on its machine, or where it is.
	Name string
	*Sweep

	fleet *Fleet
	// own are jobs of its problems, running those that it has begun.
	own, running []Job
	// held is what was measured since the last check, heldJobs what was done with it.
	held     []dataset.Measurement
	heldJobs []Job
	// known are the known kernels with the times that they should take, which were checked last at that time.
	known   []dataset.Measurement
	checked time.Time
	aside   bool
}

// Job is a piece of work: one configuration of a problem, or, if Whole, all candidates of the problem, with libraries
// and finals.
type Job struct {
	Problem gemm.Problem
	Config  gemm.Config
	Whole   bool
}

// Outcome is what came of a job: the measurement of its configuration. A job whose measurement was dropped has a second
// outcome, which replaces the first.
type Outcome struct {
	Job
	dataset.Measurement
}

// taken is how many configurations of problems that no GPU has begun a GPU takes at once: enough to compile ahead, few
// enough to leave some to others. Of its own problems it takes all, since no other GPU may.
const taken = 8

// Begin times the known kernels on all GPUs, sets those aside that are not like the others, and lets the others wait
// for work. It is an error if none is left.
func (f *Fleet) Begin(ctx context.Context) error {
	f.changed.L, f.news.L = &f.mu, &f.mu
	f.waiting, f.owners = map[gemm.Problem][]Job{}, map[gemm.Problem]*GPU{}
	for _, g := range f.GPUs {
		g.fleet, g.Done = f, g.done
		g.Data = dataset.New(f.Data.Name, f.Data.Conditions)
	}
	if !f.Alone {
		if err := f.compare(ctx); err != nil {
			return err
		}
	}
	f.ctx, f.stop = context.WithCancel(ctx)
	context.AfterFunc(f.ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.tell()
	})
	for _, g := range f.GPUs {
		if !g.aside {
			g.Keep = func(ms ...dataset.Measurement) error { return g.keep(f.ctx, ms) }
			f.workers.Go(func() { g.work(f.ctx) })
		}
	}
	return nil
}

// Close stops the GPUs and waits for them. What is held back is checked, and kept, only by Wait.
func (f *Fleet) Close() {
	if f.stop != nil {
		f.mu.Lock()
		f.stop()
		f.mu.Unlock()
		f.workers.Wait()
	}
}

// tell says that something has changed.
func (f *Fleet) tell() {
	f.changed.Broadcast()
	f.news.Broadcast()
}

// healthy returns the GPUs that are not set aside.
func (f *Fleet) healthy() []*GPU {
	return slices.DeleteFunc(slices.Clone(f.GPUs), func(g *GPU) bool { return g.aside })
}

// Add adds work. It is begun in this order.
func (f *Fleet) Add(jobs ...Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.draining = false
	for _, j := range jobs {
		if g := f.owners[j.Problem]; g != nil {
			g.own = append(g.own, j)
			continue
		}
		f.leave(j)
	}
	f.tell()
}

// leave leaves a job to the GPU that begins its problem. The caller holds the fleet.
func (f *Fleet) leave(j Job) {
	if f.waiting[j.Problem] == nil {
		f.order = append(f.order, j.Problem)
	}
	f.waiting[j.Problem] = append(f.waiting[j.Problem], j)
	f.free++
}

// Wait returns what has been done since it was last called, at least one outcome. If all is done, it waits until
// everything is checked and kept, and returns none. An error ends the fleet: ctx's, one of Keep, or that no GPU is
// left.
func (f *Fleet) Wait(ctx context.Context) ([]Outcome, error) {
	defer context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.tell()
	})()
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch out := f.outcomes; {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case f.end != nil:
			return nil, f.end
		case len(out) > 0:
			f.outcomes = nil
			return out, nil
		}
		busy, held := f.free > 0, false
		for _, g := range f.GPUs {
			busy, held = busy || len(g.own)+len(g.running) > 0, held || g.holds()
		}
		switch {
		case busy:
		case held:
			f.draining = true
			f.tell()
		default:
			return nil, nil
		}
		f.news.Wait()
	}
}

// work does jobs until the context ends or the GPU is set aside.
func (g *GPU) work(ctx context.Context) {
	f := g.fleet
	for {
		jobs, ok := f.take(ctx, g)
		if !ok {
			return
		}
		do := g.confirm
		if len(jobs) > 0 {
			do = func(ctx context.Context) error { return g.run(ctx, jobs) }
		}
		if err := do(ctx); err != nil {
			f.failed(ctx, g, err)
			return
		}
	}
}

// take waits for jobs for a GPU. None, and true, mean that it should check what it holds back; false, that it should
// end.
func (f *Fleet) take(ctx context.Context, g *GPU) ([]Job, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; ; f.changed.Wait() {
		if ctx.Err() != nil || f.end != nil {
			return nil, false
		}
		if g.due() && g.holds() {
			return nil, true
		}
		if g.running = f.choose(g); len(g.running) > 0 {
			return g.running, true
		}
		if f.draining && g.holds() {
			return nil, true
		}
	}
}

// choose takes what a GPU does next: a whole problem, or configurations of the problems that are its own, and then its
// share of those that no GPU has begun.
func (f *Fleet) choose(g *GPU) []Job {
	jobs, healthy := g.next(nil), len(f.healthy())
	for share := (f.free + healthy - 1) / healthy; share > 0 && len(f.order) > 0 && len(jobs) < taken; {
		p := f.order[0]
		list := f.waiting[p]
		if len(jobs) > 0 && (jobs[0].Whole || list[0].Whole) {
			break
		}
		delete(f.waiting, p)
		f.order, f.free, share = f.order[1:], f.free-len(list), share-len(list)
		f.owners[p], g.own = g, list
		for _, m := range f.Data.Of(p) {
			_ = g.Data.Add(m) // an error says that it is there
		}
		jobs = g.next(jobs)
	}
	return jobs
}

// next adds the GPU's own jobs that can be done together with the given ones: single jobs, or one whole problem.
func (g *GPU) next(jobs []Job) []Job {
	for len(g.own) > 0 && (len(jobs) == 0 || !jobs[0].Whole && !g.own[0].Whole) {
		jobs, g.own = append(jobs, g.own[0]), g.own[1:]
	}
	return jobs
}

func (g *GPU) holds() bool { return len(g.held)+len(g.heldJobs) > 0 }

// due reports whether it is time to check the GPU.
func (g *GPU) due() bool { return time.Since(g.checked) >= g.fleet.Interval }

// run does some jobs.
func (g *GPU) run(ctx context.Context, jobs []Job) error {
	if jobs[0].Whole {
		err := g.Run(ctx, jobs[0].Problem)
		if err != nil && diag.KindOf(err) != diag.Input { // a problem without candidates has no measurements
			return err
		}
		g.fleet.mu.Lock()
		defer g.fleet.mu.Unlock()
		g.finish(Outcome{Job: jobs[0]})
		return nil
	}
	wanted := make([]dataset.Measurement, len(jobs))
	for i, j := range jobs {
		wanted[i] = dataset.Measurement{Problem: j.Problem, Config: j.Config}
	}
	if err := g.Measure(ctx, wanted); err != nil {
		return err
	}
	g.fleet.mu.Lock()
	defer g.fleet.mu.Unlock()
	for _, j := range slices.Clone(g.running) { // these were recorded before
		m, _ := g.Data.Find(j.Problem, j.Config)
		g.finish(Outcome{Job: j, Measurement: m})
	}
	return nil
}

// done reports a measurement, and the job that asked for it as done.
func (g *GPU) done(m dataset.Measurement) {
	f := g.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Done != nil {
		f.Done(m)
	}
	if j := (Job{Problem: m.Problem, Config: m.Config}); slices.Contains(g.running, j) {
		g.finish(Outcome{Job: j, Measurement: m})
	}
}

// finish notes the outcome of a running job. The caller holds the fleet.
func (g *GPU) finish(o Outcome) {
	g.running = slices.DeleteFunc(g.running, func(j Job) bool { return j == o.Job })
	if !g.fleet.Alone {
		g.heldJobs = append(g.heldJobs, o.Job)
	}
	g.fleet.outcomes = append(g.fleet.outcomes, o)
	g.fleet.news.Broadcast()
}

// keep holds measurements back, and checks the GPU when it is time to.
func (g *GPU) keep(ctx context.Context, ms []dataset.Measurement) error {
	if g.fleet.Alone {
		return g.fleet.store(ms)
	}
	for i := range ms {
		ms[i].GPU = g.Name
	}
	g.fleet.mu.Lock()
	g.held = append(g.held, ms...)
	g.fleet.mu.Unlock()
	if !g.due() {
		return nil
	}
	return g.confirm(ctx)
}

// confirm checks the GPU, and keeps what was held back.
func (g *GPU) confirm(ctx context.Context) error {
	checks, err := g.check(ctx)
	if err != nil {
		return err
	}
	f := g.fleet
	f.storing.Lock()
	err = f.store(append(slices.Clip(g.held), checks...)) // nobody else changes what a GPU holds while it works
	f.storing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && f.end == nil {
		f.end = err
	}
	g.held, g.heldJobs, g.checked = nil, nil, time.Now()
	f.tell()
	return f.end
}

// store keeps measurements and adds them to the data.
func (f *Fleet) store(ms []dataset.Measurement) error {
	if len(ms) == 0 {
		return nil
	}
	for i := range ms {
		ms[i].Bound()
	}
	if err := f.Keep(ms...); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range ms {
		if err := f.Data.Add(m); err != nil {
			return err
		}
	}
	return nil
}

// failed deals with what ended a GPU's work.
func (f *Fleet) failed(ctx context.Context, g *GPU, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch kind := diag.KindOf(err); {
	case ctx.Err() != nil, f.end != nil:
		return
	case f.Alone, kind != diag.Plugin && kind != diag.Device:
		f.end = err
	default:
		f.setAside(g, err)
	}
	f.tell()
}

// setAside takes the work of a GPU from it and gives it to the others. The caller holds the fleet.
func (f *Fleet) setAside(g *GPU, why error) {
	g.aside = true
	again := slices.Concat(g.heldJobs, g.running, g.own)
	g.held, g.heldJobs, g.running, g.own = nil, nil, nil, nil
	for p, owner := range f.owners {
		if owner == g {
			delete(f.owners, p)
		}
	}
	later := f.order
	f.order, f.draining = nil, false
	for _, j := range again {
		f.leave(j)
	}
	f.order = append(f.order, later...)
	if f.last = why; len(f.healthy()) == 0 {
		f.end = noneLeft(f.GPUs, why)
	} else if f.Aside != nil {
		f.Aside(g, why)
	}
}

// noneLeft is the error of a fleet whose GPUs are all set aside.
func noneLeft(gpus []*GPU, last error) error {
	what := fmt.Sprintf("all %d GPUs are set aside; the last one: %v", len(gpus), last)
	if len(gpus) == 1 {
		what = last.Error()
	}
	kind := diag.KindOf(last)
	if kind != diag.Plugin {
		kind = diag.Device
	}
	fix := "see to the GPUs"
	if d := (*diag.Error)(nil); errors.As(last, &d) && d.Fix != "" {
		fix, what = d.Fix, d.What
	}
	return &diag.Error{Kind: kind, What: what, Fix: fix, Err: last}
}
