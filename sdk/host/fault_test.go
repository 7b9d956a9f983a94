package host_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

var problem = gemm.New(1000, 2000, 3000)

// terms asks for the breakdown of all configurations.
func terms(ctx context.Context, a arch.Architecture) error {
	return a.Terms(ctx, make([]float64, len(configs)*len(a.Describe().Terms)), problem, configs)
}

func rank(ctx context.Context, a arch.Architecture) ([]selector.Result, error) {
	return selector.Rank(ctx, a, selector.Request{Problems: []gemm.Problem{problem}, Top: 3})
}

var configs = func() []gemm.Config {
	a, err := fake.Provider{}.Open(context.Background(), arch.OpenRequest{Arch: "fake"})
	if err != nil {
		panic(err)
	}
	c, _ := a.Candidates(context.Background(), problem, arch.Space{})
	return c.Configs
}()

func hostOf(t testing.TB, o host.Options, modes ...string) *host.Host {
	t.Setenv("TMPDIR", shortDir(t))
	for _, mode := range modes {
		o.Builtins = append(o.Builtins, builtin(mode))
	}
	return newHost(t, o)
}

// wantFault checks that an error is one line of kind Plugin that names the plugin and contains the texts.
func wantFault(t *testing.T, err error, name string, f host.Fault, contains ...string) {
	t.Helper()
	var e *host.PluginError
	if !errors.As(err, &e) || diag.KindOf(err) != diag.Plugin {
		t.Fatalf("got %v (kind %s), want a PluginError", err, diag.KindOf(err))
	}
	must.That(t, e.Name == name && e.Fault == f, "got fault %q of %q, want %q of %q: %v", e.Fault, e.Name, f, name, err)
	for _, text := range append(contains, "plugin "+name+": ") {
		must.That(t, strings.Contains(err.Error(), text), "error %q does not say %q", err, text)
	}
	must.That(t, !strings.Contains(err.Error(), "\n"), "error %q has more than one line", err)
}

func TestProgramThatCannotBeRun(t *testing.T) {
	for self, says := range map[string]string{"/nonexistent/origami": "no such file",
		"/etc/passwd": "permission denied"} {
		h := hostOf(t, host.Options{Self: self}, "good")
		_, err := h.Open(t.Context(), arch.OpenRequest{Arch: "good"})
		wantFault(t, err, "good", host.FaultStart, says)
	}
}

// The caller's deadline is not a fault of the plugin.
func TestCallerGivesUp(t *testing.T) {
	h := hostOf(t, host.Options{}, "hang.Terms")
	a := open(t, h, arch.OpenRequest{Arch: "hang.Terms"})
	for _, want := range []error{context.DeadlineExceeded, context.Canceled} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if errors.Is(want, context.Canceled) {
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		err := terms(ctx, a)
		must.That(t, errors.Is(err, want), "got %v, want %v", err, want)
		cancel()
	}
	if _, err := a.Mapping(t.Context(), problem, configs[0]); err != nil {
		t.Error(err)
	}
	n := starts(t, "hang.Terms")
	must.That(t, n == 1, "started %d times, want once", n)
}

func TestPluginReplacedBehindARestart(t *testing.T) {
	h := hostOf(t, host.Options{}, "drift")
	a := open(t, h, arch.OpenRequest{Arch: "drift"})
	killAll(t, "drift")
	err := terms(t.Context(), a)
	wantFault(t, err, "drift", host.FaultNonsense, "differently after a restart")
}

// Both directions take messages above 4 MiB, the default limit of gRPC, and a batch whose answer would be too large is
// asked for in parts.
func TestLargeMessages(t *testing.T) {
	h := hostOf(t, host.Options{}, "big")
	a := open(t, h, arch.OpenRequest{Arch: "big"})
	space := arch.Space{BlockM: make([]int, 1<<20)} // 5 MiB
	for i := range space.BlockM {
		space.BlockM[i] = 1<<30 + i
	}
	space.BlockM[0] = 64
	c := must.Get(a.Candidates(t.Context(), problem, space))(t)
	must.Need(t, len(c.Rejected) == bigCount, "%d candidates, %d rejected", len(c.Configs), len(c.Rejected))
	request := selector.Request{}
	for i := range 9 {
		request.Problems = append(request.Problems, problem)
		request.Problems[i].M += i
	}
	results, err := selector.Rank(t.Context(), a, request)
	must.Need(t, err == nil && len(results) == len(request.Problems), "%d results, %v", len(results), err)
	for i, r := range results {
		if r.Err != nil || len(r.Entries) < 30_000 {
			t.Errorf("%s: %d entries, %v", request.Problems[i], len(r.Entries), r.Err)
		}
	}
}

func TestSlowStartIsWaitedFor(t *testing.T) {
	h := hostOf(t, host.Options{}, "slow.1", "slow.2")
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() { open(t, h, arch.OpenRequest{Arch: []string{"slow.1", "slow.2"}[i%2]}) })
	}
	wg.Wait()
	d := time.Since(begin)
	must.That(t, d >= slowStart, "two slow plugins took %v to start", d)
	// Each writes to its file and then sleeps, so that they slept at the same time if they did not write far apart.
	var wrote [2]time.Time
	for i, mode := range []string{"slow.1", "slow.2"} {
		info := must.Get(os.Stat(started(mode)))(t)
		wrote[i] = info.ModTime()
	}
	d = wrote[1].Sub(wrote[0]).Abs()
	must.That(t, d < slowStart, "one of two slow plugins was started %v after the other", d)
	if starts(t, "slow.1") != 1 || starts(t, "slow.2") != 1 {
		t.Errorf("started %d and %d times, want once each", starts(t, "slow.1"), starts(t, "slow.2"))
	}
}

func TestLogs(t *testing.T) {
	var out syncBuffer
	logger := hclog.New(&hclog.LoggerOptions{Name: "origami", Level: hclog.Debug, Output: &out})
	h := hostOf(t, host.Options{Logger: logger}, "print.Terms", "badlog")
	must.Do(t, terms(t.Context(), open(t, h, arch.OpenRequest{Arch: "print.Terms"})))
	open(t, h, arch.OpenRequest{Arch: "badlog"}) // malformed log lines do no harm
	must.Do(t, h.Close())
	for _, want := range []string{
		"[WARN]  origami.print.Terms: to the log: call=Terms", "origami.print.Terms: to standard output",
		"origami.print.Terms: to standard error",
		`origami.badlog: {"@message":1`, "origami.badlog: hi",
	} {
		must.That(t, strings.Contains(out.String(), want), "the log does not have %q:\n%.2000s", want, out.String())
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
