//go:build linux

package soak

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sweep is a sweep into one folder, by one command after the other.
type sweep struct {
	*world
	place, folder string
	random        *rand.Rand
	command       *command // the running one, nil if none runs
	before        records  // what the folder held when it was last looked at
	log           []string
}

// round sweeps into a new folder under disturbances, finishes the sweep without any, and checks everything.
func (w *world) round(ctx context.Context, n int, random *rand.Rand) error {
	s := &sweep{world: w, place: fmt.Sprintf("round %d", n), folder: w.path(fmt.Sprintf("round%d", n)), random: random}
	if w.full != "" && random.IntN(4) == 0 {
		s.folder = filepath.Join(w.full, "records")
	}
	violations := w.tally.violations()
	beside, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, plugin := range []string{"one", "two"} {
		own := rand.New(rand.NewPCG(random.Uint64(), 0))
		wg.Go(func() { w.trustAndDistrust(beside, s.place, plugin, own) })
	}
	own := rand.New(rand.NewPCG(random.Uint64(), 0))
	wg.Go(func() { w.selectOften(beside, s.place, own) })

	err := s.disturbed(ctx)
	stop()
	wg.Wait()
	if err == nil && ctx.Err() == nil {
		err = s.finish(ctx)
	}
	if wrong := w.tally.since(violations); len(wrong) > 0 {
		log := strings.Join(append(s.log, wrong...), "\n") + "\n"
		_ = os.WriteFile(w.path(fmt.Sprintf("round%d.log", n)), []byte(log), 0o600)
		if w.full != "" && strings.HasPrefix(s.folder, w.full) {
			_ = os.CopyFS(w.path(fmt.Sprintf("round%d", n)), os.DirFS(s.folder))
			_ = os.RemoveAll(s.folder)
		}
		return err
	}
	_ = os.RemoveAll(s.folder)
	return err
}

// disturbed runs the sweep, again and again if it ends early, until it was disturbed a number of times or is complete.
func (s *sweep) disturbed(ctx context.Context) error {
	todo := 6 + s.random.IntN(15)
	for end := time.Now().Add(time.Minute); ctx.Err() == nil && time.Now().Before(end) && todo > 0; {
		if s.command == nil {
			if err := s.start(ctx); err != nil {
				return err
			}
		}
		pause(ctx, time.Duration(10+s.random.IntN(300))*time.Millisecond)
		select {
		case <-s.command.ended:
			if code, err := s.ended(); err != nil || code == 0 {
				return err
			}
			continue
		default:
		}
		atOnce := 1
		if s.random.IntN(5) == 0 {
			atOnce += 1 + s.random.IntN(2)
		}
		var wg sync.WaitGroup
		for range atOnce {
			d := s.choose()
			own := rand.New(rand.NewPCG(s.random.Uint64(), 0))
			s.log = append(s.log, time.Now().Format("15:04:05.000 ")+d.name)
			wg.Go(func() { d.do(s, ctx, own) })
			todo--
		}
		wg.Wait()
	}
	if s.command == nil {
		return nil
	}
	_, err := s.ended()
	return err
}

// start starts the sweep, sometimes with too little memory.
func (s *sweep) start(ctx context.Context) error {
	args := bench(s.folder, s.path("problems.csv"))
	s.command = s.world.command(ctx, args...)
	if s.random.IntN(12) == 0 {
		limit := 100_000 + s.random.IntN(1_500_000)
		script := fmt.Sprintf(`ulimit -v %d; exec "$@"`, limit)
		s.command = s.program(ctx, "/bin/sh", append([]string{"-c", script, "sh", s.origami}, args...)...)
		s.command.starves()
		s.tally.count("hurt: sweep started with little memory")
	}
	return s.command.start()
}

// ended waits until the running command has ended, and checks its end and the folder.
func (s *sweep) ended() (code int, err error) {
	r := s.command.result()
	s.checkEnd(s.place, "bench", s.command.past, r)
	s.log = append(s.log, time.Now().Format("15:04:05.000 ")+"bench: "+r.Error())
	s.command = nil
	return r.code, s.look()
}

// look checks that the folder has only grown.
func (s *sweep) look() error {
	now, err := readRecords(s.folder)
	if err != nil {
		s.tally.violate("%s: torn: %v", s.place, err)
		return nil
	}
	for _, wrong := range now.grown(s.before) {
		s.tally.violate("%s: %s", s.place, wrong)
	}
	s.before = now
	return nil
}

// finish completes the sweep and checks its records, and that nothing else is left.
func (s *sweep) finish(ctx context.Context) error {
	c := s.world.command(ctx, bench(s.folder, s.path("problems.csv"))...)
	if err := c.start(); err != nil {
		return err
	}
	r := c.result()
	s.checkEnd(s.place, "bench undisturbed", c.past, r)
	s.log = append(s.log, "undisturbed: "+r.Error())
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the time is over
	}
	if err := s.look(); err != nil {
		return err
	}
	for _, wrong := range s.before.compare(s.undisturbed) {
		s.tally.violate("%s: %s", s.place, wrong)
	}
	c = s.world.command(ctx, s.selection(byPlugin)...)
	if r := c.run(); r.code != 0 || r.stdout != s.picks[byPlugin] {
		s.tally.violate("%s: select: afterwards it answers %q (%v)", s.place, r.stdout, r)
	}
	s.nothingIsLeft()
	return nil
}

// nothingIsLeft checks that all processes have ended and that no folder of sockets is left. A plugin whose host was
// killed notices that a little later.
func (s *sweep) nothingIsLeft() {
	var left []int
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if left = s.processes(); len(left) == 0 {
			break
		}
	}
	for _, pid := range left {
		s.tally.violate("%s: orphan: %s", s.place, name(pid))
	}
	folders, _ := filepath.Glob(s.path("tmp", "*"))
	for _, folder := range folders {
		s.tally.violate("%s: left behind: %s", s.place, folder)
	}
}

// selectOften selects, in one of the ways, until the context ends. Some of the commands are killed. Whatever
// answers, answers right.
func (w *world) selectOften(ctx context.Context, place string, random *rand.Rand) {
	for ctx.Err() == nil {
		kind := random.IntN(selections)
		moves := w.temporary.Load()
		c := w.command(context.WithoutCancel(ctx), w.selection(kind)...)
		if err := c.start(); err != nil {
			w.tally.violate("%s: %v", place, err)
			return
		}
		switch random.IntN(4) {
		case 0:
			w.killSoon(c, "select", 150*time.Millisecond, random)
		case 1:
			pause(ctx, time.Duration(random.IntN(150))*time.Millisecond)
			w.killChild(c, w.origami, "model", random)
		}
		r := c.result()
		if kind != inProcess && (moves%2 == 1 || w.temporary.Load() != moves) {
			c.hurts()
		}
		w.checkEnd(place, "select", c.past, r)
		if r.code == 0 && r.stdout != w.picks[kind] {
			w.tally.violate("%s: select: it answers %q", place, r.stdout)
		}
		pause(ctx, time.Duration(random.IntN(800))*time.Millisecond)
	}
}

// alarming are words that no command may print.
var alarming = []string{"panic:", "DATA RACE", "internal error", "runtime error", "goroutine ", "fatal error"}

// checkEnd checks the exit code and the messages of a command.
func (w *world) checkEnd(place, what string, p past, r result) {
	how := fmt.Sprintf("exit code %d", r.code)
	ok := r.code == 0 || p.hurt && slices.Contains([]int{1, 2, 3, 4}, r.code) || p.starved
	if r.code < 0 {
		how = "died of " + signalName(r.signal)
		ok = ok || slices.Contains(p.signals, r.signal)
	}
	if r.code > 128 { // as shells count
		ok = ok || slices.Contains(p.signals, syscall.Signal(r.code-128))
	}
	w.tally.count("end: " + what + ": " + how)
	if p.late {
		w.tally.violate("%s: hung: %s did not end within %v", place, what, patience)
	}
	if !ok && !p.late {
		w.tally.violate("%s: end: %s: %v", place, what, r)
	}
	for _, word := range alarming {
		if strings.Contains(r.stderr, word) && !p.starved && !p.pluginStarved {
			w.tally.violate("%s: alarming: %s prints %q", place, what, r.stderr)
			return
		}
	}
}

// must notes a failure of the soak itself.
func (s *sweep) must(err error) {
	if err != nil {
		s.tally.violate("%s: soak: %v", s.place, err)
	}
}

func signalName(s syscall.Signal) string { return strings.TrimPrefix(unix.SignalName(s), "SIG") }

// other is the other variant of the executor.
func other(variant string) string {
	if variant == "a" {
		return "b"
	}
	return "a"
}

// tally counts what was done and what was found. It is safe for concurrent use.
type tally struct {
	verbose bool
	mu      sync.Mutex
	counts  map[string]int
	wrong   []string
}

func newTally(verbose bool) *tally { return &tally{verbose: verbose, counts: map[string]int{}} }

// count counts what happened: "kill: …", "hurt: …", "end: …".
func (t *tally) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
	if t.verbose {
		fmt.Println(time.Now().Format("15:04:05.000"), what)
	}
}

// violate notes that something happened which must not happen.
func (t *tally) violate(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	_, kind, _ := strings.Cut(what, ": ")
	kind, _, _ = strings.Cut(kind, ":")
	t.counts["violation: "+kind]++
	t.wrong = append(t.wrong, what)
	fmt.Println("VIOLATION", what)
}

// since returns the violations after the first ones.
func (t *tally) since(first int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.wrong[first:])
}

func (t *tally) violations() int { return len(t.since(0)) }

func (t *tally) print(w io.Writer, rounds int, took time.Duration, seed uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(w, "\nseed %d: %d rounds in %v\n", seed, rounds, took.Round(time.Second))
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(w, "%7d  %s\n", t.counts[what], what)
	}
	fmt.Fprintf(w, "%7d violations\n", len(t.wrong))
}
