package conformance

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// brokenCase is a plugin that does one thing wrong, and the finding of the check for it.
type brokenCase struct {
	check, what string
	broken      provider
	forge       grpc.UnaryServerInterceptor
	options     Options
	finding     string
	also        []string // checks that cannot but fail as well
	perhaps     string   // a check that fails as well if calls come in a certain order
}

// State of the cases that behave differently from call to call; TestBrokenArchitectures clears it.
var (
	brokenCalls, brokenInside atomic.Int64
	brokenCancelled           atomic.Bool
	brokenLast                sync.Map
)

var brokenCases = []brokenCase{
	{check: "info", what: "no version", broken: provider{manifest: func(m *arch.Manifest) { m.Version = "" }},
		finding: "no version"},
	{check: "info", what: "failing", finding: "cannot work: no licence",
		forge: forge(func(method string, _, resp proto.Message, err error) error {
			if method == "Info" {
				resp.(*pb.Json).Json = []byte(`{"name":"example","version":"1.0.0","failing":"no licence"}`)
			}
			return err
		})},
	{check: "manifest", what: "an alias that is taken", finding: `device "ABSTRACT" comes twice`,
		broken: provider{manifest: func(m *arch.Manifest) {
			m.Archs[0].Devices[0].Aliases = []string{"ABSTRACT"}
		}}},
	{check: "open", what: "a family that no model predicts", finding: "example@abstract ghost does not open",
		broken: provider{manifest: func(m *arch.Manifest) {
			m.Archs[0].Kernels = append(m.Archs[0].Kernels, "ghost")
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
		describe: func(d *arch.Description) { d.DeviceName += string(rune('a' + brokenCalls.Add(1)%20)) },
	}, also: []string{"determinism"}, perhaps: "concurrent"},
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
		broken: provider{describe: func(d *arch.Description) {
			d.Peak = []arch.PeakRate{{DType: gemm.FP16,
				Rate: 16}}
		}}},
	{check: "unused", what: "a bandwidth that counts",
		finding: "memory_bandwidth is said to be unused, but 2 times its",
		broken:  provider{describe: func(d *arch.Description) { d.Unused = []string{"memory_bandwidth"} }}},
	{check: "unused", what: "a clock that counts",
		finding: "clock is said to be unused, but 0.5 times its value changes",
		broken:  provider{describe: func(d *arch.Description) { d.Unused = []string{"clock"} }}},
	{check: "unused", what: "a limit that counts", finding: "shared_memory is said to be unused, but 0.5 times its",
		broken: provider{describe: func(d *arch.Description) { d.Unused = []string{"shared_memory"} }}},
	{check: "constants", what: "a model that is not listed", finding: "the manifest does not say that roofline is fitted",
		broken: provider{manifest: func(m *arch.Manifest) { m.Archs[0].Fitted = nil }}},
	{check: "constants", what: "other times with the values in use", finding: "gives other times than Estimate",
		broken: provider{with: func(rows [][]unit.Seconds) { rows[0][0] *= 2 }}},
	{check: "constants", what: "sets that change each other", finding: "other times alone than among others",
		broken: provider{with: func(rows [][]unit.Seconds) {
			if len(rows) > 2 {
				rows[len(rows)-1][0] *= 2
			}
		}}},
	{check: "calibration", what: "microbenchmarks that are only said to be there", finding: "Unimplemented",
		broken: provider{manifest: func(m *arch.Manifest) { m.Calibrates = true }}},
	{check: "ladder", what: "a ladder that is only said to be there", finding: "Unimplemented",
		broken: provider{manifest: func(m *arch.Manifest) { m.Ladder = true }}},
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
			if _, again := brokenLast.LoadOrStore([2]any{p, len(cfgs)}, true); again && len(cfgs) > 1 && p == tiny {
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
	{check: "terms", what: "a formula of something else", finding: "and the plugin answers",
		broken: provider{terms: func(rows []float64, _ *arch.Description) { rows[1]++ }}},
	{check: "terms", what: "an unknown name", finding: `unknown name "nothing"`,
		broken: provider{describe: func(d *arch.Description) { d.Terms[0].Formula = "nothing" }}},
	{check: "terms", what: "another total", finding: "the total of Terms is",
		broken: provider{terms: func(rows []float64,
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
			if len(cfgs) > 30000 && !brokenCancelled.Load() {
				select {
				case <-ctx.Done():
					brokenCancelled.Store(true)
				case <-time.After(400 * time.Millisecond):
				}
			}
		},
		estimate: func(est []arch.Estimate, _ gemm.Problem, _ []gemm.Config) {
			if brokenCancelled.Load() {
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
				if brokenInside.Add(1) > 1 {
					nudge(&est[0])
				}
				time.Sleep(25 * time.Millisecond) // long enough for another to come, also under the race detector
				brokenInside.Add(-1)
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
}
