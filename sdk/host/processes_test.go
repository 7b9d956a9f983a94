package host_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/sdk/host"
)

// alive lists the processes of a plugin mode that are not zombies. It reads /proc, because a dead child that nobody has
// waited for still answers to signals.
func alive(t testing.TB, mode string) []int {
	t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	if dirs == nil {
		t.Skip("needs /proc")
	}
	var pids []int
	for _, dir := range dirs {
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		status, _ := os.ReadFile(dir + "/status")
		args := strings.Split(string(cmdline), "\x00")
		ours := len(args) > 2 && args[1] == asPlugin && args[2] == mode || filepath.Base(args[0]) == host.Prefix+mode
		if ours && !strings.Contains(string(status), "State:\tZ") {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

func noneAlive(t *testing.T, mode string) {
	t.Helper()
	for wait := 0; wait < 100; wait++ {
		if len(alive(t, mode)) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("processes of %s live on: %v", mode, alive(t, mode))
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

// asHost makes the test binary a program that uses plugins: it opens two, lets one of them hang in a call and waits.
const asHost = "as-host"

func runHost() {
	h := host.New(host.Options{Builtins: []host.Builtin{builtin("kept"), builtin("hang.Terms")}})
	ctx, stop := h.CloseOnSignal(context.Background())
	defer stop()
	for _, id := range []string{"kept", "hang.Terms"} {
		a, err := h.Open(ctx, arch.OpenRequest{Arch: id})
		if err != nil {
			fmt.Println(err)
			return
		}
		go func() { _ = calls["Terms"](ctx, a) }()
	}
	fmt.Println("ready")
	<-ctx.Done()
	stop()
	fmt.Println("stopped")
}

func TestNoPluginOutlivesTheHost(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			cmd := exec.Command(os.Args[0], asHost)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			if !lines.Scan() || lines.Text() != "ready" {
				t.Fatalf("the host says %q", lines.Text())
			}
			if len(alive(t, "kept")) != 1 || len(alive(t, "hang.Terms")) != 1 {
				t.Fatal("the plugins do not run")
			}
			_ = cmd.Process.Signal(signal)
			lines.Scan()
			err = cmd.Wait()
			if signal != syscall.SIGKILL && (err != nil || lines.Text() != "stopped") {
				t.Errorf("the host ended with %v, saying %q", err, lines.Text())
			}
			noneAlive(t, "kept")
			noneAlive(t, "hang.Terms")
		})
	}
}
