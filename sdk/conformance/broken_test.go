package conformance

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/example"
	"github.com/origami-gemm/origami/sdk/wire"
)

var sound = func() arch.Provider {
	p, err := example.Provider()
	if err != nil {
		panic(err)
	}
	return p
}()

// provider is the example's provider, with a function for each answer that a test changes. The function gets the right
// answer.
type provider struct {
	manifest func(*arch.Manifest)
	open     func(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error)
	describe func(*arch.Description)
	levels   func([]arch.Level)
	list     func(p gemm.Problem, c *arch.Candidates)
	estimate func(est []arch.Estimate, p gemm.Problem, cfgs []gemm.Config)
	before   func(ctx context.Context, cfgs []gemm.Config) // an estimate begins
	terms    func(rows []float64, d *arch.Description)
	with     func(rows [][]unit.Seconds)
	mapping  func(*arch.Mapping)
	problem  func(p gemm.Problem) gemm.Problem // before the model sees it
}

func (b *provider) Manifest() arch.Manifest {
	m := sound.Manifest()
	m.Archs = slices.Clone(m.Archs)
	m.Archs[0].Devices, m.Archs[0].Kernels = slices.Clone(m.Archs[0].Devices), slices.Clone(m.Archs[0].Kernels)
	if b.manifest != nil {
		b.manifest(&m)
	}
	return m
}

func (b *provider) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	var a arch.Architecture
	var err error
	if b.open != nil {
		a, err = b.open(ctx, r)
	} else {
		a, err = sound.Open(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	m := &model{Architecture: a, MemoryHierarchy: a.Hierarchy(), provider: b, desc: *a.Describe(),
		at: slices.Clone(a.Hierarchy().Levels())}
	m.desc.Monotone = []arch.Dim{arch.DimM, arch.DimN, arch.DimK}
	m.desc.Params, m.desc.Terms = slices.Clone(m.desc.Params), slices.Clone(m.desc.Terms)
	if b.describe != nil {
		b.describe(&m.desc)
	}
	if b.levels != nil {
		b.levels(m.at)
	}
	return m, nil
}

type model struct {
	arch.Architecture
	arch.MemoryHierarchy
	provider *provider
	desc     arch.Description
	at       []arch.Level
}

func (m *model) Describe() *arch.Description     { return &m.desc }
func (m *model) Hierarchy() arch.MemoryHierarchy { return m }
func (m *model) Levels() []arch.Level            { return m.at }

func (m *model) seen(p gemm.Problem) gemm.Problem {
	if m.provider.problem != nil {
		return m.provider.problem(p)
	}
	return p
}

func (m *model) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	c, err := m.Architecture.Candidates(ctx, p, s)
	if err == nil && m.provider.list != nil {
		m.provider.list(p, c)
	}
	return c, err
}

func (m *model) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if m.provider.before != nil {
		m.provider.before(ctx, cfgs)
	}
	err := m.Architecture.Estimate(ctx, dst, m.seen(p), cfgs)
	if err == nil && m.provider.estimate != nil {
		m.provider.estimate(dst, p, cfgs)
	}
	return err
}

// EstimateWith implements fit.Tunable, with the model's own estimates for the values in use.
func (m *model) EstimateWith(
	ctx context.Context, values []map[string]float64, sample []fit.Kernels,
) (rows [][]unit.Seconds, err error) {
	for _, v := range values {
		other := false
		for _, c := range m.desc.Constants {
			other = other || v[c.Name] != 0 && v[c.Name] != c.Value
		}
		var row [][]unit.Seconds
		if other {
			row, err = m.Architecture.(fit.Tunable).EstimateWith(ctx, []map[string]float64{v}, sample)
		} else {
			own := func(map[string]float64) (arch.Architecture, error) { return m, nil }
			row, err = fit.EstimateEach(ctx, own, []map[string]float64{v}, sample)
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row...)
	}
	if m.provider.with != nil {
		m.provider.with(rows)
	}
	return rows, nil
}

func (m *model) Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	err := m.Architecture.Terms(ctx, dst, m.seen(p), cfgs)
	if err == nil && m.provider.terms != nil {
		m.provider.terms(dst, &m.desc)
	}
	return err
}

func (m *model) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	mapping, err := m.Architecture.Mapping(ctx, m.seen(p), c)
	if err == nil && m.provider.mapping != nil {
		m.provider.mapping(&mapping)
	}
	return mapping, err
}

// forge makes an interceptor that may change an answer.
func forge(change func(method string, req, resp proto.Message, err error) error) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		resp, err := handle(ctx, req)
		var answer proto.Message
		if err == nil {
			answer = proto.Clone(resp.(proto.Message))
		}
		_, method, _ := strings.Cut(info.FullMethod[1:], "/")
		err = change(method, req.(proto.Message), answer, err)
		return answer, err
	}
}

// failing runs the checks of a service and returns the names of the failed ones, with their findings.
func failing(t *testing.T, service *wire.Service, checks []Check, o Options,
	forge ...grpc.UnaryServerInterceptor) (names []string, findings string, skipped []string) {
	t.Helper()
	conn, stop := must.Two(connect(service, forge...))(t)
	defer stop()
	var all []string
	Run(t.Context(), "broken", conn, checks, o, func(r Result) {
		if r.Failed() {
			names = append(names, r.Name)
			all = append(all, r.Findings...)
		}
		if r.Skipped != "" {
			skipped = append(skipped, r.Name)
		}
	})
	return names, strings.Join(all, "\n"), skipped
}

var quick = Options{Short: true, Untimed: true}

func nudge(e *arch.Estimate) { e.Cycles = unit.Cycles(math.Nextafter(float64(e.Cycles), 0)) }

var tiny = gemm.New(1, 1, 1)

// A plugin is fast enough although a busy machine slows it down at first.
func TestSpeedOnBusyMachine(t *testing.T) {
	if raceDetector {
		t.Skip("times are not measured under the race detector")
	}
	const slow = timedTries + 10
	var tries atomic.Int32
	busy := provider{estimate: func(_ []arch.Estimate, _ gemm.Problem, cfgs []gemm.Config) {
		if len(cfgs) == timedConfigs && tries.Add(1) <= slow {
			time.Sleep(timedLimit)
		}
	}}
	speed := slices.DeleteFunc(slices.Clone(ArchitectureChecks()), func(c Check) bool { return c.Name != "speed" })
	names, text, _ := failing(t, wire.ArchService(&busy), speed, Options{Short: true})
	if len(names) > 0 || tries.Load() <= slow {
		t.Errorf("%v fail after %d tries: %s", names, tries.Load(), text)
	}
}

// Whatever a plugin does wrong, the check for it says so, and no other.
func TestBrokenArchitectures(t *testing.T) {
	brokenCalls.Store(0)
	brokenInside.Store(0)
	brokenCancelled.Store(false)
	brokenLast.Clear()
	for _, test := range brokenCases {
		t.Run(test.check+"/"+strings.ReplaceAll(test.what, " ", "-"), func(t *testing.T) {
			if raceDetector && test.check != "cancel" && test.check != "concurrent" {
				t.Skip("faults without goroutines are tested without the race detector, ten times as fast")
			}
			if test.check != "speed" {
				t.Parallel()
			}
			o := test.options
			if o == (Options{}) {
				o = quick
			}
			var forges []grpc.UnaryServerInterceptor
			if test.forge != nil {
				forges = append(forges, test.forge)
			}
			names, text, _ := failing(t, wire.ArchService(&test.broken), ArchitectureChecks(), o, forges...)
			want := append([]string{test.check}, test.also...)
			slices.Sort(want)
			slices.Sort(names)
			names = slices.DeleteFunc(names, func(name string) bool { return name == test.perhaps })
			must.That(t, slices.Equal(names, want) && strings.Contains(text, test.finding),
				"the checks %v fail, want %v with %q:\n%s", names, want, test.finding, text)
		})
	}
}

// The sound provider passes all checks, and no check is skipped that could find the faults of the other tests.
func TestSoundArchitecture(t *testing.T) {
	golden := filepath.Join(t.TempDir(), "golden.jsonl")
	rejecting := provider{list: func(_ gemm.Problem, c *arch.Candidates) {
		big := gemm.Config{BlockM: 256, BlockN: 256, BlockK: 64, NumWarps: 1, NumStages: 1, SplitK: 1, Kernel: "tiled"}
		c.Rejected = []arch.Rejection{{Config: big, Position: len(c.Configs), Reason: arch.ReasonSharedMemory,
			Detail: "needs 65536 B, 32768 B available"}}
	}}
	o := quick
	o.Golden, o.UpdateGolden = golden, true
	if names, text, _ := failing(t, wire.ArchService(&rejecting), ArchitectureChecks(), o); !slices.Equal(names,
		[]string{"golden"}) || !strings.Contains(text, "is rewritten with 4 lines") {
		t.Errorf("writing the golden file, the checks %v fail: %s", names, text)
	}
	o.UpdateGolden = false
	names, text, skipped := failing(t, wire.ArchService(&rejecting), ArchitectureChecks(), o)
	must.That(t, len(names) <= 0 && slices.Equal(skipped, []string{"calibration", "ladder", "speed"}),
		"the checks %v fail, %v are skipped: %s", names, skipped, text)
	// A changed total is found.
	content := must.Get(os.ReadFile(golden))(t)
	changed := strings.Replace(string(content), `"cycles":`, `"cycles":1`, 1)
	must.Do(t, os.WriteFile(golden, []byte(changed), 0o600))
	names, text, _ = failing(t, wire.ArchService(&rejecting), ArchitectureChecks(), o)
	must.That(t, slices.Equal(names,
		[]string{"golden"}) &&
		strings.Contains(text, "golden.jsonl:1: example@abstract roofline, 2048x2048x2048 fp16: "+
			"place 1 is"), "with another golden file, the checks %v fail: %s", names, text)
}

// rungs is a plugin with a ladder, and a function that changes it.
type rungs struct {
	fake.Provider
	change func(*ladder.Ladder)
	plan   func(*calibrate.Plan)
}

func (r rungs) Ladder(ctx context.Context) (*ladder.Ladder, error) {
	l, err := r.Provider.Ladder(ctx)
	if err == nil && r.change != nil {
		r.change(l)
	}
	return l, err
}

func (r rungs) Calibration(ctx context.Context, d exec.Device) (*calibrate.Plan, error) {
	if d.Arch == "fake" {
		d.Attributes = map[string]float64{"units": 3}
	}
	p, err := r.Provider.Calibration(ctx, d)
	if err == nil && r.plan != nil {
		r.plan(p)
	}
	return p, err
}

// Microbenchmarks and a ladder that are in order pass, and mistakes in them are found.
func TestOptionalInterfaces(t *testing.T) {
	two := slices.DeleteFunc(slices.Clone(ArchitectureChecks()), func(c Check) bool {
		return c.Name != "calibration" && c.Name != "ladder"
	})
	number := func(change func(*calibrate.Number)) func(*calibrate.Plan) {
		return func(p *calibrate.Plan) {
			numbers := p.Numbers
			p.Numbers = func(ctx context.Context, v calibrate.Values) ([]calibrate.Number, []hw.Atom, error) {
				list, atoms, err := numbers(ctx, v)
				for i := range list {
					change(&list[i])
				}
				return list, atoms, err
			}
		}
	}
	broken := func(change func(*ladder.Ladder)) rungs { return rungs{change: change} }
	for finding, plugin := range map[string]rungs{
		"":                       {},
		"comes twice":            broken(func(l *ladder.Ladder) { l.Rungs = append(l.Rungs, l.Rungs[0]) }),
		"unknown architecture":   broken(func(l *ladder.Ladder) { l.Device = "none@none" }),
		"of the term nothing, ":  broken(func(l *ladder.Ladder) { l.Costs[0].Term = "nothing" }),
		"names a rung or a cost": broken(func(l *ladder.Ladder) { l.Claims[0].Over = "nothing" }),
		"which is to compute what it cannot, is no rung": broken(func(l *ladder.Ladder) { l.Rungs[0].Instead = "nothing" }),
		"the rung small: ": broken(func(l *ladder.Ladder) {
			l.Types = gemm.Types{In: gemm.FP8, Out: gemm.FP16}
		}),
		"lacks a unit":               {plan: number(func(n *calibrate.Number) { n.Unit = "" })},
		"which is no microbenchmark": {plan: number(func(n *calibrate.Number) { n.Probes[0] = "none" })},
	} {
		names, text, skipped := failing(t, wire.ArchService(plugin), two, quick)
		must.That(t, len(skipped) <= 0 && (len(names) == 0) == (finding == "") && strings.Contains(text, finding),
			"the checks %v fail, %v are skipped, want %q: %s", names, skipped, finding, text)
	}
}

// Rank is optional.
func TestWithoutRank(t *testing.T) {
	names, text, skipped := failing(t, wire.ArchService(sound), ArchitectureChecks(), quick,
		forge(func(method string, _, _ proto.Message, err error) error {
			if method == "Rank" {
				return status.Error(codes.Unimplemented, "no Rank")
			}
			return err
		}))
	must.That(t, len(names) <= 0 && slices.Contains(skipped, "rank"),
		"the checks %v fail, %v are skipped: %s", names, skipped, text)
}

// A plugin that hangs costs a check at most two timeouts.
func TestHangs(t *testing.T) {
	var asked atomic.Int64
	hung := forge(func(method string, _, _ proto.Message, err error) error {
		if method == "Mapping" {
			asked.Add(1)
			return status.Error(codes.DeadlineExceeded, "no answer")
		}
		return err
	})
	checks := slices.DeleteFunc(slices.Clone(ArchitectureChecks()), func(c Check) bool { return c.Name != "mapping" })
	names, text, _ := failing(t, wire.ArchService(sound), checks, Options{}, hung)
	if !slices.Equal(names, []string{"mapping"}) || asked.Load() != hangsBorne || !strings.Contains(text,
		"not called, because 2 calls before it have hung") {
		t.Errorf("the checks %v fail after %d calls: %s", names, asked.Load(), text)
	}
}

// When the context ends, the remaining checks fail with its error and return.
func TestRunEndsWithItsContext(t *testing.T) {
	conn, stop := must.Two(connect(wire.ArchService(sound)))(t)
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	Run(ctx, "example", conn, ArchitectureChecks(), quick, func(r Result) {
		if seen++; seen == 3 {
			cancel()
		}
		must.That(t, seen <= 3 || r.Failed() && r.Findings[0] == context.Canceled.Error(),
			"after the end, %s gives %v %q", r.Name, r.Findings, r.Skipped)
	})
	must.That(t, seen == len(ArchitectureChecks()), "%d results", seen)
}
