package measure_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// card is a GPU of a made-up machine. Its kernels take as long as on any other, times pace, and all of its time is that
// of a clock that runs as fast as nobody waits.
type card struct {
	*exectest.Executor
	pace  atomic.Int64 // in thousandths
	wrong atomic.Bool
	// dead, if it is set, is the error of every call. deaths is how often the process is ended from outside.
	dead   atomic.Pointer[error]
	deaths atomic.Int64
	runs   atomic.Int64
	// at is called before the first run, and before each of which many were made.
	at func(runs int64)
}

func newCard() *card {
	c := &card{Executor: &exectest.Executor{Device: exec.Device{Name: "One", Arch: "toy", Kernels: []string{"k"}}}}
	c.pace.Store(1000)
	c.Time = func(p gemm.Problem, x gemm.Config) unit.Seconds {
		return unit.Seconds(float64(p.M*x.BlockM)*1e-7) * unit.Seconds(c.pace.Load()) / 1000
	}
	c.Takes = func(t unit.Seconds) { time.Sleep(time.Duration(float64(t) * float64(time.Second))) }
	c.Fate = func(_ gemm.Problem, x gemm.Config) exectest.Fate {
		if c.wrong.Load() {
			return exectest.Wrong
		}
		if x.BlockM == 48 {
			return exectest.NotBuilt
		}
		return exectest.Fine
	}
	c.Before = func(int) error {
		if c.at != nil {
			c.at(c.runs.Add(1))
		}
		if err := c.dead.Load(); err != nil {
			return *err
		}
		if c.deaths.Add(-1) >= 0 {
			return c.Kill()
		}
		return nil
	}
	return c
}

// sleep waits on the clock of the machine.
func sleep(ctx context.Context, d time.Duration) error {
	time.Sleep(d)
	return ctx.Err()
}

// machine is some cards that measure into a log.
type machine struct {
	cards []*card
	log   log
	full  bool
	aside []string
}

func newMachine(cards int) *machine {
	m := &machine{}
	for range cards {
		m.cards = append(m.cards, newCard())
	}
	return m
}

func (m *machine) fleet(t testing.TB) *measure.Fleet {
	f := &measure.Fleet{Data: m.log.read(t), Interval: time.Second, Keep: func(ms ...dataset.Measurement) error {
		if m.full {
			return errors.New("no space left on device")
		}
		return m.log.keep(ms...)
	}}
	f.Aside = func(g *measure.GPU, why error) { m.aside = append(m.aside, g.Name+": "+diag.Line(why)) }
	for i, c := range m.cards {
		f.GPUs = append(f.GPUs, m.gpu(i, c))
	}
	for _, p := range work {
		f.Known = append(f.Known, dataset.Measurement{Problem: p, Config: gemm.Config{BlockM: 16, BlockN: 16, BlockK: 16,
			NumWarps: 4, NumStages: 2, SplitK: 1, Kernel: "k", GroupM: 3}})
	}
	return f
}

// gpu is a card that a fleet measures with.
func (m *machine) gpu(i int, c *card) *measure.GPU {
	return &measure.GPU{Name: strconv.Itoa(i),
		Sweep: &measure.Sweep{Arch: wide{}, Executor: c, Ahead: 1, Pause: sleep, Host: "a test"}}
}

// work is problems of different lengths.
var work = func() (list []gemm.Problem) {
	for i := range 24 {
		list = append(list, gemm.New(64*(1+i*7%24), 64, 64))
	}
	return list
}()

// jobs are all candidates of all problems, or the problems as wholes.
func jobs(t testing.TB, whole bool) []measure.Job { return jobsOf(t, work, whole) }

func jobsOf(t testing.TB, problems []gemm.Problem, whole bool) (list []measure.Job) {
	t.Helper()
	candidates := must.Get(wide{}.Candidates(t.Context(), gemm.Problem{}, arch.Space{}))(t)
	for _, p := range problems {
		if whole {
			list = append(list, measure.Job{Problem: p, Whole: true})
			continue
		}
		for _, c := range candidates.Configs {
			c.GroupM = 3
			list = append(list, measure.Job{Problem: p, Config: c})
		}
	}
	return list
}

// through does jobs, and returns the last outcome of each.
func through(t testing.TB, f *measure.Fleet, list []measure.Job) (map[measure.Job]measure.Outcome, error) {
	t.Helper()
	last := map[measure.Job]measure.Outcome{}
	if err := f.Begin(t.Context()); err != nil {
		return nil, err
	}
	defer f.Close()
	f.Add(list...)
	for {
		outcomes, err := f.Wait(t.Context())
		if err != nil || len(outcomes) == 0 {
			return last, err
		}
		for _, o := range outcomes {
			last[o.Job] = o
		}
	}
}

// lines are the measurements of a log by what they are of, with what does not depend on who measured.
func (l *log) lines(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range l.read(t).All() {
		key := fmt.Sprintf("%s %s %s %v %d", m.Phase, m.Problem, m.Label(), m.Null, m.Block)
		_, twice := out[key]
		must.That(t, !twice, "%s is there twice", key)
		out[key] = fmt.Sprintf("%s %v %d", m.Status, m.Median, len(m.Samples))
	}
	return out
}

// What several GPUs measure is what one does: nothing is lost, nothing is there twice, and hardly any GPU waits.
func TestFleet(t *testing.T) {
	var many []gemm.Problem // the longest first
	n := 200
	if raceDetector {
		n = 20
	}
	for i := range n {
		many = append(many, gemm.New(8*(201-i), 64, 64))
	}
	for _, whole := range []bool{false, true} {
		var want map[string]string
		var alone time.Duration
		for _, cards := range []int{1, 2, 4, 8} {
			t.Run(fmt.Sprintf("whole=%v/%d", whole, cards), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m, begun := newMachine(cards), time.Now()
					f := m.fleet(t)
					f.Interval = 10 * time.Second
					must.Get(through(t, f, jobsOf(t, many, whole)))(t)
					took := time.Since(begun)
					got := m.log.lines(t)
					if want == nil {
						want, alone = got, took
					}
					diff := cmp.Diff(want, got)
					must.That(t, diff == "" && len(got) >= n*14, "%d lines: %s", len(got), diff)
					if most := alone / time.Duration(cards) * 10 / 9; took > most && !raceDetector {
						t.Errorf("it took %v, and %v alone, where at most %v is expected", took, alone, most)
					}
					must.That(t, len(m.aside) == 0, "%v", m.aside)
				})
			})
		}
	}
}

// lost is the error of a device that is gone.
func goneDevice() error {
	return &diag.Error{Kind: diag.Device, What: "the GPU has fallen off the bus"}
}

func hung() error {
	return &diag.Error{Kind: diag.Plugin, What: "the call did not end", Err: exec.ErrHung}
}

// Whatever happens to one of three GPUs, at any time, what is recorded in the end is what it would be if nothing had
// happened, and the last outcome of each job is what is recorded.
func TestFleetFaults(t *testing.T) {
	dead := func(err error) func(*card) { return func(c *card) { c.dead.Store(&err) } }
	pace := func(thousandths int64) func(*card) { return func(c *card) { c.pace.Store(thousandths) } }
	faults := []struct {
		name  string
		do    func(*card)
		aside string // part of the reason why the GPU is set aside, empty if it is not
	}{
		{"killed once", func(c *card) { c.deaths.Store(1) }, ""},
		{"killed three times", func(c *card) { c.deaths.Store(3) }, ""},
		{"gone", dead(goneDevice()), "fallen off"},
		{"always killed", dead(&diag.Error{Kind: diag.Plugin, What: "it died", Err: exec.ErrDied}), "it died"},
		{"cannot be started", dead(&diag.Error{Kind: diag.Plugin, What: "it cannot be started"}), "cannot be started"},
		{"replaced by another version", dead(&diag.Error{Kind: diag.Plugin, What: "it has changed"}), "has changed"},
		{"hung", dead(hung()), "did not end"},
		{"nonsense", dead(&diag.Error{Kind: diag.Plugin, What: "nonsense", Err: exec.ErrNonsense}), "nonsense"},
		{"wrong results", func(c *card) { c.wrong.Store(true) }, "is wrong numerics"},
		{"5 % slow", pace(1050), "5.0 % longer"},
		{"throttled to half", pace(2000), "100.0 % longer"},
		{"5 % fast", pace(950), "5.0 % shorter"},
		{"impossibly fast", pace(1), "99.9 % shorter"},
	}
	for _, whole := range []bool{false, true} {
		var undisturbed map[string]string
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(1)
			must.Get(through(t, m.fleet(t), jobs(t, whole)))(t)
			undisturbed = m.log.lines(t)
		})
		for _, fault := range faults {
			moments := []int64{40, 150, 330}
			if raceDetector {
				moments = moments[1:2]
			}
			for _, moment := range moments {
				t.Run(fmt.Sprintf("%s/%v/%d", fault.name, whole, moment), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						m := newMachine(3)
						var once sync.Once
						m.cards[1].at = func(runs int64) {
							if runs >= moment {
								once.Do(func() { fault.do(m.cards[1]) })
							}
						}
						last := must.Get(through(t, m.fleet(t), jobs(t, whole)))(t)
						must.Equal(t, cmp.Diff(undisturbed, m.log.lines(t)), "")
						switch {
						case m.cards[1].runs.Load() < moment:
							t.Errorf("the GPU had %d calls only", m.cards[1].runs.Load())
						case fault.aside == "" && len(m.aside) > 0,
							fault.aside != "" && (len(m.aside) != 1 || !strings.HasPrefix(m.aside[0], "1: ") ||
								!strings.Contains(m.aside[0], fault.aside)):
							t.Errorf("set aside: %q", m.aside)
						}
						data := m.log.read(t)
						for job, o := range last {
							recorded, there := data.Find(job.Problem, job.Config)
							must.That(t, whole || there && recorded.Median == o.Median && recorded.Status == o.Status,
								"%v: %v, and %v is recorded", job, o.Measurement, recorded)
						}
					})
				})
			}
		}
	}
}

// A GPU that is off from the beginning is set aside if others say so, or what is recorded. Of two that differ, nobody
// can say which is right, and none is believed.
func TestFleetAtFirst(t *testing.T) {
	list := jobs(t, false)[:40]
	begin := func(t *testing.T, m *machine) error {
		t.Helper()
		_, err := through(t, m.fleet(t), list)
		return err
	}
	for name, do := range map[string]func(*card){
		"slow": func(c *card) { c.pace.Store(1060) }, "fast": func(c *card) { c.pace.Store(950) },
		"wrong": func(c *card) { c.wrong.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(3)
				do(m.cards[2])
				if err := begin(t, m); err != nil || len(m.aside) != 1 || !strings.HasPrefix(m.aside[0], "2: ") {
					t.Fatal(err, m.aside)
				}
				m = newMachine(2)
				do(m.cards[0])
				err := begin(t, m)
				if name == "wrong" {
					must.Need(t, err == nil && len(m.aside) == 1, "%v %v", err, m.aside)
					return
				}
				if err == nil || !strings.Contains(err.Error(), "nothing says which of them is right") ||
					diag.KindOf(err) != diag.Device || len(m.log) > 0 {
					t.Fatal(err, len(m.log))
				}
				// With the records of a run that was right, it is known.
				good := newMachine(1)
				must.Do(t, begin(t, good))
				m.log = slices.Clone(good.log)
				if err := begin(t, m); err != nil || len(m.aside) != 1 || !strings.HasPrefix(m.aside[0], "0: ") {
					t.Fatal(err, m.aside)
				}
			})
		})
	}
}

// A kernel that hangs, whenever its turn comes, costs itself. No GPU is set aside for it.
func TestFleetHungKernel(t *testing.T) {
	places := []int{0, len(work) / 2, len(work) - 1}
	if raceDetector {
		places = places[1:2]
	}
	for _, at := range places {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(3)
			for _, c := range m.cards {
				others := c.Fate
				c.Fate = func(p gemm.Problem, x gemm.Config) exectest.Fate {
					if p == work[at] && x.BlockM == 64 {
						return exectest.Hang
					}
					return others(p, x)
				}
			}
			must.Get(through(t, m.fleet(t), jobs(t, false)))(t)
			all := m.log.read(t).All()
			must.That(t, len(all) == 24*14 && len(m.aside) == 0, "%d measurements, set aside: %v", len(all), m.aside)
			for _, r := range all {
				hangs, timeout := r.Problem == work[at] && r.Config.BlockM == 64, r.Status == dataset.Timeout
				if hangs != timeout || timeout && r.Fault != dataset.FaultKernel {
					t.Errorf("%s of %s is %s", r.Label(), r.Problem, r.Status)
				}
			}
		})
	}
}

// Whatever ends a run, the next one goes on: a full disk, and a process that is killed at any line, in the middle of
// which its record may be cut off.
func TestFleetGoesOn(t *testing.T) {
	list := jobs(t, false)
	synctest.Test(t, func(t *testing.T) {
		whole := newMachine(2)
		must.Get(through(t, whole.fleet(t), list))(t)
		want := whole.log.lines(t)
		for _, cut := range []int{1, len(whole.log) / 3, len(whole.log) - 7} {
			m := newMachine(2)
			m.log = slices.Clone(whole.log[:cut])
			m.full = true
			must.Fail(t, must.Err(through(t, m.fleet(t), list)), "no space left")
			m.full = false
			before := m.log.lines(t)
			must.Get(through(t, m.fleet(t), list))(t)
			must.Equal(t, cmp.Diff(want, m.log.lines(t)), "", cut)
			n := len(m.log.read(t).All())
			must.That(t, n == len(want) && len(before) <= n, "cut at %d: %d lines, %d before", cut, n, len(before))
		}
	})
}

// Without a GPU that is left, the run ends, and what was confirmed is kept.
func TestFleetAllAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(2)
		for _, c := range m.cards {
			c.at = func(runs int64) {
				if err := goneDevice(); runs > 200 {
					c.dead.Store(&err)
				}
			}
		}
		_, err := through(t, m.fleet(t), jobs(t, false))
		if err == nil || diag.KindOf(err) != diag.Device || !strings.Contains(err.Error(), "all 2 GPUs are set aside") {
			t.Fatal(err)
		}
		kept := len(m.log.lines(t))
		for _, c := range m.cards {
			c.at = nil
			c.dead.Store(nil)
		}
		if _, err := through(t, m.fleet(t), jobs(t, false)); err != nil || kept == 0 {
			t.Fatal(err, kept)
		}
		must.Equal(t, len(m.log.lines(t)), 24*14)
	})
}

// An error that is neither an executor's nor a device's ends the run, and blames no GPU.
func TestFleetEndsWithABug(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, bug := newMachine(2), error(&diag.Error{What: "a bug"})
		m.cards[0].at = func(runs int64) {
			if runs == 100 {
				m.cards[0].dead.Store(&bug)
			}
		}
		must.Fail(t, must.Err(through(t, m.fleet(t), jobs(t, false))), "a bug")
		must.Equal(t, len(m.aside), 0)
	})
}
