package host_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

func TestWhichExecutor(t *testing.T) {
	h := executorsOf(t, host.Options{Builtins: []host.Builtin{builtin("good")}}, "exit", "fine.1",
		"fine.2", "deviceless")
	pluginsOf(t, h) // which asks each to describe itself
	for name, want := range map[string]string{"": "x-fine.1", "x-fine.1": "x-fine.1", "x-fine.2": "x-fine.2"} {
		before := starts(t, want)
		x := must.Get(h.Executor(t.Context(), name))(t)
		works(t, x)
		n := starts(t, want) - before
		must.That(t, n == 1, "%q: %s was started %d times", name, want, n)
		err := x.Close()
		must.That(t, err == nil, "%v", err)
	}
	for name, want := range map[string]struct {
		kind diag.Kind
		says string
	}{
		"cuda": {diag.Input, `no plugin "cuda" runs kernels; use x-fine.1 or x-fine.2 or x-deviceless; ` +
			`plugins that cannot be used: x-exit`},
		"good":   {diag.Input, `no plugin "good" runs kernels; use x-fine.1`},
		"x-exit": {diag.Plugin, "plugin x-exit: describe failed (exit status 3): cannot load libnone.so"},
	} {
		_, err := h.Executor(t.Context(), name)
		must.That(t, diag.KindOf(err) == want.kind && strings.HasPrefix(err.Error(),
			want.says), "%q: got %v, want %s", name, err, want.says)
	}
	for _, p := range pluginsOf(t, h) {
		must.That(t, p.Executor == (p.Name != "good" && p.Name != "x-exit") && (!p.Executor || len(p.Archs) <= 0),
			"got %+v", p)
	}
	if m, err := h.Manifests(t.Context()); err != nil || len(m) != 1 || m[0].Name != "good" {
		t.Errorf("got manifests %+v", m)
	}
	// The first call that needs a device reports that there is none.
	x := executorOf(t, h, "deviceless")
	for call, do := range executorCalls {
		err := do(t.Context(), x)
		must.That(t, diag.KindOf(err) == diag.Device &&
			err.Error() == "there is no device; put one in", "%s: got %v", call, err)
	}

	none := newHost(t, host.Options{Builtins: []host.Builtin{builtin("good")}})
	for _, name := range []string{"", "cuda"} {
		_, err := none.Executor(t.Context(), name)
		must.That(t, diag.KindOf(err) == diag.Device && strings.HasPrefix(err.Error(),
			"no plugin that runs kernels is installed; install one"), "%q: got %v", name, err)
	}
	_ = none.Close()
	if _, err := none.Executor(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a closed host: got %v", err)
	}
}

// The process ends with its last executor, and leaves nothing behind.
func TestExecutorClose(t *testing.T) {
	const mode = executorPrefix + "hang.Check"
	h := executorsOf(t, host.Options{}, "hang.Check")
	one, other := executorOf(t, h, "hang.Check"), executorOf(t, h, "hang.Check")
	k := must.Get(one.Compile(t.Context(), 0, problem, goodConfig))(t)
	for range 2 {
		err := one.Close()
		must.That(t, err == nil, "%v", err)
	}
	must.That(t, len(alive(t, mode)) == 1, "the process ended with the first of two executors")
	if _, err := k.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "the executor is closed") {
		t.Errorf("got %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	works(t, other)
	hanging := make(chan error, 1)
	go func() { hanging <- executorCalls["Check"](t.Context(), other) }()
	time.Sleep(200 * time.Millisecond) // for the call to be there; otherwise the test sees less
	begin := time.Now()
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	d := time.Since(begin)
	must.That(t, d <= 5*time.Second, "Close took %v", d)
	if err := <-hanging; err == nil || !strings.Contains(err.Error(), "the executor is closed") {
		t.Errorf("got %v", err)
	}
	noneAlive(t, mode)
	works(t, executorOf(t, h, "hang.Check"))
	_ = h.Close()
	noneAlive(t, mode)
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 1 { // the file of started
		t.Errorf("files left behind: %v", left)
	}
}

// An executor of its own has a process of its own: what ends that of one leaves the others' kernels, and closing the
// host ends all.
func TestOwnExecutor(t *testing.T) {
	const name, mode = "lost.Check", executorPrefix + "lost.Check"
	h := executorsOf(t, host.Options{}, name)
	shared := executorOf(t, h, name)
	works(t, shared)
	var own [2]exec.Executor
	for i := range own {
		x := must.Get(h.OwnExecutor(t.Context(), executorPrefix+name))(t)
		own[i] = x
	}
	n := len(alive(t, mode))
	must.That(t, n == 3, "%d processes, want 3", n)
	k, others := kernelOf(t, own[0]), kernelOf(t, shared)
	if err := executorCalls["Check"](t.Context(), own[1]); diag.KindOf(err) != diag.Plugin {
		t.Errorf("got %v", err)
	}
	for _, k := range []exec.Kernel{k, others} {
		_, err := k.Check(t.Context())
		must.That(t, err == nil, "%v", err)
	}
	works(t, own[1])
	if err := own[0].Close(); err != nil {
		t.Error(err)
	}
	n = len(alive(t, mode))
	must.That(t, n == 2, "%d processes after one executor was closed, want 2", n)
	_ = h.Close()
	noneAlive(t, mode)
	if _, err := h.OwnExecutor(t.Context(), executorPrefix+name); err == nil {
		t.Error("a closed host opens an executor")
	}
}
