//go:build linux

package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// disturbance is something that happens to a running sweep. It is over, and undone, when do returns.
type disturbance struct {
	name   string
	weight int
	do     func(s *sweep, ctx context.Context, random *rand.Rand)
}

func disturbances() []disturbance {
	return []disturbance{
		{"host is killed", 4, func(s *sweep, _ context.Context, random *rand.Rand) {
			sig := fatal[random.IntN(len(fatal))]
			s.command.signal(sig)
			s.tally.count("kill: host " + signalName(sig))
			select {
			case <-s.command.ended:
			case <-time.After(promptly):
				s.tally.violate("%s: hung: bench goes on %v after %s", s.place, promptly, signalName(sig))
				s.command.wait()
			}
		}},
		{"executor is killed", 10, func(s *sweep, ctx context.Context, random *rand.Rand) { s.killExecutor(ctx, random) }},
		{"executor is killed again and again", 2, func(s *sweep, ctx context.Context, random *rand.Rand) {
			for range 2 + random.IntN(6) {
				s.killExecutor(ctx, random)
				pause(ctx, time.Duration(random.IntN(300))*time.Millisecond)
			}
		}},
		{"model is killed", 3, func(s *sweep, _ context.Context, random *rand.Rand) {
			s.killChild(s.command, s.origami, "model", random)
		}},
		{"host is stopped", 1, func(s *sweep, ctx context.Context, random *rand.Rand) {
			s.stopFor(ctx, []int{s.command.Process.Pid}, "host", 400*time.Millisecond, random)
		}},
		{"executor is stopped", 2, func(s *sweep, ctx context.Context, random *rand.Rand) {
			s.stopFor(ctx, s.executors(), "executor", 600*time.Millisecond, random)
		}},
		{"executor is stopped for longer than it may take", 1, func(s *sweep, ctx context.Context, random *rand.Rand) {
			if random.IntN(4) == 0 {
				s.stopFor(ctx, s.executors(), "executor", 2*timeout, random)
			}
		}},
		{"model is stopped", 1, func(s *sweep, ctx context.Context, random *rand.Rand) {
			s.stopFor(ctx, s.children(s.command.Process.Pid, s.origami), "model", 400*time.Millisecond, random)
		}},
		{"executor cannot start", 3, cannotStart},
		{"executor is replaced", 2, hinders("executor replaced", installOther, install)},
		{"executor is replaced and trusted", 1, hinders("executor replaced, then trusted", installOtherForGood, trustAgain)},
		{"executor is removed", 2, hinders("executor removed", remove, install)},
		{"executor is not executable", 1, hinders("executor not executable", chmod(0o600), chmod(0o700))},
		{"executor is distrusted", 1, hinders("executor distrusted", distrust, trustAgain)},
		{"no temporary folder", 2, withoutTemporary},
		{"no descriptors", 1, withoutDescriptors},
		{"no memory", 1, withoutMemory},
		{"disk is full", 3, diskFull},
		{"second writer", 1, secondWriter},
	}
}

func (s *sweep) choose() disturbance {
	all := disturbances()
	sum := 0
	for _, d := range all {
		sum += d.weight
	}
	at := s.random.IntN(sum)
	for _, d := range all {
		if at -= d.weight; at < 0 {
			return d
		}
	}
	return all[0]
}

func (s *sweep) executors() []int { return s.children(s.command.Process.Pid, s.plugin()) }

// killExecutor kills the executor's process. If there is none it waits a moment for one.
func (s *sweep) killExecutor(ctx context.Context, random *rand.Rand) {
	for range 20 {
		if s.killChild(s.command, s.plugin(), "executor", random) {
			return
		}
		pause(ctx, 25*time.Millisecond)
	}
}

// killChild kills the processes of a command that run a program, and reports whether there was one.
func (w *world) killChild(c *command, program, what string, random *rand.Rand) (killed bool) {
	for _, pid := range w.children(c.Process.Pid, program) {
		sig := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[random.IntN(2)]
		c.hurts()
		if syscall.Kill(pid, sig) == nil {
			w.tally.count("kill: " + what + " " + signalName(sig))
			killed = true
		}
	}
	return killed
}

// stopFor stops processes for a random time.
func (s *sweep) stopFor(ctx context.Context, pids []int, what string, most time.Duration, random *rand.Rand) {
	if len(pids) == 0 {
		return
	}
	s.command.hurts()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		s.tally.count("hurt: " + what + " STOP, CONT")
	}
	pause(ctx, 50*time.Millisecond+time.Duration(random.Int64N(int64(most))))
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// hindered kills the executor's process while something keeps it from starting, and waits a little.
func (s *sweep) hindered(ctx context.Context, what string, random *rand.Rand) {
	s.tally.count("hurt: " + what)
	s.command.hurts()
	s.killExecutor(ctx, random)
	pause(ctx, time.Duration(100+random.IntN(500))*time.Millisecond)
}

// hinders is what keeps the executor from starting for a while, and how that is undone.
func hinders(what string, do, undo func(*sweep, context.Context) error) func(*sweep, context.Context, *rand.Rand) {
	return func(s *sweep, ctx context.Context, random *rand.Rand) {
		s.trusting.Lock()
		defer s.trusting.Unlock()
		s.must(do(s, ctx))
		s.hindered(ctx, what, random)
		s.must(undo(s, ctx))
	}
}

func cannotStart(s *sweep, ctx context.Context, random *rand.Rand) {
	how, path := []string{"die", "hang", "garbage"}[random.IntN(3)], s.path("bin", hindrance)
	hinders("executor cannot start: "+how, func(*sweep, context.Context) error {
		return os.WriteFile(path, []byte(how), 0o600)
	}, func(*sweep, context.Context) error { return os.Remove(path) })(s, ctx, random)
}

// install puts the present variant in its place again.
func install(s *sweep, _ context.Context) error { return s.install(s.variant) }

func installOther(s *sweep, _ context.Context) error { return s.install(other(s.variant)) }

func installOtherForGood(s *sweep, ctx context.Context) error {
	s.variant = other(s.variant)
	return install(s, ctx)
}

func remove(s *sweep, _ context.Context) error { return os.Remove(s.plugin()) }

func chmod(mode os.FileMode) func(*sweep, context.Context) error {
	return func(s *sweep, _ context.Context) error { return os.Chmod(s.plugin(), mode) }
}

func trustAgain(s *sweep, ctx context.Context) error {
	s.trust(ctx)
	return nil
}

func distrust(s *sweep, ctx context.Context) error {
	r := s.world.command(ctx, "plugin", "distrust", pluginName).run()
	if now, err := s.isTrusted(pluginName, s.plugin()); r.code != 0 || now || err != nil {
		s.tally.violate("%s: lock file: distrust ends with %v, and it is trusted: %v, %v", s.place, r, now, err)
	}
	return nil
}

// trust trusts the executor as it is now.
func (s *sweep) trust(ctx context.Context) {
	r := s.world.command(ctx, "plugin", "trust", s.plugin()).run()
	if now, err := s.isTrusted(pluginName, s.plugin()); ctx.Err() == nil && (r.code != 0 || !now || err != nil) {
		s.tally.violate("%s: lock file: trust ends with %v, and it is trusted: %v, %v", s.place, r, now, err)
	}
}

func withoutTemporary(s *sweep, ctx context.Context, random *rand.Rand) {
	if os.Rename(s.path("tmp"), s.path("away")) != nil {
		return // it is away
	}
	s.temporary.Add(1)
	s.hindered(ctx, "no temporary folder", random)
	s.must(os.Rename(s.path("away"), s.path("tmp")))
	s.temporary.Add(1)
}

// limited sets a limit of a process for a random time.
func (s *sweep) limited(ctx context.Context, pid, resource int, most uint64, wait func()) {
	var before unix.Rlimit
	if unix.Prlimit(pid, resource, nil, &before) != nil {
		return // it has ended
	}
	s.command.hurts()
	_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: before.Max}, nil)
	wait()
	_ = unix.Prlimit(pid, resource, &before, nil)
}

func withoutDescriptors(s *sweep, ctx context.Context, random *rand.Rand) {
	s.limited(ctx, s.command.Process.Pid, unix.RLIMIT_NOFILE, uint64(random.IntN(12)), func() {
		s.hindered(ctx, "no descriptors", random)
	})
}

func withoutMemory(s *sweep, ctx context.Context, random *rand.Rand) {
	wait := func() { pause(ctx, time.Duration(100+random.IntN(500))*time.Millisecond) }
	pids := append(s.executors(), s.children(s.command.Process.Pid, s.origami)...)
	if random.IntN(3) == 0 {
		pids = []int{s.command.Process.Pid}
		s.command.starves()
	}
	if len(pids) == 0 {
		return
	}
	s.command.starvesPlugin() // its last words say so
	s.tally.count("hurt: no more memory")
	s.limited(ctx, pids[random.IntN(len(pids))], unix.RLIMIT_AS, 1<<20, wait)
}

// diskFull fills the file system of the records, or limits their size.
func diskFull(s *sweep, ctx context.Context, random *rand.Rand) {
	wait := func() { pause(ctx, time.Duration(100+random.IntN(500))*time.Millisecond) }
	if s.full != "" && strings.HasPrefix(s.folder, s.full) {
		s.tally.count("hurt: disk full")
		s.command.hurts()
		filler := filepath.Join(s.full, "filler")
		if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			s.tally.violate("%s: the small file system takes all: %v", s.place, err)
		}
		wait()
		_ = os.Remove(filler) // unless a second one at the same time has removed it
		return
	}
	size := int64(0)
	if info, err := os.Stat(filepath.Join(s.folder, "measurements.jsonl")); err == nil {
		size = info.Size()
	}
	s.tally.count("hurt: records cannot grow")
	s.limited(ctx, s.command.Process.Pid, unix.RLIMIT_FSIZE, uint64(size+random.Int64N(2500)), wait)
}

// secondWriter runs the same command beside.
func secondWriter(s *sweep, ctx context.Context, random *rand.Rand) {
	s.tally.count("hurt: second writer")
	c := s.world.command(ctx, bench(s.folder, s.path("problems.csv"))...)
	s.must(c.start())
	c.hurts() // it ends with an error if it is the second
	s.command.hurts()
	s.killSoon(c, "second writer", time.Second, random)
	r := c.result()
	s.checkEnd(s.place, "second bench", c.past, r)
}
