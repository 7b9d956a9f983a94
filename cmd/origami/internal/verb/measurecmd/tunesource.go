package measurecmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/tune"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/sdk/durable"
)

// tuning is a run: what is tuned, and where the times come from.
type tuning struct {
	o      *TuneOptions
	arch   arch.Architecture
	kernel string
	plan   *tune.Plan
	data   *dataset.Dataset
	// gpus are what measures, and sweep is the first one's; without them it is a replay. share is the part of the sizes
	// that is measured, work what it is a part of.
	gpus  []*measure.GPU
	sweep *measure.Sweep
	fleet *measure.Fleet
	store *datastore.Store
	share measure.Shard
	work  string
	// merged is the folder that shards are merged into, the folder itself without any.
	merged string
	// blocks are what was measured again in turns to decide ties, by size. repeats counts these measurements.
	blocks  map[int][]dataset.Measurement
	repeats int
	// bests are the best predictions of all sizes of the work, predicted their times.
	bests     []dataset.Measurement
	predicted []unit.Seconds
	// folder is where the measurements are kept, empty in a replay of a shipped data set.
	folder string
	// known means that the data set has all candidates, so that the fastest ones are known: best, by size.
	known bool
	best  []unit.Seconds
	// fresh counts the measurements of this run, which took so long.
	fresh int
	begun time.Time
	took  time.Duration
}

// open finds the times and plans.
func (o *TuneOptions) open(ctx context.Context, a arch.Architecture, file *tune.File) (*tuning, error) {
	s := &tuning{o: o, arch: a, folder: o.Records, blocks: map[int][]dataset.Measurement{}}
	var memory unit.Bytes
	var err error
	if s.share, err = o.Share.Part(o.Factory.Getenv); err != nil {
		return nil, err
	}
	if o.Executor != "" && !o.DryRun {
		if o.Share.On() {
			if s.gpus, memory, err = o.Factory.Sweeps(ctx, a, o.Executor, &o.Share, o.WarmL2); err == nil {
				s.sweep = s.gpus[0].Sweep
			}
		} else {
			s.sweep, memory, err = o.Factory.Sweep(ctx, a, o.Executor, o.WarmL2)
		}
		if err != nil {
			return nil, err
		}
		s.kernel = s.sweep.Space.Kernel
	} else if s.kernel, err = ask.KernelFamily(a.Describe(), o.Factory.Settings.Kernel); err != nil {
		return nil, err
	}
	if err == nil {
		err = s.fill(ctx, file, memory)
	}
	if err != nil {
		_ = s.close() // the error says more
		return nil, err
	}
	return s, nil
}

// fill plans, and reads or opens the data set.
func (s *tuning) fill(ctx context.Context, file *tune.File, memory unit.Bytes) (err error) {
	s.exclude(file, memory)
	if s.sweep == nil && !s.o.DryRun {
		if err := s.read(ctx); err != nil {
			return err
		}
	}
	top, mapped := tune.Considered, 0
	if s.known || s.o.Strategy != byModel {
		top = 0
	}
	if s.known || s.o.DryRun {
		mapped = 1 // the launch orders are those of the records, or do not matter
	}
	if s.plan, err = tune.NewPlan(ctx, s.arch, s.kernel, file, top, mapped); err != nil {
		return err
	}
	for _, u := range s.plan.Unfit {
		s.o.Factory.Streams.Warn(diag.Line(diag.Within(u.Where, u.Err)))
	}
	if err := s.takePart(); err != nil {
		return err
	}
	switch {
	case s.sweep != nil:
		return s.keep(ctx)
	case s.known:
		return s.recorded()
	}
	return nil
}

// exclude takes the sizes out that do not fit into the device's memory.
func (s *tuning) exclude(file *tune.File, memory unit.Bytes) {
	for i := range file.Types {
		for j := range file.Types[i].Sets {
			set := &file.Types[i].Sets[j]
			set.Sizes = slices.DeleteFunc(set.Sizes, func(p gemm.Problem) bool {
				return !datastore.Fits(s.o.Factory.Streams, p, memory)
			})
		}
	}
}

// keep opens the folder that is measured into.
func (s *tuning) keep(ctx context.Context) (err error) {
	s.sweep.Data.Source = "origami tune --executor " + s.o.Executor
	if s.folder == "" {
		s.folder = datastore.DefaultFolder(s.sweep.Data.Conditions) + "-tuned"
		s.o.Factory.Streams.Note("measurements are kept in " + s.folder)
	}
	s.folder = filepath.Clean(s.folder)
	s.merged = s.folder
	s.sweep.RetryFailed = s.o.RetryFailed
	if s.gpus == nil {
		s.store, err = datastore.Continue(ctx, s.o.Factory.Streams, s.sweep, s.folder)
	} else {
		s.store, err = datastore.ContinueShard(ctx, s.o.Factory.Streams, s.sweep.Data, s.folder, s.share, s.work)
		s.folder = datastore.ShardFolder(s.folder, s.share)
	}
	if err != nil {
		return err
	}
	s.data = s.store.Data
	if s.o.Strategy == all {
		return nil
	}
	return s.writeOutcome([]byte("{\"tune\":1}\n")) // unfinished
}

// writeOutcome replaces the file that says what tuning made of the measurements.
func (s *tuning) writeOutcome(text []byte) error {
	name := filepath.Join(s.folder, datastore.TuneFile)
	if err := durable.Write(name, 0o644, text); err != nil {
		return diag.Inputf("it cannot be written: %v", err).At("%s", name).Do("make room, or name another --records")
	}
	return nil
}

// read reads the data set whose times stand for measurements.
func (s *tuning) read(ctx context.Context) (err error) {
	d := s.arch.Describe()
	if s.known = true; s.folder == "" {
		s.data, err = datastore.Shipped(d, s.kernel, "--records")
		return err
	}
	if _, err := os.Stat(filepath.Join(s.folder, datastore.TuneFile)); !errors.Is(err, fs.ErrNotExist) {
		s.known = false // it was tuned, and has not all candidates
	}
	s.data, err = datastore.Folder(ctx, d, s.kernel, "--records", s.folder)
	return err
}

// recorded leaves the sizes and candidates that are recorded.
func (s *tuning) recorded() error {
	var recorded []tune.Size
	for i := range s.plan.Sizes {
		size := s.plan.Sizes[i]
		best := unit.Seconds(0)
		var there []tune.Candidate
		for _, c := range size.Candidates {
			m, ok := s.data.Candidate(size.Problem, c.Config)
			if !ok {
				continue
			}
			if m.Status == dataset.OK && (best == 0 || m.Median < best) {
				best = m.Median
			}
			c.Config.GroupM = m.Config.GroupM
			there = append(there, c)
		}
		if size.Candidates, size.Usable = there, len(there); best > 0 {
			recorded, s.best = append(recorded, size), append(s.best, best)
		}
	}
	if missing := len(s.plan.Sizes) - len(recorded); missing > 0 {
		s.o.Factory.Streams.Warn(fmt.Sprintf("%d of %d sizes are not in %s, and are left out", missing,
			len(s.plan.Sizes), s.data.Name))
	}
	if s.plan.Sizes = recorded; len(recorded) == 0 {
		return diag.Inputf("none of the sizes is in %s", s.data.Name).At("%s", s.o.file).
			Do("name another --records, or measure with --executor")
	}
	return nil
}

// time returns the recorded time of a candidate, 0 if it has none, and false if it is not recorded.
func (s *tuning) time(t *tune.Tuner, task tune.Task) (unit.Seconds, bool) {
	m, there := s.recordedAt(t, task)
	return m.Median, there
}

// recordedAt returns the measurement of a candidate, and false if it is not recorded.
func (s *tuning) recordedAt(t *tune.Tuner, task tune.Task) (dataset.Measurement, bool) {
	size := &t.Sizes[task.Size]
	c := size.Candidates[task.Candidate].Config
	find := s.data.Candidate
	if s.sweep != nil {
		find = s.data.Find
	}
	return find(size.Problem, c)
}

// measure makes measurements, or finds them in the data set.
func (s *tuning) measure(ctx context.Context, t *tune.Tuner, tasks []tune.Task) ([]unit.Seconds, error) {
	var err error
	over := s.o.Budget > 0 && time.Since(s.begun) > s.o.Budget
	if s.sweep != nil && !over {
		wanted := make([]dataset.Measurement, len(tasks))
		for i, task := range tasks {
			size := &t.Sizes[task.Size]
			wanted[i].Problem, wanted[i].Config = size.Problem, size.Candidates[task.Candidate].Config
		}
		if err = s.sweep.Measure(ctx, wanted); ctx.Err() != nil {
			err = ctx.Err()
		}
	}
	var times []unit.Seconds
	for _, task := range tasks {
		time, there := s.time(t, task)
		if !there {
			break
		}
		times = append(times, time)
	}
	return times, err
}

// tune runs the strategy.
func (s *tuning) tune(ctx context.Context) (*tune.Tuner, error) {
	d := s.arch.Describe()
	t := &tune.Tuner{Sizes: s.plan.Sizes, Prior: tune.PriorOf(d), Unchecked: unchecked(d, s.kernel), Regret: s.o.regret,
		Most: s.o.Most, Batch: batch}
	if s.o.DryRun {
		return t, s.dryRun(ctx, t)
	}
	if t.Unchecked && s.o.Strategy == byModel {
		s.o.Factory.Streams.Warn(fmt.Sprintf("the %s model of %s states no error for %s: it takes more measurements, and "+
			"the expected regret is rough", d.Model, d.ID(), s.kernel))
	}
	s.begun = time.Now()
	bar := table.NewBar(s.o.Factory.Streams, "tuning")
	defer bar.Stop()
	if s.sweep != nil && s.gpus == nil {
		datastore.Watch(s.sweep, bar, func(dataset.Measurement) { s.fresh++ })
	}
	t.Measure = func(ctx context.Context, tasks []tune.Task) ([]unit.Seconds, error) { return s.measure(ctx, t, tasks) }
	t.Progress = func(open int) { s.show(bar, t, open) }
	if !s.known {
		past := s.recall(t)
		if s.gpus != nil || s.data.Count(func(m *dataset.Measurement) bool { return m.GPU != "" }) > 0 {
			t.Known = past.order
		}
		if s.gpus != nil {
			fleet := datastore.NewFleet(s.store, s.gpus, s.o.RetryFailed, s.bests, s.predicted, bar,
				func(dataset.Measurement) { s.fresh++ })
			if err := fleet.Begin(ctx); err != nil {
				return t, datastore.Stopped(ctx, err, s.data.Len(), s.folder)
			}
			s.fleet = fleet
			t.Batch *= len(s.gpus)
			t.Team = &team{s: s, t: t, fleet: fleet, past: past, tasks: map[measure.Job]tune.Task{}}
		}
	}
	err := s.run(ctx, t)
	if s.fleet != nil {
		s.fleet.Close()
	}
	s.took = time.Since(s.begun)
	if err != nil && s.sweep != nil {
		err = datastore.Stopped(ctx, err, s.data.Len(), s.folder)
	}
	return t, err
}

// show says how many sizes are open. The measurements that are left are expected to be as many per size as those that
// were made.
func (s *tuning) show(bar *table.Bar, t *tune.Tuner, open int) {
	if !bar.Shown() {
		return
	}
	made := len(t.Log)
	left := max(open, open*made/max(1, len(t.Sizes)-open))
	if t.Most > 0 {
		left = min(left, t.Most-made)
	}
	bar.Set(int64(made), int64(made+left))
	rate := float64(made) / max(time.Since(s.begun).Seconds(), 1e-3)
	bar.SetMessage(fmt.Sprintf("%d measured, %.1f/s, %d of %d sizes open", made, rate, open, len(t.Sizes)))
}

// batch is how many measurements are asked for at once: enough to compile ahead, few enough to learn from each other.
const batch = 8

// run tunes, and then holds the caps on kernels.
func (s *tuning) run(ctx context.Context, t *tune.Tuner) error {
	switch s.o.Strategy {
	case all:
		return t.Everything(ctx)
	case inSteps:
		return t.InSteps(ctx, s.plan.File, s.arch.Describe().Axes(s.kernel))
	}
	if err := t.Run(ctx); err != nil {
		return err
	}
	for kind := range s.plan.File.Types {
		if most := s.plan.File.Types[kind].Most; most > 0 && s.share.Of > 0 {
			s.o.Factory.Streams.Note("the cap on kernels is for all sizes together, and holds when the merged folder is tuned")
		} else if most > 0 {
			if err := t.Cap(ctx, kind, most); err != nil {
				return err
			}
		}
	}
	return s.repeat(ctx, t)
}

// close ends the executor and closes the folder.
func (s *tuning) close() error {
	var err error
	if s.store != nil {
		err = s.store.Close()
		s.store = nil
	}
	for _, g := range s.gpus {
		err = errors.Join(err, g.Executor.Close())
	}
	if s.sweep != nil && s.gpus == nil {
		err = errors.Join(err, s.sweep.Executor.Close())
	}
	s.sweep, s.gpus = nil, nil
	return err
}
