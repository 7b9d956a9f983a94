package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
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

// Of several faults in a message, the same one is said every time.
func TestFaultThatIsSaid(t *testing.T) {
	for range 20 {
		bad := calibrate.Value{Value: -1}
		m := measured{Values: calibrate.Values{"d": bad, "c": bad, "b": bad, "a": bad}}
		err := m.check()
		must.Need(t, err != nil && err.Error() == "a: it is -1", "%v", err)
	}
}

// unclosable is a kernel that cannot be closed.
type unclosable struct {
	exec.Kernel
	why string
}

func (k unclosable) Close() error { return errors.New(k.why) }

// What goes wrong when kernels are closed is said in the order in which they were compiled.
func TestOrderOfClosing(t *testing.T) {
	for range 20 {
		s := &executorServer{kernels: map[uint64]*held{}}
		for i, why := range []string{"one", "two", "three", "four"} {
			s.kernels[uint64(i)] = &held{kernel: unclosable{why: why}}
		}
		err := s.close()
		must.Need(t, err != nil && err.Error() == "one\ntwo\nthree\nfour", "%v", err)
	}
}

func groupsOf(t *testing.T, rows ...int) gemm.Groups {
	t.Helper()
	g := must.Get(gemm.NewGroups(rows...))(t)
	return g
}

func nestOf(t *testing.T) gemm.Nest {
	t.Helper()
	n := must.Get(gemm.ParseNest("m4096:1:0:1,k4096:4096:1:0"))(t)
	return n
}

// Groups arrive as they were, and too many do not arrive.
func TestGroupsArrive(t *testing.T) {
	p := gemm.New(1, 8, 8)
	p.SetGroups(groupsOf(t, 120, 33, 0, 512))
	q := toProblem(p)
	if got, err := fromProblem(q); err != nil || got != p {
		t.Errorf("%s arrives as %s, %v", p, got, err)
	}
	for _, rows := range [][]int64{make([]int64, gemm.MaxGroups+1), {1, -1}, {1 << 62, 1 << 62, 1 << 62}} {
		q.Groups = rows
		got, err := fromProblem(q)
		must.That(t, err != nil, "%d groups arrive as %s", len(rows), got)
	}
}

// A value that does not fit is not turned into one that does.
func TestImpossibleStorageArrives(t *testing.T) {
	for _, bytes := range []uint32{257, 256, 1<<32 - 1} {
		p, err := fromProblem(&pb.Problem{M: 8, N: 8, K: 8, Batch: 1, AMajor: pb.Major_MAJOR_K, BMajor: pb.Major_MAJOR_N,
			ElementType: pb.ElementType_ELEMENT_TYPE_FP16, AlignA: bytes})
		must.That(t, err == nil && p.Validate() != nil, "an alignment of %d arrives as %d, %v", bytes, p.AlignA, err)
	}
	p := gemm.New(8, 8, 8)
	p.Out = 99
	if got, err := fromProblem(toProblem(p)); err == nil && got.Validate() == nil {
		t.Errorf("an unknown output type arrives as %s", got.Output())
	}
}

// The hash that names a list is what gemm.proto says: plugins of every version compute it themselves.
func TestHashOfAList(t *testing.T) {
	plain := gemm.Config{BlockM: 1, BlockN: 2, BlockK: 3, GroupM: 4, NumWarps: 5, NumStages: 6, SplitK: 7, Kernel: "two"}
	numbers := func(b []byte, v ...uint64) []byte {
		for _, n := range v {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return b
	}
	want := append(numbers(nil, 1, 2, 3, 4, 5, 6, 7, 3), "two"...)
	must.That(t, hashConfigs([]gemm.Config{plain}) == sha256.Sum256(want),
		"a list without named axes has another hash than it had")
	axes, err := gemm.NewAxes(gemm.AxisValue{Name: "vector", Value: "8"}, gemm.AxisValue{Name: "cluster", Value: "2x1"})
	must.Do(t, err)
	named := plain
	named.Axes = axes
	want = append(want, want...)
	want = append(numbers(want, 1<<64-1, 0, 20), "cluster=2x1,vector=8"...)
	must.That(t, hashConfigs([]gemm.Config{plain, named}) == sha256.Sum256(want),
		"a list with named axes has another hash than the protocol says")
}

// What a plugin that hides nothing would say of named axes is refused unless its description declares it.
func TestColumnsOfNamedAxes(t *testing.T) {
	p := connect(t)
	a := p.open(t)
	list := must.Get(a.Candidates(t.Context(), problem, arch.Space{}))(t)
	q := toConfigs(list.Configs)
	must.Need(t, len(q.Axes) == 2, "%d columns of named axes, want cluster and vector", len(q.Axes))
	back, err := fromAnswered(q, "", a.Describe())
	must.That(t, err == nil && slices.Equal(back, list.Configs), "the configurations come back as others: %v", err)
	for says, spoil := range map[string]func(*pb.AxisColumn){
		"values on the axis":     func(c *pb.AxisColumn) { c.Index = c.Index[1:] },
		"index 4 of 2 values on": func(c *pb.AxisColumn) { c.Index[0] = 4 },
		"is no name of an axis":  func(c *pb.AxisColumn) { c.Name = "Cluster" },
		`has no axis "colour"`:   func(c *pb.AxisColumn) { c.Name = "colour" },
		`has no value "9x9"`:     func(c *pb.AxisColumn) { c.Values[0] = "9x9" },
		"is the default of":      func(c *pb.AxisColumn) { c.Values[0] = "1x1" },
	} {
		bad := proto.CloneOf(q)
		spoil(bad.Axes[slices.IndexFunc(bad.Axes, func(c *pb.AxisColumn) bool { return c.Name == "cluster" })])
		_, err := fromAnswered(bad, "", a.Describe())
		must.That(t, err != nil && strings.Contains(err.Error(), says), "%v, want %q", err, says)
	}
}
