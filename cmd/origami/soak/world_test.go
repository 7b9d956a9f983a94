//go:build linux

package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// timeout is the --timeout of all commands. A healthy plugin answers far earlier, also on a loaded machine.
const timeout = 5 * time.Second

// promptly is how long a command may take to end after a signal. It ends much earlier on a machine without load.
const promptly = 5 * time.Second

// patience is how long a command may take under all disturbances.
const patience = 2 * time.Minute

// world is the folder in which all commands run. Its path is short, because the paths of sockets are limited.
type world struct {
	options
	dir, origami string
	tally        *tally
	// undisturbed are the records of a sweep that nothing disturbed, and picks the outputs of the selections.
	undisturbed records
	picks       [selections]string
	// full is a small file system, empty if there is none.
	full string
	// trusting is held by whoever changes the executor's file or its entry in the lock file. variant is what is there.
	trusting sync.Mutex
	variant  string
	// temporary is odd while the temporary folder is away.
	temporary atomic.Int64
}

func newWorld(ctx context.Context, o options) (_ *world, err error) {
	w := &world{options: o, tally: newTally(o.verbose), variant: "a"}
	if w.dir, err = os.MkdirTemp("/tmp", "soak"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	for _, dir := range []string{"bin", "home", "tmp", "extra"} {
		if err := os.Mkdir(w.path(dir), 0o700); err != nil {
			return nil, err
		}
	}
	w.origami = w.path("bin", "origami")
	build := []string{"build", "-o", w.origami}
	if o.race {
		build = append(build, "-race")
	}
	if out, err := exec.CommandContext(ctx, "go", append(build, "github.com/origami-gemm/origami/cmd/origami")...).
		CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, out)
	}
	if err := w.makeVariants(); err != nil {
		return nil, err
	}
	if syscall.Mount("tmpfs", w.path("extra"), "tmpfs", 0, "size=256k") == nil {
		w.full = w.path("extra")
	}
	problems, list := "m,n,k\n512,512,512\n256,256,1024\n", "m,n,k\n"
	for i := range 200 {
		list += fmt.Sprintf("%d,4096,512\n", 64*(1+i))
	}
	if err := errors.Join(os.WriteFile(w.path("problems.csv"), []byte(problems), 0o600),
		os.WriteFile(w.path("list.csv"), []byte(list), 0o600)); err != nil {
		return nil, err
	}
	return w, w.measureUndisturbed(ctx)
}

// measureUndisturbed runs each command once to know its right outcome.
func (w *world) measureUndisturbed(ctx context.Context) error {
	if r := w.command(ctx, "plugin", "trust", w.plugin()).run(); r.code != 0 {
		return fmt.Errorf("plugin trust: %w", r)
	}
	folder := w.path("undisturbed")
	if r := w.command(ctx, bench(folder, w.path("problems.csv"))...).run(); r.code != 0 {
		return fmt.Errorf("bench: %w", r)
	}
	var err error
	if w.undisturbed, err = readRecords(folder); err != nil {
		return err
	}
	if failed := w.undisturbed.failed(); failed != 2 {
		return fmt.Errorf("a sweep that nothing disturbed has %d failures, and 2 kernels kill their process", failed)
	}
	for i := range w.picks {
		r := w.command(ctx, w.selection(i)...).run()
		if r.code != 0 {
			return fmt.Errorf("select: %w", r)
		}
		w.picks[i] = r.stdout
	}
	return nil
}

func bench(folder, problems string) []string {
	return append([]string{"--arch", "sm89", "--model", "reference", "--timeout", timeout.String(), "--format", "csv",
		"bench", "--executor", pluginName, "--records", folder, "--problems", problems},
		"--space", "block_m=32,64,128", "--space", "block_n=32,64", "--space", "block_k=32,64",
		"--space", "num_warps=4", "--space", "num_stages=2,3")
}

// The selections: of one problem by plugin and in process, and of a list by plugin.
const (
	byPlugin = iota
	inProcess
	ofList
	selections
)

func (w *world) selection(kind int) []string {
	args := []string{"--arch", "sm89", "--timeout", timeout.String(), "--format", "csv"}
	if kind == inProcess {
		args = append(args, "--in-process")
	}
	if kind == ofList {
		return append(args, "select", "--problems", w.path("list.csv"))
	}
	return append(args, "select", "-m", "4096", "-n", "4096", "-k", "4096")
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}
func (w *world) plugin() string   { return w.path("bin", pluginFile) }
func (w *world) lockFile() string { return w.path("home", ".config", "origami", "plugins.lock.json") }

// close ends what is left, and removes the folder unless a round of it is to be looked at.
func (w *world) close() error {
	for _, pid := range w.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if w.full != "" {
		_ = syscall.Unmount(w.full, syscall.MNT_DETACH)
	}
	if w.tally.violations() > 0 {
		return nil
	}
	return os.RemoveAll(w.dir)
}

// command is one run of origami.
type command struct {
	*exec.Cmd
	out, err bytes.Buffer
	ended    chan struct{}
	mu       sync.Mutex
	past     past
}

// past is what happened to a command.
type past struct {
	// hurt: something was done to the command or its processes. late: it did not end.
	hurt, late bool
	// starved: it had no memory. pluginStarved: a plugin of it had none.
	starved, pluginStarved bool
	signals                []syscall.Signal
}

func (w *world) command(ctx context.Context, args ...string) *command {
	return w.program(ctx, w.origami, args...)
}

func (w *world) program(ctx context.Context, name string, args ...string) *command {
	c := &command{Cmd: exec.CommandContext(ctx, name, args...), ended: make(chan struct{})}
	c.Env = []string{"HOME=" + w.path("home"), "TMPDIR=" + w.path("tmp"), "PATH=" + os.Getenv("PATH"),
		"ORIGAMI_LOCK_FILE=" + w.lockFile(), "GORACE=atexit_sleep_ms=0"}
	c.Dir = w.dir
	c.Stdout, c.Stderr = &c.out, &c.err
	c.WaitDelay = 10 * time.Second // a child that keeps the output open is found by orphans
	return c
}

// start starts the command and waits for it in the background.
func (c *command) start() error {
	if err := c.Start(); err != nil {
		return err
	}
	go func() {
		_ = c.Wait()
		close(c.ended)
	}()
	return nil
}

func (c *command) run() result {
	if err := c.start(); err != nil {
		return result{code: -1, err: err}
	}
	return c.result()
}

// signal sends a signal to the command itself.
func (c *command) signal(s syscall.Signal) {
	c.note(func(p *past) { p.hurt, p.signals = true, append(p.signals, s) })
	_ = c.Process.Signal(s)
}

func (c *command) hurts()         { c.note(func(p *past) { p.hurt = true }) }
func (c *command) starvesPlugin() { c.note(func(p *past) { p.hurt, p.pluginStarved = true, true }) }
func (c *command) starves()       { c.note(func(p *past) { p.hurt, p.starved = true, true }) }

func (c *command) note(change func(*past)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.past)
}

// result is the end of a command.
type result struct {
	code           int // -1 if a signal ended it
	signal         syscall.Signal
	stdout, stderr string
	err            error
}

// wait waits for the end of the command, but not for ever.
func (c *command) wait() {
	select {
	case <-c.ended:
	case <-time.After(patience):
		c.note(func(p *past) { p.late = true })
		_ = c.Process.Kill()
		<-c.ended
	}
}

// result waits for the end of the command and returns how it ended.
func (c *command) result() result {
	c.wait()
	r := result{code: c.ProcessState.ExitCode(), stdout: c.out.String(), stderr: c.err.String()}
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.signal = status.Signal()
	}
	return r
}

// Error describes a result that is wrong.
func (r result) Error() string {
	if r.err != nil {
		return r.err.Error()
	}
	how := fmt.Sprintf("exit code %d", r.code)
	if r.code < 0 {
		how = fmt.Sprintf("signal %v", r.signal)
	}
	return fmt.Sprintf("%s: %s", how, strings.TrimSpace(r.stderr))
}

// processes lists the processes that run in this world, by the home folder in their environment. A process that has
// ended and was not waited for has no environment.
func (w *world) processes() []int {
	entries, _ := os.ReadDir("/proc")
	home := []byte("HOME=" + w.path("home"))
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && (bytes.HasPrefix(environ, home) || bytes.Contains(environ, append([]byte{0}, home...))) {
			found = append(found, pid)
		}
	}
	return found
}

// children lists the plugin processes of a host that run the given program. A process that still has the command line
// of the host is none yet. It shares the host's memory, and Go's os package makes one without blocking signals (to try
// pidfd_open): a signal to that process runs the host's handler and ends the host.
func (w *world) children(host int, program string) []int {
	var found []int
	own := name(host)
	for _, pid := range w.processes() {
		path, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
		if strings.TrimSuffix(path, " (deleted)") == program && parent(pid) == host && name(pid) != own {
			found = append(found, pid)
		}
	}
	return found
}

// parent returns the parent of a process, 0 if it has ended.
func parent(pid int) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, may contain spaces. The state and the parent follow it.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	id, _ := strconv.Atoi(string(fields[1]))
	return id
}

// name is the command line of a process.
func name(pid int) string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ")
}
