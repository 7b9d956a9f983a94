package wire

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// The conversions of these enums are plain number casts.
func TestEnumsHaveTheNumbersOfCore(t *testing.T) {
	for _, d := range append(gemm.DTypes(), gemm.OutputTypes()...) {
		checkName(t, pb.ElementType(d), "ELEMENT_TYPE_"+d.String())
	}
	for b := arch.BoundCompute; b <= arch.BoundLatency; b++ {
		checkName(t, pb.Bound(b), "BOUND_"+b.String())
	}
	for _, k := range []diag.Kind{diag.Internal, diag.Input, diag.Plugin, diag.Device} {
		checkName(t, toDiagnostic(&diag.Error{Kind: k}).Kind, "KIND_"+k.String())
	}
}

func checkName(t *testing.T, value fmt.Stringer, name string) {
	t.Helper()
	if value.String() != strings.ToUpper(name) {
		t.Errorf("%s stands for %s", value, strings.ToUpper(name))
	}
}

// Every field of a request and a problem survives the way there and back. That every field of the messages is in use is
// checked too, so that a new field cannot be forgotten in either direction. What is JSON has all fields of its type.
func TestRequestsSurvive(t *testing.T) {
	r := arch.OpenRequest{Arch: "a", Device: "d", Model: "m", Kernel: "k", Options: map[string]string{"k": "v"},
		Overrides: map[string]hw.OverrideValue{"p": {Value: 0.1, Unit: "B"}}, Live: &arch.LiveDevice{Name: "GPU",
			Attributes: map[string]float64{"clock": 1.98e9}},
		Rung: arch.RungCompiled, Compiled: []byte("kernels"), Characterization: []byte("times"),
		DeviceFile: []byte("arch: fake")}
	request, err := fromOpenRequest(OpenMessage(r))
	same(t, r, request, err)

	p := gemm.Problem{
		M: 1, N: 2, K: 3, Batch: 4, AMajor: gemm.MajorM, BMajor: gemm.MajorK, DType: gemm.FP8E5M2, Out: gemm.BF16,
		LDA: 5, LDB: 6, LDC: 7, AlignA: 1, AlignB: 2, AlignC: 4, Groups: groupsOf(t, 1, 0),
		Nest: nestOf(t), Alpha: 0.5, Beta: -2, Epilogue: gemm.Epilogue{Bias: true, Activation: gemm.SiLU},
	}
	allSet(t, toProblem(p))
	problem, err := fromProblem(toProblem(p))
	same(t, p, problem, err)
	// The core types with conversions by hand have no more fields than these tests fill.
	for _, v := range []any{r, gemm.Config{}, gemm.Problem{}, arch.Estimate{}, arch.Rejection{}, selector.Result{},
		selector.Entry{}} {
		want, got := fieldsKnown[reflect.TypeOf(v).String()], reflect.TypeOf(v).NumField()
		must.That(t, got == want,
			"%T has %d fields, and the conversions were written for %d: carry the new ones, then adapt the number", v, got, want)
	}
}

var fieldsKnown = map[string]int{
	"arch.OpenRequest": 11, "gemm.Config": 9, "gemm.Problem": 19, "arch.Estimate": 4, "arch.Rejection": 4,
	"selector.Result": 4, "selector.Entry": 4,
}

// allSet checks that each field of a message, and of those inside it, has a value somewhere.
func allSet(t *testing.T, m proto.Message) {
	t.Helper()
	unset := map[protoreflect.FullName]bool{}
	var visit func(protoreflect.Message)
	visit = func(m protoreflect.Message) {
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			if _, seen := unset[f.FullName()]; !seen || m.Has(f) {
				unset[f.FullName()] = !m.Has(f)
			}
			switch {
			case !m.Has(f) || f.Message() == nil || f.IsMap():
			case f.IsList():
				for i := range m.Get(f).List().Len() {
					visit(m.Get(f).List().Get(i).Message())
				}
			default:
				visit(m.Get(f).Message())
			}
		}
	}
	visit(m.ProtoReflect())
	for name, is := range unset {
		must.That(t, !is, "%s is never set", name)
	}
}

func same[T any](t interface{ Errorf(string, ...any) }, want, got T, err error) {
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("sent %+v\ngot  %+v, %v", want, got, err)
	}
}

// Random values come back bit for bit through serialised messages.
func TestRandomValuesSurvive(t *testing.T) {
	a := must.Get(fake.Provider{}.Open(t.Context(), arch.OpenRequest{Arch: "fake"}))(t)
	axes := a.Describe().Axes("two")
	a.Describe().Kernels = []string{"", "triton", "two", "drei"}
	number, size := rapid.Int(), rapid.IntRange(1, gemm.MaxConfigNumber)
	config := rapid.Custom(func(t *rapid.T) gemm.Config {
		c := gemm.Config{
			BlockM: size.Draw(t, "bm"), BlockN: size.Draw(t, "bn"), BlockK: size.Draw(t, "bk"), GroupM: size.Draw(t, "group"),
			NumWarps: size.Draw(t, "warps"), NumStages: size.Draw(t, "stages"), SplitK: size.Draw(t, "split"),
			Kernel: rapid.SampledFrom(a.Describe().Kernels).Draw(t, "kernel"),
		}
		if c.Kernel == "two" {
			for i, values := range [][]string{axes[0].Values, {"4", "8", "16"}} {
				if err := axes[i].Set(&c, rapid.SampledFrom(values).Draw(t, "value")); err != nil {
					t.Fatal(err)
				}
			}
		}
		return c
	})
	reason := rapid.SampledFrom([]arch.Reason{arch.ReasonWarps, arch.ReasonRegisters, "own"})
	total := rapid.Custom(func(t *rapid.T) unit.Cycles {
		return unit.Cycles(rapid.Float64Range(leastNumber, mostNumber).Draw(t, "cycles"))
	})
	bound := rapid.Map(rapid.IntRange(0, int(arch.BoundLatency)), func(b int) arch.Bound { return arch.Bound(b) })
	estimate := rapid.Custom(func(t *rapid.T) arch.Estimate {
		if rapid.Bool().Draw(t, "rejected") {
			return arch.Estimate{Reject: reason.Draw(t, "reason")}
		}
		return arch.Estimate{Cycles: total.Draw(t, "total"), Bound: bound.Draw(t, "bound"),
			Spread: rapid.SampledFrom([]float32{0, 0.04, 0.1}).Draw(t, "spread")}
	})
	rapid.Check(t, func(t *rapid.T) {
		p := gemm.Problem{M: number.Draw(t, "m"), N: number.Draw(t, "n"), K: number.Draw(t, "k"), Batch: number.Draw(t,
			"batch")}
		p.DType = rapid.SampledFrom(append(gemm.DTypes(), 0)).Draw(t, "dtype")
		p.Out = rapid.SampledFrom(append(gemm.OutputTypes(), 0)).Draw(t, "out")
		p.LDA, p.LDB, p.LDC = number.Draw(t, "lda"), number.Draw(t, "ldb"), number.Draw(t, "ldc")
		for _, align := range []*uint8{&p.AlignA, &p.AlignB, &p.AlignC} {
			*align = rapid.Uint8().Draw(t, "align")
		}
		p.AMajor = rapid.SampledFrom([]gemm.Major{0, gemm.MajorK, gemm.MajorM}).Draw(t, "a")
		p.BMajor = rapid.SampledFrom([]gemm.Major{0, gemm.MajorK, gemm.MajorN}).Draw(t, "b")
		problem, err := fromProblem(sent(t, toProblem(p)))
		same(t, p, problem, err)

		c := &arch.Candidates{Configs: rapid.SliceOfN(config, 1, 20).Draw(t, "configs")}
		for i := range rapid.IntRange(0, 5).Draw(t, "rejections") {
			c.Rejected = append(c.Rejected, arch.Rejection{Config: config.Draw(t, "config"), Position: 3 * i,
				Reason: reason.Draw(t, "reason"), Detail: rapid.String().Draw(t, "detail")})
		}
		if n := len(c.Rejected); n > 0 && c.Rejected[n-1].Position >= n+len(c.Configs) {
			c.Rejected = nil
		}
		candidates, err := fromCandidates(sent(t, toCandidates(c)), "", a.Describe())
		same(t, c, candidates, err)

		est := rapid.SliceOfN(estimate, 0, 30).Draw(t, "estimates")
		back := make([]arch.Estimate, len(est))
		same(t, est, back, errors.Join(fromEstimates(back, sent(t, toEstimates(est))), copyErr(est, back)))

		r := selector.Result{}
		for range rapid.IntRange(1, 10).Draw(t, "entries") {
			e := selector.Entry{Index: rapid.IntRange(0, 1<<40).Draw(t, "index"), Config: config.Draw(t, "config")}
			e.Estimate = arch.Estimate{Cycles: total.Draw(t, "total"), Bound: bound.Draw(t, "bound")}
			e.Mapping = arch.Mapping{GroupM: e.Config.GroupM, XCDs: size.Draw(t, "xcds"), Chunk: size.Draw(t, "chunk")}
			r.Entries = append(r.Entries, e)
		}
		r.Feasible = len(r.Entries)
		r.Rejected = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) selector.ReasonCount {
			return selector.ReasonCount{Reason: reason.Draw(t, "reason"), Count: rapid.IntRange(1, 1000).Draw(t, "count")}
		}), 1, 3).Draw(t, "rejected")
		ranking, err := fromRanking(sent(t, toRanking(&r)), 0, "", a.Describe())
		same(t, r, ranking, err)

		d := &diag.Error{
			Kind: diag.Kind(rapid.IntRange(0, 3).Draw(t, "kind")), What: rapid.String().Draw(t, "what"),
			Where: rapid.String().Draw(t, "where"), Fix: rapid.String().Draw(t, "fix"),
			Code: diag.Code(rapid.String().Draw(t, "code")), Subject: rapid.String().Draw(t, "subject"),
		}
		same(t, d, fromDiagnostic(sent(t, toDiagnostic(d))), nil)
	})
}

// copyErr reports estimates whose totals differ in bits, which DeepEqual would not see for zeros of either sign.
func copyErr(want, got []arch.Estimate) error {
	for i := range want {
		if math.Float64bits(float64(want[i].Cycles)) != math.Float64bits(float64(got[i].Cycles)) {
			return fmt.Errorf("total %d has other bits", i)
		}
	}
	return nil
}

// sent returns a message as it arrives.
func sent[M proto.Message](t *rapid.T, m M) M {
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out.(M)
}
