package wire

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// Every request that carries a problem needs API 1.3.0 as soon as an older plugin would overlook a part of the problem.
func TestProblemsThatOlderPluginsWouldOverlook(t *testing.T) {
	changes := map[string]func(*gemm.Problem){
		"out": func(p *gemm.Problem) { p.Out = gemm.FP32 },
		"lda": func(p *gemm.Problem) { p.LDA = 4160 }, "ldb": func(p *gemm.Problem) { p.LDB = 4160 },
		"ldc":     func(p *gemm.Problem) { p.LDC = 4160 },
		"align_a": func(p *gemm.Problem) { p.AlignA = 2 }, "align_b": func(p *gemm.Problem) { p.AlignB = 2 },
		"align_c": func(p *gemm.Problem) { p.AlignC = 2 }, "e5m2": func(p *gemm.Problem) { p.DType = gemm.FP8E5M2 },
		"groups":   func(p *gemm.Problem) { p.SetGroups(groupsOf(t, 4000, 96)) },
		"nest":     func(p *gemm.Problem) { p.Nest = nestOf(t) },
		"alpha":    func(p *gemm.Problem) { p.Alpha = 2 },
		"beta":     func(p *gemm.Problem) { p.Beta = 1 },
		"epilogue": func(p *gemm.Problem) { p.Epilogue.Activation = gemm.ReLU },
		"none":     func(*gemm.Problem) {},
	}
	for name, change := range changes {
		p := gemm.New(4096, 4096, 4096)
		change(&p)
		q := toProblem(p)
		for _, request := range []proto.Message{
			&pb.CandidatesRequest{Problem: q}, &pb.EstimateRequest{Problem: q}, &pb.TermsRequest{Problem: q},
			&pb.MappingRequest{Problem: q}, &pb.CompileRequest{Problem: q},
			&pb.RankRequest{Problems: []*pb.Problem{toProblem(gemm.New(1, 1, 1)), q}},
		} {
			want := API13
			if name == "none" {
				want = ""
			}
			if got, _ := Requires(request); got != want {
				t.Errorf("%T with another %s requires API %q, want %q", request, name, got, want)
			}
		}
	}
}

func groupsOf(t *testing.T, rows ...int) gemm.Groups {
	t.Helper()
	g, err := gemm.NewGroups(rows...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func nestOf(t *testing.T) gemm.Nest {
	t.Helper()
	n, err := gemm.ParseNest("m4096:1:0:1,k4096:4096:1:0")
	if err != nil {
		t.Fatal(err)
	}
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
		if got, err := fromProblem(q); err == nil {
			t.Errorf("%d groups arrive as %s", len(rows), got)
		}
	}
}

// A value that does not fit is not turned into one that does.
func TestImpossibleStorageArrives(t *testing.T) {
	for _, bytes := range []uint32{257, 256, 1<<32 - 1} {
		p, err := fromProblem(&pb.Problem{M: 8, N: 8, K: 8, Batch: 1, AMajor: pb.Major_MAJOR_K, BMajor: pb.Major_MAJOR_N,
			ElementType: pb.ElementType_ELEMENT_TYPE_FP16, AlignA: bytes})
		if err != nil || p.Validate() == nil {
			t.Errorf("an alignment of %d arrives as %d, %v", bytes, p.AlignA, err)
		}
	}
	p := gemm.New(8, 8, 8)
	p.Out = 99
	if got, err := fromProblem(toProblem(p)); err == nil && got.Validate() == nil {
		t.Errorf("an unknown output type arrives as %s", got.Output())
	}
}

// A host of an API before 1.3.0 would refuse a description with element types that it does not know.
func TestOlderHostsSeeNoNewTypes(t *testing.T) {
	d := toDescription(&arch.Description{
		Peak:  []arch.PeakRate{{DType: gemm.FP16, Rate: 1}, {DType: gemm.FP8E5M2, Rate: 2}},
		Atoms: []arch.Atom{{DType: gemm.FP8E5M2}, {DType: gemm.INT8}},
	})
	beforeAPI13(d)
	if len(d.Peaks) != 1 || d.Peaks[0].ElementType != 1 || len(d.Atoms) != 1 || d.Atoms[0].ElementType != 6 {
		t.Errorf("got %v", d)
	}
}
