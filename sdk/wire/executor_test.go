package wire

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

var config = gemm.Config{BlockM: 128, BlockN: 64, BlockK: 32, GroupM: 8, NumWarps: 4, NumStages: 3, SplitK: 1,
	Kernel: "one"}

var program = exec.Program{Text: "text", Entry: "entry", Grid: 132, Threads: 256, SharedMemory: 49152, Launches: 2,
	Warmup: 1, Counters: 2, Arguments: []exec.Argument{{Kind: exec.BufferArgument, Bytes: 4096, DType: gemm.BF16},
		{Kind: exec.CountersArgument}, {Kind: exec.Word64, Value: 1 << 40}, {Kind: exec.Word32, Value: 7}}}

func connectExecutor(t *testing.T) *pair {
	return connectTo(t, ExecutorService(fake.ExecutorProvider{}))
}

func compile(t *testing.T, x *Executor) exec.Kernel {
	t.Helper()
	k := must.Get(x.Compile(t.Context(), 0, problem, config))(t)
	return k
}

// executeAll makes every call of the protocol.
func executeAll(ctx context.Context, x *Executor, k exec.Kernel) map[string]error {
	errs := map[string]error{}
	_, errs["Manifest"] = x.Manifest(ctx)
	_, errs["Devices"] = x.Devices(ctx)
	_, errs["Environment"] = x.Environment(ctx, 0)
	_, errs["Compile"] = x.Compile(ctx, 0, problem, config)
	_, errs["Check"] = k.Check(ctx)
	_, errs["Run"] = x.Run(ctx, 0, program, 3)
	n := 0
	errs["Measure"] = k.Measure(ctx, exec.MeasureOptions{}, func(exec.Sample) bool { n++; return n < 5 })
	return errs
}

func TestForgedAnswersOfExecutorsAreRefused(t *testing.T) {
	forgeries := map[string]func(proto.Message){}
	forge := func(call, what string, f func(m proto.Message)) { forgeries[call+"/"+what] = f }
	for _, call := range []string{"Manifest", "Environment", "Compile", "Check", "Measure", "Run"} {
		forge(call, "empty", func(m proto.Message) { proto.Reset(m) })
	}
	forge("Compile", "no kernel", func(m proto.Message) { rewrite(m, func(q *compiled) { q.Kernel = 0 }) })
	forge("Check", "more wrong than checked", func(m proto.Message) {
		rewrite(m, func(n *exec.Numerics) { n.Wrong = n.Checked + 1 })
	})
	forge("Measure", "too few", func(m proto.Message) { rewrite(m, func(s *[]exec.Sample) { *s = (*s)[1:] }) })
	forge("Measure", "too many", func(m proto.Message) { rewrite(m, func(s *[]exec.Sample) { *s = append(*s, (*s)[0]) }) })
	forge("Run", "too few", func(m proto.Message) { rewrite(m, func(r *[]exec.Reading) { *r = (*r)[1:] }) })
	forge("Run", "counters", func(m proto.Message) { rewrite(m, func(r *[]exec.Reading) { (*r)[0].Counters = nil }) })

	p := connectExecutor(t)
	x := p.client.Executor()
	k := compile(t, x)
	p.refuses(t, forgeries, func() map[string]error { return executeAll(t.Context(), x, k) })
}

func TestMalformedExecutorRequests(t *testing.T) {
	p := connectExecutor(t)
	s := pb.NewExecutorServiceClient(p.conn)
	kernel := must.Get(KernelOf(must.Get(s.Compile(t.Context(), CompileMessage(0, problem, config)))(t)))(t)
	compileWith := func(device int, p gemm.Problem, c gemm.Config) error {
		return ignore(s.Compile(t.Context(), CompileMessage(device, p, c)))
	}
	measureWith := func(runs, warmup int) error {
		return ignore(s.Measure(t.Context(), MeasureMessage(kernel, exec.MeasureOptions{Warmup: warmup}, runs)))
	}
	changed := func(change func(*gemm.Problem)) gemm.Problem {
		p := problem
		change(&p)
		return p
	}
	for name, err := range map[string]error{
		"device negative":  compileWith(-1, problem, config),
		"device huge":      compileWith(1<<40, problem, config),
		"device unknown":   compileWith(2, problem, config),
		"no problem":       ignore(s.Compile(t.Context(), &pb.Json{Json: []byte(`{"config":{"kernel":"one"}}`)})),
		"no configuration": ignore(s.Compile(t.Context(), &pb.Json{Json: []byte(`{"problem":{"m":1,"n":1,"k":1}}`)})),
		"no JSON":          ignore(s.Compile(t.Context(), &pb.Json{})),
		"dtype missing":    compileWith(0, changed(func(p *gemm.Problem) { p.DType = 0 }), config),
		"size negative":    compileWith(0, changed(func(p *gemm.Problem) { p.M = -1 }), config),
		"environment":      ignore(s.Environment(t.Context(), toJSON(&environmentQuestion{math.MinInt64}))),
		"no runs":          measureWith(0, 0),
		"negative runs":    measureWith(-1, 0),
		"too many runs":    measureWith(math.MaxInt64, 0),
		"negative warm-up": measureWith(1, -1),
	} {
		if d, _ := details(err); d.GetKind() != pb.Diagnostic_KIND_INPUT || status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, handle := range []uint64{0, kernel + 1, kernel - 1} {
		_, err := s.Check(t.Context(), KernelMessage(handle))
		if _, missing := details(err); missing != pb.Missing_RESOURCE_KERNEL || status.Code(err) != codes.NotFound {
			t.Errorf("handle %d: got %v", handle, err)
		}
		_, err = s.Release(t.Context(), KernelMessage(handle))
		must.That(t, err == nil, "releasing the unknown handle %d: %v", handle, err)
	}
	live := OpenMessage(arch.OpenRequest{Arch: "fake", Live: &arch.LiveDevice{Name: "GPU",
		Attributes: map[string]float64{"clock": math.NaN()}}})
	_, err := pb.NewArchServiceClient(connect(t).conn).Open(t.Context(), live)
	if d, _ := details(err); d.GetKind() != pb.Diagnostic_KIND_INPUT {
		t.Errorf("live device: got %v", err)
	}
}

// A handle of one process is unknown to the next.
func TestKernelHandlesAreOfOneProcess(t *testing.T) {
	one, other := connectExecutor(t), connectExecutor(t)
	for range 100 {
		k := compile(t, one.client.Executor()).(*kernel)
		compile(t, other.client.Executor())
		moved := &kernel{client: other.client, handle: k.handle}
		_, err := moved.Check(t.Context())
		_, noErr := k.Check(t.Context())
		must.Need(t, errors.Is(err, exec.ErrKernelLost) && diag.KindOf(err) == diag.Plugin && noErr == nil,
			"got %v, %v", err, noErr)
	}
}

// Measure asks for one run with the warm-up, then for what fits its time, and hands on no more than it is asked for.
func TestMeasureInChunks(t *testing.T) {
	p := connectExecutor(t)
	for _, want := range []struct {
		time float64
		runs []int
	}{
		{1e-6, []int{1, 16, 16, 16}}, {1e-3, []int{1, 5, 5, 5, 5, 5, 5, 5, 5}}, {1, []int{1, 1, 1, 1, 1}},
		{leastNumber, []int{1, 16, 16, 16}},
	} {
		p.forge = func(m proto.Message) {
			if p.call == "Measure" {
				rewrite(m, func(list *[]exec.Sample) {
					for i := range *list {
						(*list)[i].Time = unit.Seconds(want.time)
					}
				})
			}
		}
		k := compile(t, p.client.Executor())
		p.requests = nil
		n, enough := 0, 40
		if want.time == 1 {
			enough = 5
		}
		err := k.Measure(t.Context(), exec.MeasureOptions{WarmL2: true, Input: exec.InputNormal, Warmup: 7},
			func(exec.Sample) bool { n++; return n < enough })
		must.That(t, err == nil && n == enough, "%d samples, %v", n, err)
		var runs []int
		for i, r := range p.requests {
			m := must.Get(read[measureQuestion](r.(*pb.Json).Json))(t)
			must.That(t, m.Input == exec.InputNormal && m.WarmL2 && (m.Warmup == 7) == (i == 0) && (m.Warmup == 0) == (i > 0),
				"request %d: %v", i, m)
			runs = append(runs, m.Runs)
		}
		must.That(t, reflect.DeepEqual(runs, want.runs), "runs of %v s: asked for %v, want %v", want.time, runs, want.runs)
	}
}

// A provider that fails to open is asked again by the next call.
func TestExecutorIsOpenedWhenNeeded(t *testing.T) {
	b := &fickle{failures: 2}
	x := connectTo(t, ExecutorService(b)).client.Executor()
	if _, err := x.Manifest(t.Context()); err != nil || b.opened != 0 {
		t.Errorf("the manifest opens the executor: %d times, %v", b.opened, err)
	}
	for range 2 {
		_, err := x.Compile(t.Context(), 0, problem, config)
		must.That(t, diag.KindOf(err) == diag.Device &&
			err.Error() == "fickle: no driver; install one", "got %v", err)
	}
	for range 3 {
		_, err := x.Devices(t.Context())
		must.That(t, err == nil, "%v", err)
	}
	must.That(t, b.opened == 3, "opened %d times, want three", b.opened)
}

type fickle struct {
	fake.ExecutorProvider
	opened, failures int
}

func (f *fickle) Open(ctx context.Context) (exec.Executor, error) {
	if f.opened++; f.opened <= f.failures {
		return nil, &diag.Error{Kind: diag.Device, Where: "fickle", What: "no driver", Fix: "install one"}
	}
	return f.ExecutorProvider.Open(ctx)
}

// withoutPrograms is an executor that does not run programs.
type withoutPrograms struct{ exec.Executor }

type providerWithout struct{ fake.ExecutorProvider }

func (p providerWithout) Open(ctx context.Context) (exec.Executor, error) {
	x, err := p.ExecutorProvider.Open(ctx)
	return withoutPrograms{x}, err
}

// TestRunPrograms: readings arrive as the executor made them, for every kind of argument. What cannot be run is refused
// on either side, and an executor that runs no programs says so.
func TestRunPrograms(t *testing.T) {
	x := connectExecutor(t).client.Executor()
	local := must.Get(fake.ExecutorProvider{}.Open(t.Context()))(t)
	want := must.Get(local.(exec.Runner).Run(t.Context(), 0, program, 3))(t)
	got, err := x.Run(t.Context(), 0, program, 3)
	same(t, want, got, err)
	for what, change := range map[string]func(p *exec.Program){
		"text": func(p *exec.Program) { p.Text = "" }, "grid": func(p *exec.Program) { p.Grid = 0 },
		"threads":  func(p *exec.Program) { p.Threads = exec.MaxThreads + 1 },
		"launches": func(p *exec.Program) { p.Launches = 0 }, "counters": func(p *exec.Program) { p.Counters = 0 },
		"buffer":  func(p *exec.Program) { p.Arguments = []exec.Argument{{Kind: exec.BufferArgument}} },
		"kind":    func(p *exec.Program) { p.Arguments = []exec.Argument{{Kind: exec.CountersArgument + 1}} },
		"memory":  func(p *exec.Program) { p.SharedMemory = unit.Bytes(math.NaN()) },
		"warm-up": func(p *exec.Program) { p.Warmup = -1 },
		"counters twice": func(p *exec.Program) {
			p.Arguments = []exec.Argument{{Kind: exec.CountersArgument}, {Kind: exec.CountersArgument}}
		},
	} {
		p := program
		change(&p)
		if _, err := x.Run(t.Context(), 0, p, 3); err == nil || diag.KindOf(err) != diag.Input {
			t.Errorf("%s: got %v", what, err)
		}
		_, err := unmarshal[runQuestion](marshal(&runQuestion{0, p, 1}), maxRequestMemory)
		must.That(t, err != nil || p.Validate() != nil, "%s: the server takes it", what)
	}
	_, err = x.Run(t.Context(), 7, program, 3)
	must.That(t, diag.KindOf(err) == diag.Input && err != nil, "device 7: %v", err)
	without := connectTo(t, ExecutorService(providerWithout{})).client.Executor()
	_, err = without.Run(t.Context(), 0, program, 3)
	must.That(t, err != nil && diag.KindOf(err) == diag.Input &&
		strings.Contains(err.Error(), "runs no programs"), "without programs: %v", err)
}
