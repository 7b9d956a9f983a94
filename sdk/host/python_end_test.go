package host_test

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

func runPythonHost(path, lock string) {
	h := host.New(host.Options{Plugins: []string{path}, LockFile: lock})
	x, err := h.Executor(context.Background(), "toy")
	if err == nil {
		_, err = x.Devices(context.Background())
	}
	fmt.Println("ready", err)
	for {
		time.Sleep(time.Hour)
	}
}

// The operating system ends the children of a host. In addition a plugin ends when its standard input ends.
func TestPythonPluginEndsWithItsInput(t *testing.T) {
	path := pythonPlugin(t, "toy", toySource(t))
	cmd := osexec.Command(path)
	cmd.Env = append(os.Environ(), "ORIGAMI_PLUGIN=6d9b3c5e1f8247a0b4e2c7d15a90f863", "ORIGAMI_PLUGIN_WATCH=stdin")
	stdin := must.Get(cmd.StdinPipe())(t)
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	line := make([]byte, 512)
	n, _ := stdout.Read(line)
	if parts := strings.Split(string(line[:n]), "|"); len(parts) != 5 || parts[0] != "1" || parts[1] != "2" ||
		parts[2] != "unix" || parts[4] != "grpc\n" {
		t.Errorf("the handshake is %q", line[:n])
	}
	_ = stdin.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("it lives on")
	}
}

func TestPythonPluginDiesWithTheHost(t *testing.T) {
	t.Setenv("TMPDIR", shortDir(t))
	path := pythonPlugin(t, "toy", toySource(t))
	lock := filepath.Join(t.TempDir(), "lock")
	must.Get(host.Trust(t.Context(), lock, path))(t)
	cmd := osexec.Command(os.Args[0], asPythonHost, path, lock)
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	line := make([]byte, 512)
	n, _ := stdout.Read(line)
	if got := string(line[:n]); got != "ready <nil>\n" {
		t.Fatalf("the host says %q", got)
	}
	if len(running(t, path)) == 0 {
		t.Fatal("the plugin does not run")
	}
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	for wait := 0; len(running(t, path)) > 0; wait++ {
		if wait == 100 {
			t.Fatalf("processes of the plugin live on: %v", running(t, path))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// running lists the processes that run a script.
func running(t testing.TB, script string) []int {
	t.Helper()
	return processes(t, func(args []string) bool { return len(args) > 1 && args[1] == script })
}
