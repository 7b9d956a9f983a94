package measurecmd

import (
	"cmp"
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
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
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
	work   work
	data   *dataset.Dataset
	// recording measures; without it, the data set stands in for measurements.
	recording *recording
	// known means that the data set has all candidates, so that the fastest ones are known: best, by size.
	known bool
	best  []unit.Seconds
	// fresh counts the measurements of this run, which took so long.
	fresh int
	begun time.Time
	took  time.Duration
}

// open plans, and opens what measures, or the records that stand in for it.
func (s *tuning) open(ctx context.Context) (err error) {
	o := s.o
	file, err := o.read(ctx)
	if err != nil {
		return err
	}
	if s.arch, err = o.beside(func() (arch.Architecture, error) { return o.Factory.Searched(ctx, &o.Query) }); err != nil {
		return err
	}
	var memory unit.Bytes
	if o.Executor != "" && !o.DryRun {
		if memory, err = o.open(ctx, s.arch); err != nil {
			return err
		}
		s.kernel = o.gpus[0].Space.Kernel
	} else if s.kernel, err = ask.KernelFamily(s.arch.Describe(), o.Factory.Settings.Kernel); err != nil {
		return err
	}
	if err = s.fill(ctx, file, memory); err != nil {
		_ = s.close() // the error says more
	}
	return err
}

// fill plans, and reads the data set. Sizes that do not fit into the device's memory are left out.
func (s *tuning) fill(ctx context.Context, file *tune.File, memory unit.Bytes) (err error) {
	streams := s.o.Factory.Streams
	for i := range file.Types {
		for j := range file.Types[i].Sets {
			set := &file.Types[i].Sets[j]
			set.Sizes = slices.DeleteFunc(set.Sizes, func(p gemm.Problem) bool { return !datastore.Fits(streams, p, memory) })
		}
	}
	if s.o.gpus == nil && !s.o.DryRun {
		if err := s.read(ctx); err != nil {
			return err
		}
	}
	top, mapped := tune.Considered, 0
	if s.known || s.o.Strategy != byModel {
		top = 0
	}
	if s.known || s.o.DryRun {
		mapped = 1 // the records have the launch orders, or they do not matter
	}
	if s.plan, err = tune.NewPlan(ctx, s.arch, s.kernel, file, top, mapped); err != nil {
		return err
	}
	for _, u := range s.plan.Unfit {
		streams.Warn(diag.Line(diag.Within(u.Where, u.Err)))
	}
	if err := s.takePart(); err != nil || !s.known {
		return err
	}
	return s.recorded()
}

// takePart keeps the sizes of this shard. The known kernels come from the whole work, so that all shards time the same
// ones.
func (s *tuning) takePart() error {
	sizes := s.plan.Sizes
	s.work.name = "tune " + s.o.Strategy + " " + s.kernel
	for i := range sizes {
		best := &sizes[i].Candidates[0]
		cost := measure.Cost(best.Predicted)
		if s.o.Strategy == all {
			cost = bruteForce(&sizes[i])
		}
		s.work.add(sizes[i].Problem, cost)
		s.work.predict(sizes[i].Problem, best.Config, best.Predicted)
	}
	if s.o.shard.Of == 0 {
		return nil
	}
	s.plan.Sizes = nil
	for _, i := range s.o.shard.Part(s.work.costs) {
		s.plan.Sizes = append(s.plan.Sizes, sizes[i])
	}
	if len(s.plan.Sizes) == 0 {
		return diag.Inputf("there are %d sizes, and so no size for part %d", len(sizes), s.o.shard.Index).
			At("--shard %s", s.o.shard).Do("use at most %d parts", len(sizes))
	}
	return nil
}

// read reads the data set whose times stand in for measurements.
func (s *tuning) read(ctx context.Context) (err error) {
	_, missing := os.Stat(filepath.Join(s.o.Records, datastore.TuneFile))
	s.known = s.o.Records == "" || errors.Is(missing, fs.ErrNotExist) // what was tuned has not all candidates
	s.data, err = datastore.Folder(ctx, s.arch.Describe(), s.kernel, "--records", s.o.Records)
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
		return diag.Inputf("none of the sizes is in %s", s.data.Name).At("%s", s.o.name()).
			Do("name another --records, or measure with --executor")
	}
	return nil
}

// recordedAt returns the measurement of a candidate, and false if it is not recorded.
func (s *tuning) recordedAt(t *tune.Tuner, task tune.Task) (dataset.Measurement, bool) {
	size := &t.Sizes[task.Size]
	c := size.Candidates[task.Candidate].Config
	if s.recording != nil {
		return s.data.Find(size.Problem, c)
	}
	return s.data.Candidate(size.Problem, c)
}

// time returns the recorded time of a candidate, 0 if it has none.
func (s *tuning) time(t *tune.Tuner, task tune.Task) unit.Seconds {
	m, _ := s.recordedAt(t, task)
	return m.Median
}

// batch is how many measurements each GPU is asked for at once: enough to compile ahead, few enough to learn from each
// other.
const batch = 8

// tune runs the strategy, and then holds the caps on kernels.
func (s *tuning) tune(ctx context.Context, t *tune.Tuner) error {
	d, o := s.arch.Describe(), s.o
	if t.Unchecked && o.Strategy == byModel {
		o.Factory.Streams.Warn(fmt.Sprintf("the %s model of %s states no error for %s: it takes more measurements, and "+
			"the expected regret is rough", d.Model, d.ID(), s.kernel))
	}
	s.begun = time.Now()
	bar := show.NewBar(o.Factory.Streams, "tuning")
	defer bar.Stop()
	if o.gpus != nil {
		if err := s.record(ctx, bar); err != nil {
			return err
		}
	}
	t.Batch = min(batch, (len(t.Sizes)+3)/4) // of few sizes, one is learnt from before the next is chosen
	if s.recording == nil {
		t.Executor = tune.Lookup(func(task tune.Task) (unit.Seconds, bool) {
			m, there := s.recordedAt(t, task)
			return m.Median, there
		})
	}
	if !s.known {
		known := s.recall(t)
		t.Unordered = s.data.Count(func(m *dataset.Measurement) bool { return m.GPU != "" }) > 0
		if s.recording != nil {
			x := &executor{s: s, t: t, past: map[tune.Task]unit.Seconds{}, tasks: map[measure.Job]tune.Task{}}
			for _, m := range known {
				x.past[m.Task] = m.Time
			}
			if t.Executor = x; !s.recording.Alone {
				t.Unordered, t.Batch = true, batch*len(o.gpus)
			}
		}
		if t.Unordered {
			t.Earlier = known // otherwise each is met again where it was asked for
		}
	}
	t.Progress = func(open int) { s.show(bar, t, open) }
	err := s.run(ctx, t)
	s.took = time.Since(s.begun)
	if s.recording != nil {
		if s.recording.Close(); err != nil {
			err = s.recording.stopped(ctx, err)
		}
	}
	return err
}

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
		if most := s.plan.File.Types[kind].Most; most > 0 && s.o.shard.Of > 0 {
			s.o.Factory.Streams.Note("the cap on kernels is for all sizes together, and holds when the merged folder is tuned")
		} else if most > 0 {
			if err := t.Cap(ctx, kind, most); err != nil {
				return err
			}
		}
	}
	return nil
}

// record lets the GPUs measure into a folder.
func (s *tuning) record(ctx context.Context, bar *show.Bar) (err error) {
	o := s.o
	first := o.gpus[0].Data
	first.Source = "origami tune --executor " + o.Executor
	folder := filepath.Clean(o.place(first.Conditions, "-tuned"))
	s.recording, err = o.record(ctx, o.gpus, folder, &s.work, bar, func(dataset.Measurement) { s.fresh++ })
	if err != nil {
		return err
	}
	if s.data = s.recording.store.Data; o.Strategy == all {
		return nil
	}
	return s.writeOutcome([]byte("{\"tune\":1}\n")) // unfinished
}

// writeOutcome replaces the file that says what tuning made of the measurements.
func (s *tuning) writeOutcome(text []byte) error {
	name := filepath.Join(s.recording.folder, datastore.TuneFile)
	if err := durable.Write(name, 0o644, text); err != nil {
		return diag.Inputf("it cannot be written: %v", err).At("%s", name).Do("make room, or name another --records")
	}
	return nil
}

// recall looks up what is recorded.
func (s *tuning) recall(t *tune.Tuner) (known []tune.Measured) {
	for i := range t.Sizes {
		for j := range t.Sizes[i].Candidates {
			task := tune.Task{Size: i, Candidate: j}
			if m, there := s.recordedAt(t, task); there && (m.Median > 0 || !s.o.RetryFailed) {
				known = append(known, tune.Measured{Task: task, Time: m.Median})
			}
		}
	}
	return known
}

// executor measures what the tuner asks for. What was recorded before is not measured again.
type executor struct {
	s     *tuning
	t     *tune.Tuner
	past  map[tune.Task]unit.Seconds
	tasks map[measure.Job]tune.Task
	// begun are tasks in their order, ready the results that nobody waits for.
	begun []tune.Task
	ready []tune.Measured
}

// Start implements tune.Executor.
func (x *executor) Start(tasks []tune.Task) int {
	var jobs []measure.Job
	x.begun = tasks
	for i, task := range tasks {
		if recorded, there := x.past[task]; there {
			x.ready = append(x.ready, tune.Measured{Task: task, Time: recorded})
			continue
		}
		if x.s.spent() {
			x.begun = tasks[:i]
			break
		}
		size := &x.t.Sizes[task.Size]
		job := measure.Job{Problem: size.Problem, Config: size.Candidates[task.Candidate].Config}
		x.tasks[job] = task
		jobs = append(jobs, job)
	}
	x.s.recording.Add(jobs...)
	return len(x.begun)
}

// spent reports whether the time of the budget is over.
func (s *tuning) spent() bool { return s.o.Budget > 0 && time.Since(s.begun) > s.o.Budget }

// Wait implements tune.Executor. One GPU's results come together, in the order in which their tasks were begun.
func (x *executor) Wait(ctx context.Context) ([]tune.Measured, error) {
	results, one := x.ready, x.s.recording.Alone
	x.ready = nil
	for len(results) == 0 || one && len(results) < len(x.begun) {
		outcomes, err := x.s.recording.Wait(ctx)
		for i := range outcomes {
			results = append(results, tune.Measured{Task: x.tasks[outcomes[i].Job], Time: outcomes[i].Median})
		}
		if err != nil || len(outcomes) == 0 {
			return results, err
		}
	}
	if one {
		slices.SortFunc(results, func(a, b tune.Measured) int {
			return cmp.Compare(slices.Index(x.begun, a.Task), slices.Index(x.begun, b.Task))
		})
		x.begun = nil
	}
	return results, nil
}

// show says how many sizes are open. The measurements that are left are expected to be as many per size as those that
// were made.
func (s *tuning) show(bar *show.Bar, t *tune.Tuner, open int) {
	made := len(t.Log)
	left := max(open, open*made/max(1, len(t.Sizes)-open))
	if t.Most > 0 {
		left = min(left, t.Most-made)
	}
	bar.Set(int64(made), int64(made+left))
	bar.SetMessage(fmt.Sprintf("%s, %d of %d sizes open", rate(made, time.Since(s.begun).Seconds()), open, len(t.Sizes)))
}

// close ends the executors and closes the folder.
func (s *tuning) close() (err error) {
	if s.recording != nil {
		err = s.recording.store.Close()
	}
	return errors.Join(err, s.o.close())
}
