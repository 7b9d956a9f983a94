package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// asLender makes the test binary the other end of a remote executor, with a lock file and the plugin's mode.
const asLender = "as-lender"

func runLender(lock, mode string) {
	h := host.New(host.Options{LockFile: lock})
	ctx, stop := h.CloseOnSignal(context.Background())
	err := h.Lend(ctx, executorPrefix+mode, os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, diag.Line(err))
		os.Exit(3)
	}
	os.Exit(0)
}

// lenderOf returns the command at whose other end an executor plugin of a mode is.
func lenderOf(t testing.TB, mode string) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", shortDir(t))
	self := must.Get(os.Executable())(t)
	path, lock := filepath.Join(dir, host.Prefix+executorPrefix+mode), filepath.Join(dir, "lock")
	must.Do(t, os.Symlink(self, path))
	must.Get(host.Trust(t.Context(), lock, path))(t)
	return fmt.Sprintf("%s %s %s %s", self, asLender, lock, mode)
}

// lenders are the processes of lenders of a mode, each with a shell.
func lenders(t testing.TB, mode string) []int {
	t.Helper()
	return processes(t, func(args []string) bool { return len(args) > 3 && args[1] == asLender && args[3] == mode })
}

// An executor at the other end of a command is as one of this machine: what ends it, on either side, is one error, and
// the next call starts it again. Nothing is left of it when it is closed.
func TestRemote(t *testing.T) {
	signal := func(s syscall.Signal) func(*testing.T, exec.Executor, string) error {
		return func(t *testing.T, x exec.Executor, mode string) error {
			k := kernelOf(t, x)
			for _, pid := range lenders(t, mode) {
				_ = syscall.Kill(pid, s)
			}
			must.That(t, s == syscall.SIGSTOP || eventually(func() bool { return len(lenders(t, mode)) == 0 }),
				"a lender lives on")
			_, err := k.Check(t.Context())
			return err
		}
	}
	call := func(name string) func(*testing.T, exec.Executor, string) error {
		return func(t *testing.T, x exec.Executor, _ string) error { return executorCalls[name](t.Context(), x) }
	}
	for name, x := range map[string]struct {
		mode  string
		fails func(*testing.T, exec.Executor, string) error
		want  error
		says  string
	}{
		"the plugin dies":       {"panic.Check", call("Check"), exec.ErrDied, "boom in Check"},
		"the plugin hangs":      {"hang.Measure", call("Measure"), exec.ErrHung, "did not answer Measure within"},
		"the device is lost":    {"lost.Check", call("Check"), exec.ErrDied, "illegal memory access"},
		"the other end dies":    {"fine", signal(syscall.SIGKILL), exec.ErrDied, "died during Check"},
		"the other end is gone": {"fine", signal(syscall.SIGTERM), exec.ErrDied, "died during Check"},
		"the line is silent":    {"fine", signal(syscall.SIGSTOP), exec.ErrHung, "did not answer Check within"},
	} {
		t.Run(name, func(t *testing.T) {
			command := lenderOf(t, x.mode)
			h := newHost(t, host.Options{RunTimeout: 3 * time.Second})
			executor, version, err := h.Remote(t.Context(), executorPrefix+x.mode, command)
			must.Do(t, err)
			must.That(t, version != "", "it has no version")
			before := starts(t, executorPrefix+x.mode)
			works(t, executor)
			err = x.fails(t, executor, x.mode)
			must.That(t, errors.Is(err, x.want) && strings.Contains(err.Error(), x.says) && !strings.Contains(err.Error(), "\n"),
				"%v, want %v: %s", err, x.want, x.says)
			works(t, executor)
			if n := starts(t, executorPrefix+x.mode) - before; n != 2 { // once to be asked who it is
				t.Errorf("started %d times more, want twice", n)
			}
			err = executor.Close()
			must.That(t, err == nil, "%v", err)
			noneAlive(t, executorPrefix+x.mode)
			if !eventually(func() bool { return len(lenders(t, x.mode)) == 0 }) {
				t.Errorf("lenders live on: %v", lenders(t, x.mode))
			}
		})
	}
}

// A command that brings no executor says why, in one line.
func TestRemoteThatIsNone(t *testing.T) {
	h := newHost(t, host.Options{})
	for command, says := range map[string]string{
		"echo connection refused >&2; exit 255":  "connection refused",
		"echo welcome; sleep 100":                "it does not start as a plugin",
		"echo '1|1|unix|/nowhere|grpc|'; exit 1": "",
		"true":                                   "it ended before it was ready",
	} {
		x, _, err := h.Remote(t.Context(), "far", command)
		must.That(t, x == nil && diag.KindOf(err) == diag.Plugin && strings.Contains(err.Error(), says) &&
			!strings.Contains(err.Error(), "\n"), "%s: %v, want %s", command, err, says)
	}
}

// Whoever calls a lender without a host at the other end is told how it is called.
func TestLendToNobody(t *testing.T) {
	lenderOf(t, "fine")
	h := executorsOf(t, host.Options{}, "fine")
	for _, in := range []string{"", "GET / HTTP/1.1\n\n", strings.Repeat("x", 1<<20), "bm9uZQ==\n"} {
		err := h.Lend(t.Context(), executorPrefix+"fine", strings.NewReader(in), &strings.Builder{})
		must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), "no certificate with a key"),
			"%.20q: %v", in, err)
	}
}
