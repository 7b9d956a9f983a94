package host_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
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

// calls are all calls of an open architecture that reach the plugin.
var calls = map[string]func(context.Context, arch.Architecture) error{
	"Candidates": func(ctx context.Context, a arch.Architecture) error {
		_, err := a.Candidates(ctx, problem, arch.Space{})
		return err
	},
	"Estimate": func(ctx context.Context, a arch.Architecture) error {
		return a.Estimate(ctx, make([]arch.Estimate, len(configs)), problem, configs)
	},
	"Terms": func(ctx context.Context, a arch.Architecture) error {
		return a.Terms(ctx, make([]float64, len(configs)*len(a.Describe().Terms)), problem, configs)
	},
	"Mapping": func(ctx context.Context, a arch.Architecture) error {
		_, err := a.Mapping(ctx, problem, configs[0])
		return err
	},
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
	if e.Name != name || e.Fault != f {
		t.Errorf("got fault %q of %q, want %q of %q: %v", e.Fault, e.Name, f, name, err)
	}
	for _, text := range append(contains, "plugin "+name+": ") {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q has more than one line", err)
	}
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
		if err := calls["Terms"](ctx, a); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		cancel()
	}
	if err := calls["Mapping"](t.Context(), a); err != nil {
		t.Error(err)
	}
	if n := starts(t, "hang.Terms"); n != 1 {
		t.Errorf("started %d times, want once", n)
	}
}

func TestPluginReplacedBehindARestart(t *testing.T) {
	h := hostOf(t, host.Options{}, "drift")
	a := open(t, h, arch.OpenRequest{Arch: "drift"})
	killAll(t, "drift")
	err := calls["Terms"](t.Context(), a)
	wantFault(t, err, "drift", host.FaultNonsense, "differently after a restart")
}

// Both directions take messages above 4 MiB, the default limit of gRPC.
func TestLargeMessages(t *testing.T) {
	h := hostOf(t, host.Options{}, "big")
	a := open(t, h, arch.OpenRequest{Arch: "big"})
	c := must.Get(a.Candidates(t.Context(), problem, arch.Space{}))(t)
	if len(c.Configs) < bigCount || len(c.Rejected) != bigCount {
		t.Fatalf("%d candidates, %d rejected", len(c.Configs), len(c.Rejected))
	}
	est := make([]arch.Estimate, len(c.Configs))
	must.Do(t, a.Estimate(t.Context(), est, problem, c.Configs))
	for i := range est {
		if est[i] != est[i%len(configs)] {
			t.Fatalf("estimate %d is not that of the same configuration at %d", i, i%len(configs))
		}
	}
	// The request itself: an axis of 5 MiB.
	space := arch.Space{BlockM: make([]int, 1<<20)}
	for i := range space.BlockM {
		space.BlockM[i] = 1<<30 + i
	}
	space.BlockM[0] = 64
	if _, err := a.Candidates(t.Context(), problem, space); err != nil {
		t.Error(err)
	}
}

// A request of more problems than one call takes has the same answers as one request per problem.
func TestManyProblems(t *testing.T) {
	h := hostOf(t, host.Options{}, "good")
	a := open(t, h, arch.OpenRequest{Arch: "good"})
	request := selector.Request{Space: arch.Space{BlockM: []int{64}}, Top: 2}
	for i := range 1000 {
		request.Problems = append(request.Problems, gemm.New(i, 64, 64)) // the first is invalid
	}
	results, err := selector.Rank(t.Context(), a, request)
	if err != nil || len(results) != len(request.Problems) {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for i := 0; i < len(results); i += 37 {
		one, err := selector.Rank(t.Context(), a, selector.Request{Problems: request.Problems[i : i+1],
			Space: request.Space,
			Top:   2})
		if err != nil || !reflect.DeepEqual(one[0], results[i]) || (results[i].Err != nil) != (i == 0) {
			t.Errorf("%s alone: %+v, %v; in a batch: %+v", request.Problems[i], one, err, results[i])
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
	if d := time.Since(begin); d < slowStart {
		t.Errorf("two slow plugins took %v to start", d)
	}
	// Each writes to its file and then sleeps, so that they slept at the same time if they did not write far apart.
	var wrote [2]time.Time
	for i, mode := range []string{"slow.1", "slow.2"} {
		info := must.Get(os.Stat(started(mode)))(t)
		wrote[i] = info.ModTime()
	}
	if d := wrote[1].Sub(wrote[0]).Abs(); d >= slowStart {
		t.Errorf("one of two slow plugins was started %v after the other", d)
	}
	if starts(t, "slow.1") != 1 || starts(t, "slow.2") != 1 {
		t.Errorf("started %d and %d times, want once each", starts(t, "slow.1"), starts(t, "slow.2"))
	}
}

func TestLogs(t *testing.T) {
	var out syncBuffer
	logger := hclog.New(&hclog.LoggerOptions{Name: "origami", Level: hclog.Debug, Output: &out})
	h := hostOf(t, host.Options{Logger: logger}, "print.Terms", "badlog")
	must.Do(t, calls["Terms"](t.Context(), open(t, h, arch.OpenRequest{Arch: "print.Terms"})))
	open(t, h, arch.OpenRequest{Arch: "badlog"}) // malformed log lines do no harm
	must.Do(t, h.Close())
	for _, want := range []string{
		"[WARN]  origami.print.Terms: to the log: call=Terms", "origami.print.Terms: to standard output",
		"origami.print.Terms: to standard error",
		`origami.badlog: {"@message":1`, "origami.badlog: hi",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log does not have %q:\n%.2000s", want, out.String())
		}
	}
}

func TestCloseWaitsForNobody(t *testing.T) {
	h := hostOf(t, host.Options{}, "orphan", "hang.Terms", "silent")
	open(t, h, arch.OpenRequest{Arch: "orphan"})
	a := open(t, h, arch.OpenRequest{Arch: "hang.Terms"})
	errs := make(chan error, 2)
	go func() { errs <- calls["Terms"](t.Context(), a) }()
	go func() {
		_, err := h.Open(t.Context(), arch.OpenRequest{Arch: "silent"})
		errs <- err
	}()
	for starts(t, "silent") == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	begin := time.Now()
	_ = h.Close()
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
	for range 2 {
		if err := <-errs; err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("got %v", err)
		}
	}
	for _, mode := range []string{"orphan", "hang.Terms", "silent"} {
		noneAlive(t, mode)
	}
	if _, err := h.Open(t.Context(), arch.OpenRequest{Arch: "orphan"}); err == nil {
		t.Error("a closed host opens")
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 3 { // the files of started
		t.Errorf("files left behind: %v", left)
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
