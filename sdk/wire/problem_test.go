package wire

import (
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

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
