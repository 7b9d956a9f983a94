package host_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// processes lists the processes that have the test's directory for temporary files and such arguments.
func processes(t testing.TB, are func(args []string) bool) (pids []int) {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	if dirs == nil {
		t.Skip("needs /proc")
	}
	for _, dir := range dirs {
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		environ, _ := os.ReadFile(dir + "/environ")
		ours := slices.Contains(strings.Split(string(environ), "\x00"), "TMPDIR="+os.TempDir())
		if ours && are(strings.Split(string(cmdline), "\x00")) && lives(filepath.Base(dir)) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive lists the processes of a plugin mode.
func alive(t testing.TB, mode string) []int {
	t.Helper()
	return processes(t, func(args []string) bool {
		return len(args) > 2 && args[1] == asPlugin && args[2] == mode || filepath.Base(args[0]) == host.Prefix+mode
	})
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

// asHost makes the test binary a program that uses the forger in a folder. The test ends it at one of the moments.
const asHost = "as-host"

var moments = []string{"starting a plugin", "idle", "during a call", "closing"}

func runHost(f folder, moment string) {
	o := host.Options{Builtins: []host.Builtin{f.builtin()}, StartTimeout: time.Minute, CallTimeout: time.Minute}
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
		err = terms(ctx, a)
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
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // if the test failed; otherwise it has ended
	lines := bufio.NewScanner(out)
	must.Need(t, lines.Scan() && lines.Text() == "ready", "the host says %q", lines.Text())
	return cmd, lines
}

// shortDir returns a directory whose path is short enough for sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "o") //nolint:usetesting // t.TempDir is too long
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func socketFolders(tmp string) []string {
	left, _ := filepath.Glob(filepath.Join(tmp, "origami-run*"))
	return left
}

// noneLives checks that no process of a forger lives.
func (f folder) noneLives(t *testing.T) {
	t.Helper()
	for _, pid := range f.lines(startsFile) {
		must.That(t, eventually(func() bool { return !lives(pid) }), "process %s lives on", pid)
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
		verifyList(t, "The end of the host", moments, rows,
			func(row, column int) string { return outcomes[row][column] })
	}
}

func endOutcome(t *testing.T, signal syscall.Signal, moment string) string {
	f, tmp := folder(t.TempDir()), shortDir(t)
	if at := map[string]string{"starting a plugin": "start", "during a call": "Terms"}[moment]; at != "" {
		must.Do(t, f.arm(at, "hangs"))
	}
	cmd, lines := startHost(t, f, moment, tmp)
	must.That(t, len(f.lines(startsFile)) == 1 && lives(f.lines(startsFile)[0]), "the plugin does not run")
	begin := time.Now()
	_ = cmd.Process.Signal(signal)
	said := ""
	for lines.Scan() {
		said = lines.Text()
	}
	err := cmd.Wait()
	took := time.Since(begin)
	must.That(t, took <= 15*time.Second, "it took %v", took)
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
		left := socketFolders(tmp)
		must.That(t, len(left) <= 0, "the next host leaves %v", left)
		_ = next.Process.Signal(syscall.SIGTERM)
		_ = next.Wait()
		outcome += ", folder removed by the next host"
	}
	if left := socketFolders(tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return outcome
}
