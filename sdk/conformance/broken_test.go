package conformance

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/sdk/example"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
	"github.com/origami-gemm/origami/sdk/wire"
)

var sound = func() arch.Provider {
	p, err := example.Provider()
	if err != nil {
		panic(err)
	}
	return p
}()

// provider is the example's, with a function in the place of what a test breaks. Each is given the sound answer.
type provider struct {
	manifest func(*arch.Manifest)
	open     func(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error)
	describe func(*arch.Description)
	levels   func([]arch.Level)
	list     func(p gemm.Problem, c *arch.Candidates)
	estimate func(est []arch.Estimate, p gemm.Problem, cfgs []gemm.Config)
	before   func(ctx context.Context, cfgs []gemm.Config) // an estimate begins
	terms    func(rows []float64, d *arch.Description)
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

// failing makes the checks of a service and returns the names of those that fail, with their findings.
func failing(t *testing.T, service *wire.Service, checks []Check, o Options,
	forge ...grpc.UnaryServerInterceptor) (names []string, findings string, skipped []string) {
	t.Helper()
	conn, stop, err := connect(service, forge...)
	if err != nil {
		t.Fatal(err)
	}
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

// Whatever a plugin does wrong, the check for it says so, and no other.
func TestBrokenArchitectures(t *testing.T) {
	var calls, inside atomic.Int64
	var cancelled atomic.Bool
	var last sync.Map
	for _, test := range []struct {
		check, what string
		broken      provider
		forge       grpc.UnaryServerInterceptor
		options     Options
		finding     string
		also        []string // checks that cannot but fail as well
	}{
		{check: "info", what: "no version", broken: provider{manifest: func(m *arch.Manifest) { m.Version = "" }},
			finding: "no version"},
		{check: "info", what: "another API", finding: "it speaks API 9.0.0",
			forge: forge(func(_ string, _, resp proto.Message, err error) error {
				if r, ok := resp.(*pb.InfoResponse); ok {
					r.Info.ApiVersions = []string{"9.0.0"}
				}
				return err
			})},
		{check: "info", what: "failing", finding: "cannot work: no licence",
			forge: forge(func(_ string, _, resp proto.Message, err error) error {
				if r, ok := resp.(*pb.InfoResponse); ok {
					r.Info.Health, r.Info.HealthReason = pb.Health_HEALTH_FAILING, "no licence"
				}
				return err
			})},
		{check: "manifest", what: "an alias that is taken", finding: `device "ABSTRACT" comes twice`,
			broken: provider{manifest: func(m *arch.Manifest) {
				m.Archs[0].Devices[0].Aliases = []string{"ABSTRACT"}
			}}},
		{check: "manifest", what: "a name of two words", finding: "a name is one word",
			broken: provider{manifest: func(m *arch.Manifest) {
				m.Archs[0].Kernels = append(m.Archs[0].Kernels, "two words")
			}}},
		{check: "open", what: "a device that does not open", finding: "example@ghost roofline does not open",
			broken: provider{manifest: func(m *arch.Manifest) {
				m.Archs[0].Devices = append(m.Archs[0].Devices, arch.DeviceEntry{ID: "ghost", Name: "Ghost"})
			}}, options: Options{Untimed: true}},
		{check: "open", what: "another family", finding: `does not list the kernel family "other"`, broken: provider{
			manifest: func(m *arch.Manifest) { m.Archs[0].Kernels = []string{"tiled"} },
			describe: func(d *arch.Description) { d.Kernels = []string{"tiled", "other"} },
		}, also: []string{"answers"}},
		{check: "reopen", what: "described anew each time", finding: "describes itself differently", broken: provider{
			describe: func(d *arch.Description) { d.DeviceName += string(rune('a' + calls.Add(1)%20)) },
		}, also: []string{"determinism", "concurrent"}},
		{check: "bad-open", what: "unknown options", finding: "an unknown option is accepted",
			broken: provider{open: func(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
				r.Options = nil
				return sound.Open(ctx, r)
			}}},
		{check: "bad-open", what: "a plain error", finding: "of kind internal, not input",
			broken: provider{open: func(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
				if r.Arch == unknownName {
					return nil, errors.New("what?")
				}
				return sound.Open(ctx, r)
			}}},
		{check: "units", what: "a clock in GHz", finding: "a clock of 1 Hz",
			broken: provider{describe: func(d *arch.Description) { d.Clock = 1 }}},
		{check: "units", what: "a parameter in furlongs", finding: `unknown unit "furlong"`,
			broken: provider{describe: func(d *arch.Description) { d.Params[0].Unit = "furlong" }}},
		{check: "units", what: "no bandwidth", finding: "DRAM has -1 B/cycle",
			broken: provider{levels: func(l []arch.Level) { l[0].Bandwidth.Peak = -1 }}},
		{check: "units", what: "a peak in TFLOP/s", finding: "the peak is",
			broken: provider{describe: func(d *arch.Description) { d.Peak = []arch.PeakRate{{DType: gemm.FP16, Rate: 16}} }}},
		{check: "schema", what: "no explanation", finding: "lacks its formula, explanation or unit",
			broken: provider{describe: func(d *arch.Description) { d.Terms[1].Doc = "" }}},
		{check: "schema", what: "two totals", finding: "2 terms are the total",
			broken: provider{describe: func(d *arch.Description) {
				d.Terms[0].Kind = arch.KindTotal
			}}},
		{check: "answers", what: "not a number", finding: "a total of NaN cycles",
			broken: provider{estimate: func(est []arch.Estimate, p gemm.Problem, _ []gemm.Config) {
				if p == tiny {
					est[0].Cycles = unit.Cycles(math.NaN())
				}
			}}},
		{check: "answers", what: "rejected with a number", finding: "is rejected (model_rule) and has a total",
			broken: provider{estimate: func(est []arch.Estimate, p gemm.Problem, _ []gemm.Config) {
				if p == tiny {
					est[0].Reject = arch.ReasonModelRule
				}
			}}},
		{check: "answers", what: "rejected without a reason", finding: "an empty name",
			forge: forge(func(_ string, req, resp proto.Message, err error) error {
				if r, ok := resp.(*pb.EstimateResponse); ok && req.(*pb.EstimateRequest).GetProblem().GetM() == 1 &&
					len(r.Cycles) > 1 {
					r.Cycles[1], r.Rejected, r.Reasons, r.ReasonNames = 0, []uint32{1}, []uint32{0}, []string{""}
				}
				return err
			})},
		{check: "answers", what: "a candidate twice", finding: "comes twice", broken: provider{list: func(p gemm.Problem,
			c *arch.Candidates) {
			if p.TransA() {
				c.Configs = append(slices.Clone(c.Configs), c.Configs[0])
			}
		}}},
		{check: "answers", what: "positions in no order", finding: "position", broken: provider{list: func(p gemm.Problem,
			c *arch.Candidates) {
			if p.TransA() {
				c.Rejected = []arch.Rejection{{Config: c.Configs[0], Position: 99, Reason: "mine", Detail: "1 of 2"}}
			}
		}}},
		{check: "rejected", what: "rejected and estimated", finding: "Candidates rejects",
			broken: provider{list: func(_ gemm.Problem, c *arch.Candidates) {
				c.Rejected = []arch.Rejection{{Config: c.Configs[0], Reason: "mine", Detail: "1 of 2"}}
				c.Configs = c.Configs[1:]
			}}},
		{check: "determinism", what: "another answer the second time", finding: "asked again",
			broken: provider{estimate: func(est []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) {
				if _, again := last.LoadOrStore([2]any{p, len(cfgs)}, true); again && len(cfgs) > 1 && p == tiny {
					nudge(&est[0])
				}
			}}, also: []string{"order", "concurrent"}},
		{check: "order", what: "another answer alone", finding: "alone, it is",
			broken: provider{estimate: func(est []arch.Estimate, _ gemm.Problem, cfgs []gemm.Config) {
				if len(cfgs) == 1 {
					nudge(&est[0])
				}
			}}},
		{check: "order", what: "the first is favoured", finding: "in another order, it is",
			broken: provider{estimate: func(est []arch.Estimate, _ gemm.Problem, cfgs []gemm.Config) {
				if cfgs[0].BlockM != 32 {
					nudge(&est[0])
				}
			}}, also: []string{"large"}},
		{check: "monotone-k", what: "a dip", finding: "cycles with k =",
			broken: provider{problem: func(p gemm.Problem) gemm.Problem {
				if p.K%127 == 0 {
					p.K /= 4
				}
				return p
			}}},
		{check: "monotone-declared", what: "a dip", finding: "cycles with n =",
			broken: provider{problem: func(p gemm.Problem) gemm.Problem {
				if p.N%127 == 0 {
					p.N /= 4
				}
				return p
			}}},
		{check: "terms", what: "a formula of something else", finding: "and the plugin says",
			broken: provider{terms: func(rows []float64, _ *arch.Description) { rows[1]++ }}},
		{check: "terms", what: "a name nobody knows", finding: `unknown name "nothing"`,
			broken: provider{describe: func(d *arch.Description) { d.Terms[0].Formula = "nothing" }}},
		{check: "terms", what: "another total", finding: "the total of Terms is", broken: provider{terms: func(rows []float64,
			d *arch.Description) {
			total := slices.IndexFunc(d.Terms, func(t arch.Term) bool { return t.Kind == arch.KindTotal })
			rows[total] = math.Nextafter(rows[total], 0)
		}}},
		{check: "terms", what: "an infinity", finding: "is +Inf", broken: provider{terms: func(rows []float64,
			_ *arch.Description) {
			rows[0] = math.Inf(1)
		}}},
		{check: "mapping", what: "no group", finding: "a launch order of {GroupM:0",
			broken: provider{mapping: func(m *arch.Mapping) { m.GroupM = 0 }}},
		{check: "mapping", what: "more dies than there are", finding: "XCDs:8",
			broken: provider{mapping: func(m *arch.Mapping) { m.XCDs = 8 }}},
		{check: "rank", what: "another order", finding: "place 2 of Rank is",
			forge: forge(func(_ string, _, resp proto.Message, err error) error {
				if r, ok := resp.(*pb.RankResponse); ok && len(r.Rankings) < 10 {
					for _, ranking := range r.Rankings {
						if c := ranking.Configs; len(c.BlockM) > 1 {
							c.BlockM[0], c.BlockM[1] = c.BlockM[1], c.BlockM[0]+1
						}
					}
				}
				return err
			})},
		{check: "bad-input", what: "a problem of nothing", finding: "with k = 0 is accepted",
			broken: provider{problem: func(p gemm.Problem) gemm.Problem {
				p.K = max(p.K, 1)
				return p
			}}},
		{check: "bad-input", what: "a panic", finding: "it panics",
			broken: provider{problem: func(p gemm.Problem) gemm.Problem {
				if p.M == 0 {
					panic("division by zero")
				}
				return p
			}}},
		{check: "missing", what: "another status", finding: "it answers Internal",
			forge: forge(func(method string, _, _ proto.Message, err error) error {
				if method == "Terms" && status.Code(err) == codes.NotFound {
					return status.Error(codes.Internal, "never heard of it")
				}
				return err
			})},
		{check: "missing", what: "no detail", finding: "with the detail RESOURCE_UNSPECIFIED",
			forge: forge(func(method string, _, _ proto.Message, err error) error {
				if method == "Mapping" && status.Code(err) == codes.NotFound {
					return status.Error(codes.NotFound, "gone")
				}
				return err
			})},
		{check: "fields", what: "refused", finding: "with a field that it does not know",
			forge: forge(func(_ string, req, _ proto.Message, err error) error {
				if len(req.ProtoReflect().GetUnknown()) > 0 {
					return status.Error(codes.InvalidArgument, "what is that?")
				}
				return err
			})},
		{check: "cancel", what: "it leaves its mark", finding: "after cancelled calls, it is", broken: provider{
			before: func(ctx context.Context, cfgs []gemm.Config) {
				if len(cfgs) > 30000 && !cancelled.Load() {
					select {
					case <-ctx.Done():
						cancelled.Store(true)
					case <-time.After(400 * time.Millisecond):
					}
				}
			},
			estimate: func(est []arch.Estimate, _ gemm.Problem, _ []gemm.Config) {
				if cancelled.Load() {
					nudge(&est[0])
				}
			},
		}, also: []string{"large", "concurrent"}},
		{check: "large", what: "the end of the list", finding: "in a list of 33000, it is",
			broken: provider{estimate: func(est []arch.Estimate, _ gemm.Problem, cfgs []gemm.Config) {
				if len(cfgs) > 30000 {
					nudge(&est[29999])
				}
			}}},
		{check: "concurrent", what: "shared scratch space", finding: "asked 8 times at once, it is",
			broken: provider{estimate: func(est []arch.Estimate, p gemm.Problem, _ []gemm.Config) {
				if p == tiny {
					if inside.Add(1) > 1 {
						nudge(&est[0])
					}
					time.Sleep(5 * time.Millisecond)
					inside.Add(-1)
				}
			}}},
		{check: "speed", what: "slow", finding: "the limit is 5ms", options: Options{Short: true},
			broken: provider{estimate: func(_ []arch.Estimate, _ gemm.Problem, cfgs []gemm.Config) {
				if len(cfgs) == timedConfigs {
					time.Sleep(6 * time.Millisecond)
				}
			}}},
		{check: "golden", what: "no such file", finding: "cannot be read", options: Options{Short: true, Untimed: true,
			Golden: "testdata/none.jsonl"}},
		{check: "golden", what: "no such line", finding: "invalid character", options: Options{Short: true, Untimed: true,
			Golden: "broken_test.go"}},
	} {
		t.Run(test.check+"/"+strings.ReplaceAll(test.what, " ", "-"), func(t *testing.T) {
			if raceDetector && test.check != "cancel" && test.check != "concurrent" {
				t.Skip("what has no goroutines of its own is checked without the race detector, ten times as fast")
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
			if !slices.Equal(names, want) || !strings.Contains(text, test.finding) {
				t.Errorf("the checks %v fail, want %v with %q:\n%s", names, want, test.finding, text)
			}
		})
	}
}

// The sound provider passes everything, and what the other tests break is really looked at.
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
	if len(names) > 0 || !slices.Equal(skipped, []string{"speed"}) {
		t.Errorf("the checks %v fail, %v are skipped: %s", names, skipped, text)
	}
	// A total that is off by the last bit is told.
	content, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(content), `"cycles":`, `"cycles":1`, 1)
	if err := os.WriteFile(golden, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if names, text, _ := failing(t, wire.ArchService(&rejecting), ArchitectureChecks(), o); !slices.Equal(names,
		[]string{"golden"}) || !strings.Contains(text, "golden.jsonl:1: example@abstract roofline, 2048x2048x2048 fp16: "+
		"place 1 is") {
		t.Errorf("with another golden file, the checks %v fail: %s", names, text)
	}
}

// Rank is a shortcut, which a plugin need not have.
func TestWithoutRank(t *testing.T) {
	names, text, skipped := failing(t, wire.ArchService(sound), ArchitectureChecks(), quick,
		forge(func(method string, _, _ proto.Message, err error) error {
			if method == "Rank" {
				return status.Error(codes.Unimplemented, "no Rank")
			}
			return err
		}))
	if len(names) > 0 || !slices.Contains(skipped, "rank") {
		t.Errorf("the checks %v fail, %v are skipped: %s", names, skipped, text)
	}
}

// A plugin that hangs costs a check two timeouts, whatever it would ask.
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
		"not asked, as 2 calls before it have hung") {
		t.Errorf("the checks %v fail after %d calls: %s", names, asked.Load(), text)
	}
}

// When the context ends, what is left fails with it and returns.
func TestRunEndsWithItsContext(t *testing.T) {
	conn, stop, err := connect(wire.ArchService(sound))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	Run(ctx, "example", conn, ArchitectureChecks(), quick, func(r Result) {
		if seen++; seen == 3 {
			cancel()
		}
		if seen > 3 && (!r.Failed() || r.Findings[0] != context.Canceled.Error()) {
			t.Errorf("after the end, %s gives %v %q", r.Name, r.Findings, r.Skipped)
		}
	})
	if seen != len(ArchitectureChecks()) {
		t.Errorf("%d results", seen)
	}
}
