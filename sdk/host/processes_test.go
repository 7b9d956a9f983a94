package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/sdk/host"
)

// alive lists the processes of a plugin mode that belong to the test: that have its directory for temporary files.
func alive(t testing.TB, mode string) []int {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	if dirs == nil {
		t.Skip("needs /proc")
	}
	var pids []int
	for _, dir := range dirs {
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		environ, _ := os.ReadFile(dir + "/environ")
		args := strings.Split(string(cmdline), "\x00")
		is := len(args) > 2 && args[1] == asPlugin && args[2] == mode || filepath.Base(args[0]) == host.Prefix+mode
		ours := slices.Contains(strings.Split(string(environ), "\x00"), "TMPDIR="+os.TempDir())
		if is && ours && lives(filepath.Base(dir)) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

func noneAlive(t *testing.T, mode string) {
	t.Helper()
	if !eventually(func() bool { return len(alive(t, mode)) == 0 }) {
		t.Errorf("processes of %s live on: %v", mode, alive(t, mode))
	}
}

func killAll(t testing.TB, mode string) int {
	t.Helper()
	pids := alive(t, mode)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(pids)
}

// starts counts how often a plugin was started.
func starts(t testing.TB, mode string) int {
	t.Helper()
	runs, _ := os.ReadFile(started(mode))
	return strings.Count(string(runs), "\n")
}

// asHost makes the test binary a program that uses the forger in a folder, and is to be ended at a moment of its life.
const asHost = "as-host"

var moments = []string{"starting a plugin", "idle", "during a call", "closing"}

func runHost(f folder, moment string) {
	o := host.Options{Builtins: []host.Builtin{f.builtin()}, StartTimeout: time.Minute, CallTimeout: time.Minute}
	if moment == "" { // at any
		for {
			h := host.New(o)
			if a, err := h.Open(context.Background(), arch.OpenRequest{Arch: forger}); err != nil {
				fmt.Println(err)
			} else if _, err := rank(context.Background(), a); err != nil {
				fmt.Println(err)
			}
			_ = h.Close()
		}
	}
	h := host.New(o)
	ctx, stop := h.CloseOnSignal(context.Background())
	defer stop()
	ready := func() { fmt.Println("ready") }
	if moment == "starting a plugin" {
		go func() {
			for len(f.lines(startsFile)) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
			ready()
		}()
	}
	a, err := h.Open(ctx, arch.OpenRequest{Arch: forger})
	switch moment {
	case "starting a plugin":
	case "idle":
		ready()
		<-ctx.Done()
	case "during a call":
		time.AfterFunc(50*time.Millisecond, ready)
		err = calls["Terms"](ctx, a)
	case "closing":
		pid, _ := strconv.Atoi(f.lines(startsFile)[0])
		_ = syscall.Kill(pid, syscall.SIGSTOP) // so that it takes a while
		eventually(func() bool {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			return strings.Contains(string(status), "State:\tT")
		})
		time.AfterFunc(50*time.Millisecond, ready)
		stop()
	}
	stop()
	fmt.Println("stopped", err)
}

// startHost starts a host whose files are in tmp and waits until it is ready.
func startHost(t *testing.T, f folder, moment, tmp string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], asHost, string(f), moment)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // of a test that failed; others have waited for it
	lines := bufio.NewScanner(out)
	if moment != "" && (!lines.Scan() || lines.Text() != "ready") {
		t.Fatalf("the host says %q", lines.Text())
	}
	return cmd, lines
}

// shortDir returns a directory whose path is short enough for sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "o") //nolint:usetesting // t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func socketFolders(tmp string) []string {
	left, _ := filepath.Glob(filepath.Join(tmp, "origami-run*"))
	return left
}

// noneLives makes sure that no process that a forger has started lives.
func (f folder) noneLives(t *testing.T) {
	t.Helper()
	for _, pid := range f.lines(startsFile) {
		if !eventually(func() bool { return !lives(pid) }) {
			t.Errorf("process %s lives on", pid)
		}
	}
}

// TestEndOfTheHost ends a host in every way at every moment.
func TestEndOfTheHost(t *testing.T) {
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL}
	rows := []string{"SIGINT", "SIGTERM", "SIGKILL"}
	outcomes := make([][]string, len(signals))
	var wg sync.WaitGroup
	for i, signal := range signals {
		outcomes[i] = make([]string, len(moments))
		for j, moment := range moments {
			wg.Go(func() {
				t.Run(rows[i]+"/"+moment, func(t *testing.T) { outcomes[i][j] = endOutcome(t, signal, moment) })
			})
		}
	}
	wg.Wait()
	for i := range outcomes {
		if slices.Contains(outcomes[i], "") {
			return
		}
	}
	if !t.Failed() {
		verifyTable(t, "The end of the host", moments, rows, func(row, column int) string { return outcomes[row][column] })
	}
}

func endOutcome(t *testing.T, signal syscall.Signal, moment string) string {
	f, tmp := folder(t.TempDir()), shortDir(t)
	if at := map[string]string{"starting a plugin": "start", "during a call": "Terms"}[moment]; at != "" {
		if err := f.arm(at, "hangs"); err != nil {
			t.Fatal(err)
		}
	}
	cmd, lines := startHost(t, f, moment, tmp)
	if len(f.lines(startsFile)) != 1 || !lives(f.lines(startsFile)[0]) {
		t.Error("the plugin does not run")
	}
	begin := time.Now()
	_ = cmd.Process.Signal(signal)
	said := ""
	for lines.Scan() {
		said = lines.Text()
	}
	err := cmd.Wait()
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	f.noneLives(t)
	outcome := "plugins ended"
	if ended, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); ended.Signaled() && ended.Signal() == signal {
		outcome = "plugins killed" // the host has not had the time
	} else if err != nil || !strings.HasPrefix(said, "stopped") {
		t.Errorf("the host ended with %v, saying %q", err, said)
	}
	if moment == "closing" && signal != syscall.SIGKILL {
		outcome = "plugins ended, or killed" // it depends on how far the host has come
	}
	if len(socketFolders(tmp)) > 0 {
		_ = f.arm("", "")
		next, _ := startHost(t, f, "idle", tmp)
		if left := socketFolders(tmp); len(left) > 0 {
			t.Errorf("the next host leaves %v", left)
		}
		_ = next.Process.Signal(syscall.SIGTERM)
		_ = next.Wait()
		outcome += ", folder removed by the next host"
	}
	if left := socketFolders(tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return outcome
}

// A host that is killed at any moment leaves no process, and no folder that the next one does not remove.
func TestHostIsKilledAtAnyMoment(t *testing.T) {
	tmp := shortDir(t)
	folders := make([]folder, 20)
	var wg sync.WaitGroup
	few := make(chan struct{}, 4)
	for i := range folders {
		folders[i] = folder(t.TempDir())
		wg.Go(func() {
			few <- struct{}{}
			defer func() { <-few }()
			moment := time.Duration(rand.Int64N(int64(800 * time.Millisecond)))
			cmd, _ := startHost(t, folders[i], "", tmp)
			time.Sleep(moment)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Logf("killed after %v and %d starts", moment, len(folders[i].lines(startsFile)))
		})
	}
	wg.Wait()
	for _, f := range folders {
		f.noneLives(t)
	}
	t.Logf("left for the next host: %d folders", len(socketFolders(tmp)))
	f := folder(t.TempDir())
	next, _ := startHost(t, f, "idle", tmp)
	_ = next.Process.Signal(syscall.SIGTERM)
	_ = next.Wait()
	if left := socketFolders(tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	f.noneLives(t)
}

// A sweep removes nothing but what hosts leave, and not what a living one has.
func TestSweep(t *testing.T) {
	tmp := shortDir(t)
	t.Setenv("TMPDIR", tmp)
	living := newHost(t, host.Options{Builtins: []host.Builtin{builtin("slow")}})
	opened := make(chan error)
	go func() {
		_, err := living.Open(t.Context(), arch.OpenRequest{Arch: "slow"})
		opened <- err
	}()
	var keep []string
	if !eventually(func() bool { keep = socketFolders(tmp); return len(keep) > 0 }) {
		t.Fatal("a host has no folder when it starts a plugin")
	}
	own := keep[0]
	write := func(path, text string) {
		path = filepath.Join(tmp, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{"origami-run7/file": "", "origami-run8/plugin-dir1/file": "text",
		"origami-runs/plugin-dir1/plugin1": "", "origami-run/plugin-dir1/plugin1": ""} {
		write(path, text)
		keep = append(keep, filepath.Join(tmp, strings.SplitN(path, "/", 2)[0]))
	}
	write("origami-run10/plugin-dir1/plugin1", "")
	if err := syscall.Mkfifo(filepath.Join(tmp, "origami-run11"), 0o600); err != nil {
		t.Fatal(err)
	}
	keep = append(keep, filepath.Join(tmp, "origami-run11"))
	// it does not take long
	sweeper := newHost(t, host.Options{Self: "/nonexistent", Builtins: []host.Builtin{builtin("good")}})
	if _, err := sweeper.Open(t.Context(), arch.OpenRequest{Arch: "good"}); err == nil {
		t.Error("a program that is not there starts")
	}
	slices.Sort(keep)
	if left := socketFolders(tmp); !reflect.DeepEqual(left, keep) {
		t.Errorf("left %v, want %v", left, keep)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(own); err == nil {
		t.Error("a host keeps the folder that it needed for a start")
	}
}

// A hundred selections at once while the plugin is killed again and again: each is right, or says what happened.
func TestSelectionsOverKills(t *testing.T) {
	leavesNothing(t)
	b := newBench(t, forger, host.Options{})
	defer b.close(t)
	if err := b.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, err := rank(t.Context(), b.architecture)
	if err != nil {
		t.Fatal(err)
	}
	const selections, kills = 100, 15
	stop := make(chan struct{})
	var right, faults sync.Map
	var wg sync.WaitGroup
	for i := range selections {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					if n > 0 {
						return
					}
				default:
				}
				got, err := rank(t.Context(), b.architecture)
				var e *host.PluginError
				switch {
				case err == nil && reflect.DeepEqual(got, want):
					right.Store(i, true)
				case err == nil:
					t.Errorf("got %+v", got)
				case errors.As(err, &e) && diag.KindOf(err) == diag.Plugin && (e.Fault == host.FaultDied ||
					e.Fault == host.FaultStart):
					faults.Store(e.Fault, err)
				default:
					t.Errorf("got %v", err)
				}
			}
		})
	}
	killed := 0
	for range kills {
		time.Sleep(time.Duration(20+rand.IntN(300)) * time.Millisecond)
		started := b.lines(startsFile)
		if pid, _ := strconv.Atoi(started[len(started)-1]); lives(started[len(started)-1]) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed++
		}
	}
	close(stop)
	wg.Wait()
	if killed < kills/2 {
		t.Errorf("killed %d times", killed)
	}
	n := 0
	right.Range(func(any, any) bool { n++; return true })
	faults.Range(func(fault, err any) bool { t.Log(fault, err); return true })
	t.Logf("%d kills, %d starts; %d of %d got through", killed, len(b.lines(startsFile)), n, selections)
	if n == 0 {
		t.Error("none got through")
	}
	if got, err := rank(t.Context(), b.architecture); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("afterwards: %v", err)
	}
}

// Whoever calls when the host is closed gets an answer that is right, or that it is closed.
func TestCloseWhileCallsRun(t *testing.T) {
	leavesNothing(t)
	for range 5 {
		b := newBench(t, forger, host.Options{})
		if err := b.open(t.Context()); err != nil {
			t.Fatal(err)
		}
		request := selector.Request{Problems: make([]gemm.Problem, 64), Top: 3}
		for i := range request.Problems {
			request.Problems[i] = problem
		}
		want, err := selector.Rank(t.Context(), b.architecture, request)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for {
					got, err := selector.Rank(t.Context(), b.architecture, request)
					if err != nil {
						if !strings.Contains(err.Error(), "the plugin host is closed") {
							t.Errorf("got %v", err)
						}
						return
					}
					if !reflect.DeepEqual(got, want) {
						t.Errorf("got %+v", got)
					}
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		begin := time.Now()
		b.close(t)
		wg.Wait()
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	}
}
