//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/must"
	"golang.org/x/sys/unix"
)

// interrupted is a command that is sent a signal while it waits or works.
type interrupted struct {
	args string // $DIR is a folder with the files of prepare
	// when returns nil once the signal is to be sent. Without it, the signal is sent after some time.
	when func(*running) error
	// stdin is written to the standard input, which then stays open.
	stdin string
	// unread leaves the standard output unread.
	unread bool
	want   string // the beginning of stderr, "origami: interrupted\n" if it is empty
}

// running is such a command, started.
type running struct {
	cmd           *osexec.Cmd
	dir           string
	stdin, stdout *os.File // our ends
	stderr        bytes.Buffer
}

var errNotYet = errors.New("it has not come to that")

// reading: it has read the standard input.
func reading(r *running) error { return pipeHolds(r.stdin, func(n int) bool { return n == 0 }) }

// blocked: nobody reads its standard output, which is full.
func blocked(r *running) error { return pipeHolds(r.stdout, func(n int) bool { return n >= 1<<16 }) }

// answering: the first answer has been written.
func answering(r *running) error { return pipeHolds(r.stdout, func(n int) bool { return n > 0 }) }

func pipeHolds(pipe *os.File, enough func(bytes int) bool) error {
	n, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ)
	if err == nil && !enough(n) {
		err = errNotYet
	}
	return err
}

// opening returns a condition: a named pipe is being opened. It is opened to write, and nothing is written.
func opening(name string) func(*running) error {
	return func(r *running) error {
		_, err := unix.Open(filepath.Join(r.dir, name), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENXIO) {
			return errNotYet
		}
		return err
	}
}

// written returns a condition: a file has content.
func written(name string) func(*running) error {
	return func(r *running) error {
		info, err := os.Stat(filepath.Join(r.dir, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
			return errNotYet
		}
		return err
	}
}

// measured waits for two lines: what is in a file may not be counted yet, and what is followed by another is.
func measured(name string) func(*running) error {
	return func(r *running) error {
		text, err := os.ReadFile(filepath.Join(r.dir, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Count(text, []byte("\n")) < 2 {
			return errNotYet
		}
		return err
	}
}

// TestSignals: the first signal ends a command wherever it is, with one line and the code of the signal. Nothing is
// left of it.
func TestSignals(t *testing.T) {
	const problem = "m,n,k\n64,64,64\n"
	const rank = "--arch sm89 rank --all --problems - --format csv"
	many := problem + strings.Repeat("4096,4096,4096\n", 1<<12)
	cases := map[string]interrupted{
		"stdin":            {args: "--arch sm89 select --problems -", stdin: problem, when: reading},
		"stdin in process": {args: "--in-process --arch sm89 rank --problems -", stdin: problem, when: reading},
		"stdin candidates": {args: "--arch sm89 select -m 1 -n 1 -k 1 --candidates -", stdin: "[", when: reading},
		"eval stdin":       {args: "--in-process --arch sm90@h200 eval --problems -", stdin: problem, when: reading},
		"bench stdin":      {args: "--in-process --arch sm90@h200 bench --problems -", stdin: problem, when: reading},
		"opening problems": {args: "--arch sm89 select --problems $DIR/fifo"},
		"problems":         {args: "--arch sm89 select --problems $DIR/fifo", when: opening("fifo")},
		"candidates": {args: "--arch sm89 compare --arch gfx942 -m 1 -n 1 -k 1 --candidates $DIR/fifo",
			when: opening("fifo")},
		"parameters": {args: "--arch sm89 select -m 1 -n 1 -k 1 --hw-params $DIR/fifo", when: opening("fifo")},
		"compiled":   {args: "--arch sm89 select -m 1 -n 1 -k 1 --compiled $DIR/fifo", when: opening("fifo")},
		"characterization": {args: "--arch sm89 explain -m 1 -n 1 -k 1 --characterization $DIR/fifo",
			when: opening("fifo")},
		"list":            {args: rank, stdin: many, when: answering},
		"list in process": {args: "--in-process " + rank, stdin: many, when: answering},
		"blocked output":  {args: rank, stdin: many, when: blocked, unread: true},
		"eval":            {args: "--in-process --arch sm90@h200 eval --kernel triton --intervals"},
		"bench":           {args: "--arch sm90@h200 bench"},
		"measuring": {args: "--arch sm89 bench --executor pretend --records $DIR/run",
			when: measured("run/measurements.jsonl"), want: "origami: interrupted; "},
		"describe": {args: "plugin ls", when: written("describing")},
		"call": { // the plugin is named, so that it is awaited however busy the machine is
			args: "--plugin $DIR/plugins/origami-plugin-caught --arch example compare --arch sm89 -m 1 -n 1 -k 1",
			when: written("estimating"),
		},
		"plugin check": {args: "plugin check $DIR/plugins/origami-plugin-caught", when: written("estimating")},
	}
	origami := binary(t)
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	deliver(t, signals)
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		c, sig := cases[name], signals[i%len(signals)]
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			// A command that has not come to its signal handlers is killed by the signal, and one that has ended does not
			// get it: once more, later or earlier.
			early, late := time.Duration(0), 10*time.Second
			for delay := time.Second / 2; ; delay = min(2*delay, (early+late)/2) {
				r := start(t, origami, &c)
				r.interrupt(t, &c, sig, delay)
				status := r.cmd.ProcessState.Sys().(syscall.WaitStatus)
				switch tired := late-early < 10*time.Millisecond; {
				case status.Signal() == sig && !tired:
					early = delay
				case status.ExitStatus() == 0 && c.when == nil && !tired:
					late = delay
				default:
					r.check(t, &c, sig)
					return
				}
			}
		})
	}
}

// deliver makes the commands of a test get signals that this process ignores, as it does under nohup or in the
// background of a script. A command would ignore them too; those that this process handles have their default there.
func deliver(t *testing.T, signals []syscall.Signal) {
	t.Helper()
	heard := make(chan os.Signal, 1)
	for _, s := range signals {
		if signal.Ignored(s) {
			signal.Notify(heard, s)
		}
	}
	t.Cleanup(func() { signal.Stop(heard) })
}

// prepare makes the folder of a command: a named pipe, plugins, and the lock file that trusts them.
func prepare(t *testing.T, origami string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "signal") //nolint:usetesting // short: sockets are in it
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	content := must.Get(os.ReadFile(origami))(t)
	type entry struct {
		SHA256 string `json:"sha256"`
		Path   string `json:"path"`
	}
	lock := map[string]map[string]entry{"plugins": {}}
	err = os.Mkdir(filepath.Join(dir, "plugins"), 0o700)
	for _, name := range []string{"pretend", "caught", "undescribed"} {
		path := filepath.Join(dir, "plugins", "origami-plugin-"+name)
		err = errors.Join(err, os.Link(origami, path))
		lock["plugins"][name] = entry{fmt.Sprintf("%x", sha256.Sum256(content)), path}
	}
	if !strings.Contains(t.Name(), "describe") {
		delete(lock["plugins"], "undescribed")
	}
	text, _ := json.Marshal(lock)
	must.Do(t, errors.Join(err, os.WriteFile(filepath.Join(dir, "lock.json"), text, 0o600),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600)))
	return dir
}

func start(t *testing.T, origami string, c *interrupted) *running {
	t.Helper()
	r := &running{dir: prepare(t, origami)}
	r.cmd = osexec.Command(origami, strings.Fields(strings.ReplaceAll(c.args, "$DIR", r.dir))...)
	r.cmd.Env = append(os.Environ(), "TMPDIR="+r.dir, "HOME="+r.dir, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=",
		"ORIGAMI_LOCK_FILE="+filepath.Join(r.dir, "lock.json"), "GORACE=atexit_sleep_ms=0")
	r.cmd.Stderr = &r.stderr
	stdin, in, err1 := os.Pipe()
	out, stdout, err2 := os.Pipe()
	must.Do(t, errors.Join(err1, err2))
	t.Cleanup(func() { _, _ = in.Close(), out.Close() })
	r.stdin, r.stdout, r.cmd.Stdin, r.cmd.Stdout = in, out, stdin, stdout
	must.Do(t, r.cmd.Start())
	_, _ = stdin.Close(), stdout.Close()
	must.Get(in.WriteString(c.stdin))(t)
	return r
}

// interrupt sends the signal and waits for the end.
func (r *running) interrupt(t *testing.T, c *interrupted, signal syscall.Signal, delay time.Duration) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for c.when != nil {
		err := c.when(r)
		if err == nil {
			break
		}
		if !errors.Is(err, errNotYet) || time.Now().After(deadline) {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
			t.Fatalf("%v: %s", err, r.stderr.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
	if c.when == nil {
		time.Sleep(delay)
	}
	if !c.unread {
		go func() { _, _ = r.stdout.WriteTo(&bytes.Buffer{}) }()
	}
	begin := time.Now()
	if err := r.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	// A command that does not end by itself is killed after a time in which the slowest machine ends one that does.
	kill := time.AfterFunc(8*time.Second, func() { _ = r.cmd.Process.Kill() })
	defer kill.Stop()
	_ = r.cmd.Wait()
	t.Logf("it took %v to end", time.Since(begin).Round(time.Millisecond))
}

// check checks how the command ended, and that nothing is left.
func (r *running) check(t *testing.T, c *interrupted, signal syscall.Signal) {
	t.Helper()
	if code := r.cmd.ProcessState.ExitCode(); code != 128+int(signal) {
		t.Errorf("exit code %d (%v), want %d: %q", code, r.cmd.ProcessState, 128+int(signal), r.stderr.String())
	}
	got := r.stderr.String()
	if c.want == "" && got != "origami: interrupted\n" || !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") > 1 {
		t.Errorf("it writes %q", got)
	}
	left, _ := filepath.Glob(filepath.Join(r.dir, "origami-run*"))
	must.That(t, len(left) <= 0, "left: %v", left)
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		processes := processesIn(r.dir)
		if len(processes) == 0 {
			return
		}
		must.Need(t, !time.Now().After(deadline), "processes %v are left", processes)
	}
}

// processesIn lists the processes whose TMPDIR is the folder: plugins inherit it.
func processesIn(dir string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte("TMPDIR="+dir+"\x00")) {
			found = append(found, file)
		}
	}
	return found
}
