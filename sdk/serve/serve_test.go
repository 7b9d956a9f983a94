package serve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/serve"
	"github.com/origami-gemm/origami/sdk/wire"
)

// The test binary is also the plugin, and a foreign host that starts a plugin and waits to be killed.
const roleVariable = "ORIGAMI_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "plugin":
		serve.Main(fake.Provider{})
	case "executor":
		serve.MainExecutor(noDevice{})
	case "foreign host":
		cmd := role("plugin")
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_, _ = bufio.NewReader(out).ReadString('\n')
		fmt.Println(cmd.Process.Pid)
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func role(name string, args ...string) *osexec.Cmd {
	cmd := osexec.Command(os.Args[0], args...)
	cookie := wire.Handshake.MagicCookieKey + "=" + wire.Handshake.MagicCookieValue
	cmd.Env = append(os.Environ(), roleVariable+"="+name, "GORACE=atexit_sleep_ms=0", cookie)
	return cmd
}

func TestDescribeNeedsNoHandshake(t *testing.T) {
	cmd := role("plugin", "describe")
	cmd.Env = append(cmd.Env, wire.Handshake.MagicCookieKey+"=")
	out := must.Get(cmd.Output())(t)
	d, err := wire.ParseDescribe(out)
	must.That(t, err == nil && d.Info.Name == "fake" && d.Info.Version == "0.3.1" &&
		len(d.Protocols) == 1 && d.Protocols[0] == wire.ProtocolVersion, "got %+v, %v", d, err)
	want := (fake.Provider{}).Manifest()
	must.That(t, d.Manifest != nil && len(d.Manifest.Archs) == 1 &&
		d.Manifest.Archs[0].Devices[1].ID == want.Archs[0].Devices[1].ID && d.Executor == nil,
		"got manifest %+v, executor %+v", d.Manifest, d.Executor)
}

// noDevice panics if it is opened.
type noDevice struct{ fake.ExecutorProvider }

func (noDevice) Open(context.Context) (exec.Executor, error) { panic("opened") }

func TestDescribeNeedsNoDevice(t *testing.T) {
	out := must.Get(role("executor", "describe").Output())(t)
	d, err := wire.ParseDescribe(out)
	want := (noDevice{}).Manifest()
	must.That(t, err == nil && d.Executor != nil && *d.Executor == want &&
		d.Info.Name == want.Name && d.Info.Version == want.Version && d.Manifest == nil, "got %+v, %v", d, err)
}

func TestRunByHand(t *testing.T) {
	cmd := role("plugin")
	cmd.Env = append(cmd.Env, wire.Handshake.MagicCookieKey+"=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *osexec.ExitError
	must.That(t, errors.As(err, &exit) && exit.ExitCode() == 2 && len(out) == 0, "ended with %v, printing %q", err, out)
	for _, want := range []string{"the plugin fake 0.3.1 of origami", "describe", "origami plugin trust "} {
		must.That(t, strings.Contains(stderr.String(), want), "the hint lacks %q: %s", want, &stderr)
	}
}

func TestEndsWhenStandardInputCloses(t *testing.T) {
	cmd := role("plugin")
	cmd.Env = append(cmd.Env, wire.EnvWatch+"=stdin")
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "1|2|unix|") {
		t.Fatalf("handshake %q, %v", line, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("the plugin ended before its host: %v", err)
	case <-time.After(600 * time.Millisecond):
	}
	_ = in.Close()
	select {
	case err := <-ended:
		must.That(t, err == nil, "%v", err)
	case <-time.After(5 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("the plugin outlives its host")
	}
}

func TestEndsWithAForeignHost(t *testing.T) {
	cmd := role("foreign host")
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	must.Need(t, err == nil, "the host says %q", line)
	if !running(pid) {
		t.Skip("needs /proc")
	}
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	for range 600 { // half a minute, on a busy machine
		if !running(pid) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	t.Error("the plugin outlives its host")
}

// running reads /proc because a zombie still accepts signals.
func running(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}
