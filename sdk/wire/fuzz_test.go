package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/example"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// message is one kind of message in the eyes of who receives it.
type message struct {
	name string
	seed proto.Message
	// read unmarshals and converts, and returns what is to be sent if it is passed on; nil if it was refused. An error is
	// a value that should have been refused.
	read func([]byte) (proto.Message, error)
	// goesOn says that there is a way back.
	goesOn bool
}

// of makes a message of a conversion, what it must guarantee, and the way back, which may be nil.
func of[M proto.Message, T any](seed M, from func(M) (T, error), sound func(T) error, to func(T) M) message {
	return message{string(seed.ProtoReflect().Descriptor().Name()), seed, func(data []byte) (proto.Message, error) {
		q := seed.ProtoReflect().New().Interface().(M)
		var v T
		refused := proto.Unmarshal(data, q)
		if refused == nil {
			v, refused = from(q)
		}
		var unsound error
		if refused == nil && sound != nil {
			unsound = sound(v)
		}
		if refused != nil || unsound != nil || to == nil {
			return nil, unsound
		}
		return to(v), nil
	}, to != nil}
}

// ofJSON makes a message of a value that travels as JSON, and what is checked where it arrives, which may be nil.
// TestEveryLeafIsChecked says what it guarantees.
func ofJSON[T any](v T, check func(*T) error) message {
	if check == nil {
		check = func(*T) error { return nil }
	}
	return of(toJSON(&v), fromJSON(check), nil, func(v T) *pb.Json { return toJSON(&v) })
}

func areFinite(values ...float64) error {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%v passed", v)
		}
	}
	return nil
}

func arePositive(values ...float64) error {
	for _, v := range values {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("%v passed", v)
		}
	}
	return nil
}

func messages(f testing.TB) []message {
	ctx := f.Context()
	a := must.Get(fake.Provider{}.Open(ctx, arch.OpenRequest{Arch: "fake"}))(f)
	p := gemm.New(1000, 2000, 3000)
	p.Out, p.LDA, p.AlignC = gemm.FP32, 3008, 4
	list := must.Get(a.Candidates(ctx, p, arch.Space{}))(f)
	must.Do(f, a.Describe().Families[0].Axes[0].Set(&list.Configs[1], "2x1"))
	list.Configs[1].Kernel = "two"
	few := &arch.Candidates{Configs: list.Configs[:2], Rejected: []arch.Rejection{{Config: list.Configs[2], Position: 1,
		Reason: arch.ReasonWarps, Detail: "why"}}}
	estimates := []arch.Estimate{{Cycles: 7, Bound: arch.BoundL2}, {Reject: arch.ReasonRegisters}}
	result := selector.Result{Feasible: 2, Rejected: []selector.ReasonCount{{Reason: arch.ReasonWarps, Count: 3}}}
	for i := range 2 {
		result.Entries = append(result.Entries, selector.Entry{Index: i, Config: few.Configs[i],
			Estimate: arch.Estimate{Cycles: 5}, Mapping: arch.Mapping{XCDs: 8, Chunk: 2}})
	}
	x, _ := fake.ExecutorProvider{}.Open(ctx)
	devices, _ := x.Devices(ctx)
	environment, _ := x.Environment(ctx, 0)
	plan, _ := fake.Provider{}.Calibration(ctx, exec.Device{Name: "GPU", Attributes: map[string]float64{"units": 1}})
	rungs, _ := fake.Provider{}.Ladder(ctx)
	value := calibrate.Value{Value: 1, Unit: "s", Spread: 0.01, Clock: 1e9, Rounds: 3, Time: time.Unix(1, 0).UTC()}
	found, atoms, _ := plan.Numbers(ctx, calibrate.Values{"one": value})

	return []message{
		of(toProblem(p), fromProblem, nil, toProblem),
		of(toConfigs(few.Configs), fromConfigs, nil, toConfigs),
		ofJSON(arch.Space{Kernel: "k", BlockM: []int{16, 32}, Axes: []arch.AxisValues{{Name: "x", Values: []string{"1"}}}},
			nil),
		of(toCandidates(few), func(q *pb.CandidatesResponse) (*arch.Candidates, error) {
			return fromCandidates(q, "", a.Describe())
		}, func(c *arch.Candidates) error {
			for _, config := range c.Configs {
				if err := config.Validate(a.Describe().Axes(config.Kernel)...); err != nil {
					return err
				}
			}
			for _, r := range c.Rejected {
				if r.Reason == "" || r.Position < 0 || r.Position >= len(c.Rejected)+len(c.Configs) {
					return fmt.Errorf("%+v passed", r)
				}
			}
			return nil
		}, toCandidates),
		of(toEstimates(estimates), func(q *pb.EstimateResponse) ([]arch.Estimate, error) {
			dst := make([]arch.Estimate, len(estimates))
			return dst, fromEstimates(dst, q)
		}, func(est []arch.Estimate) error {
			for _, e := range est {
				if e.Reject == "" {
					if err := arePositive(float64(e.Cycles)); err != nil {
						return err
					}
				}
			}
			return nil
		}, toEstimates),
		of(toRanking(&result), func(q *pb.Ranking) (selector.Result, error) { return fromRanking(q, 2, "", a.Describe()) },
			func(r selector.Result) error {
				for _, e := range r.Entries {
					if err := errors.Join(arePositive(float64(e.Estimate.Cycles)),
						e.Config.Validate(a.Describe().Axes(e.Config.Kernel)...)); err != nil || min(e.Index, e.Mapping.XCDs,
						e.Mapping.Chunk) < 0 {
						return fmt.Errorf("%+v passed, %w", e, err)
					}
				}
				if r.Err == nil && len(r.Entries) == 0 || len(r.Entries) > 2 {
					return fmt.Errorf("%d entries passed, %w", len(r.Entries), r.Err)
				}
				return nil
			}, func(r selector.Result) *pb.Ranking { return toRanking(&r) }),
		of(&pb.MappingResponse{GroupM: 4, Xcds: 8, Chunk: 2}, fromMapping, func(m arch.Mapping) error {
			if min(m.GroupM, m.XCDs, m.Chunk) < 0 {
				return fmt.Errorf("%+v passed", m)
			}
			return nil
		}, nil),
		ofJSON(opening{*a.Describe(), a.Hierarchy().Levels()}, (*opening).check),
		ofJSON(fake.Provider{}.Manifest(), checkManifest),
		of(OpenMessage(arch.OpenRequest{
			Arch: "a", Device: "d", Options: map[string]string{"k": "v"},
			Overrides: map[string]hw.OverrideValue{"p": {Value: 0.1, Unit: "B"}},
			Live: &arch.LiveDevice{Name: "GPU",
				Attributes: map[string]float64{"clock": 1e9}}, Rung: arch.RungCompiled, Compiled: []byte("kernels"),
		}), fromOpenRequest, nil, OpenMessage),
		ofJSON(Info{Name: "n", Version: "1", Failing: "why"}, nil),
		of(toDiagnostic(fmt.Errorf("why")), func(q *pb.Diagnostic) (error, error) { return fromDiagnostic(q), nil }, nil,
			toDiagnostic),
		ofJSON(exec.Manifest{Name: "x", Version: "1"}, nil),
		ofJSON(devices, nil),
		ofJSON(environment, nil),
		ofJSON(exec.Resources{Registers: 128, SpillBytes: 8, SharedMemory: 1024, CTAsPerSM: 2}, nil),
		ofJSON(exec.Numerics{MaxError: math.Inf(1), Checked: 5}, nil),
		ofJSON(exec.Numerics{MaxError: 1e-3, Tolerance: 0.01, Checked: 5, Wrong: 2, OutOfBounds: 1}, nil),
		ofJSON([]exec.Sample{{Time: 1e-5}, {Time: 2e-5, Clock: 1e9}, {Time: 3e-5}}, several[exec.Sample](3)),
		ofJSON([]exec.Reading{{Sample: exec.Sample{Time: 1e-5, Clock: 1e9}, Counters: []uint64{1, 2}}}, nil),
		ofJSON(compiled{7, exec.Resources{Registers: 128}}, (*compiled).check),
		ofJSON(compileQuestion{1, p, few.Configs[1]}, nil),
		ofJSON(measureQuestion{7, exec.MeasureOptions{WarmL2: true, Input: "normal", Warmup: 2}, 3}, nil),
		ofJSON(runQuestion{1, program, 3}, nil),
		of(toTimes([][]unit.Seconds{{1, 0}, {2, 3}}, 2), func(q *pb.EstimateWithResponse) ([][]unit.Seconds, error) {
			return fromTimes(q, 2, 2)
		}, func(rows [][]unit.Seconds) error {
			return areFinite(float64(rows[0][0]), float64(rows[0][1]), float64(rows[1][0]), float64(rows[1][1]))
		}, func(rows [][]unit.Seconds) *pb.EstimateWithResponse { return toTimes(rows, 2) }),
		ofJSON(plan.Probes, checkProbes),
		ofJSON(measured{Device: devices[0], Values: calibrate.Values{"one": value}}, (*measured).check),
		ofJSON(numbers{found, atoms}, nil),
		ofJSON(*rungs, nil),
	}
}

// Whatever arrives as a message is refused or sound, and what passes is the same again when it is sent on.
func FuzzMessages(f *testing.F) {
	all := messages(f)
	for kind, m := range all {
		data := must.Get(proto.Marshal(m.seed))(f)
		if out, err := m.read(data); err != nil || (out != nil) != m.goesOn || m.goesOn && !proto.Equal(out, m.seed) {
			f.Fatalf("the seed of %s: %v, %v", m.name, out, err)
		}
		f.Add(uint8(kind), data)
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		m := all[int(kind)%len(all)]
		first, err := m.read(data)
		must.Need(t, err == nil, "%s: %v", m.name, err)
		if first == nil {
			return
		}
		sent, err := proto.MarshalOptions{Deterministic: true}.Marshal(first)
		must.Need(t, err == nil, "%s: what was read cannot be sent: %v", m.name, err)
		second, err := m.read(sent)
		must.Need(t, err == nil && second != nil, "%s: %v was read, sent and refused: %v", m.name, first, err)
		again, err := (proto.MarshalOptions{Deterministic: true}).Marshal(second)
		must.Need(t, err == nil &&
			bytes.Equal(sent, again), "%s: %v becomes %v, %v", m.name, first, second, err)
	})
}

// Whatever a host sends, a plugin answers or refuses; it does not end. The requests are those of the calls about an
// open architecture.
func FuzzServer(f *testing.F) {
	ctx := f.Context()
	provider := must.Get(example.Provider())(f)
	s := &archServer{provider: provider}
	opened := must.Get(s.Open(ctx, OpenMessage(arch.OpenRequest{Arch: "example"})))(f)
	p := toProblem(gemm.New(64, 64, 64))
	configs := []gemm.Config{{BlockM: 64, BlockN: 64, BlockK: 32, NumWarps: 1, NumStages: 1, SplitK: 1, Kernel: "tiled"}}
	hash := hashConfigs(configs)
	set := &pb.ConfigSet{Sha256: hash[:], Configs: toConfigs(configs)}
	seeds := []proto.Message{
		OpenMessage(arch.OpenRequest{Arch: "example"}), &pb.CandidatesRequest{Problem: p,
			SpaceJson: SpaceJSON(arch.Space{BlockM: []int{64}})}, &pb.EstimateRequest{Problem: p, Configs: set},
		&pb.TermsRequest{Problem: p, Configs: set}, &pb.MappingRequest{Problem: p, Config: toConfigs(configs)},
		&pb.RankRequest{Problems: []*pb.Problem{p, {}}, Top: 2, Map: 1, SpaceJson: []byte("{}")},
		&pb.EstimateWithRequest{Problems: []*pb.Problem{p}, Counts: []int64{1}, Configs: set, Sets: 1},
		toJSON(&exec.Device{Name: "GPU", Arch: "fake"}), toJSON(&measured{Device: exec.Device{Name: "GPU", Arch: "fake"}}),
	}
	for kind, seed := range seeds {
		data := must.Get(proto.Marshal(seed))(f)
		f.Add(uint8(kind), data)
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		req := seeds[int(kind)%len(seeds)].ProtoReflect().New().Interface()
		if len(data) > 1<<10 || proto.Unmarshal(data, req) != nil { // the product of long axes takes long, as it should
			return
		}
		answer, err := serve(ctx, s, opened.Handle, req)
		if err != nil {
			must.Need(t, Answered(err) || status.Code(err) == codes.Unimplemented, "%T %v: %v has no detail", req, req, err)
			return
		}
		_, err = proto.Marshal(answer)
		must.Need(t, err == nil, "%T %v: %v", req, req, err)
	})
}

// serve makes the call that a request is for, about an open architecture.
func serve(ctx context.Context, s *archServer, handle []byte, req proto.Message) (answer proto.Message, err error) {
	switch q := req.(type) {
	case *pb.OpenRequest:
		return s.Open(ctx, q)
	case *pb.CandidatesRequest:
		q.Handle = handle
		return s.Candidates(ctx, q)
	case *pb.EstimateRequest:
		q.Handle = handle
		return s.Estimate(ctx, q)
	case *pb.TermsRequest:
		q.Handle = handle
		return s.Terms(ctx, q)
	case *pb.MappingRequest:
		q.Handle = handle
		return s.Mapping(ctx, q)
	case *pb.RankRequest:
		q.Handle = handle
		return s.Rank(ctx, q)
	case *pb.EstimateWithRequest:
		q.Handle = handle
		return s.EstimateWith(ctx, q)
	case *pb.Json:
		if answer, err = s.Calibration(ctx, q); err != nil {
			answer, err = s.CalibrationNumbers(ctx, q)
		}
	}
	return answer, err
}

// Whatever a program prints as its description, it is understood or refused, and a name is there whenever it passes.
func FuzzDescribe(f *testing.F) {
	for _, s := range []string{
		`{"info":{"name":"n","version":"1"},"protocols":[2],` +
			`"manifest":{"name":"n","archs":[{"id":"a","models":["m"],"kernels":["k"],"devices":[{"id":"d"}]}]}}`,
		`{"info":{"name":"n"},"protocols":[3],"executor":{"name":"n"},"unknown":{}}`,
		``, `null`, `{}`, `[]`, `{"info":{"failing":7}}`, `{"info":{"name":"n","failing":"why"},"protocols":[2]}`,
		`{"protocols":[99999999999]}`, "{\"info\":{\"name\":\"\xff\"}}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := ParseDescribe(text)
		if err == nil && slices.Equal(d.Protocols, []int{ProtocolVersion}) && (d.Info.Name == "" || d.Manifest == nil &&
			d.Executor == nil || d.Manifest != nil && d.Manifest.Name == "") {
			t.Errorf("%s passes as %+v", text, d)
		}
	})
}
