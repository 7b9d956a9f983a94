//go:build linux

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
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
