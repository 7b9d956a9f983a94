package wire

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/fake"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

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
	if hashConfigs([]gemm.Config{plain}) != sha256.Sum256(want) {
		t.Error("a list without named axes has another hash than it had")
	}
	axes, err := gemm.NewAxes(gemm.AxisValue{Name: "vector", Value: "8"}, gemm.AxisValue{Name: "cluster", Value: "2x1"})
	if err != nil {
		t.Fatal(err)
	}
	named := plain
	named.Axes = axes
	want = append(want, want...)
	want = append(numbers(want, 1<<64-1, 0, 20), "cluster=2x1,vector=8"...)
	if hashConfigs([]gemm.Config{plain, named}) != sha256.Sum256(want) {
		t.Error("a list with named axes has another hash than the protocol says")
	}
}

// What a plugin that hides nothing would say of named axes is refused unless its description declares it.
func TestColumnsOfNamedAxes(t *testing.T) {
	p := connect(t)
	a := p.open(t)
	list, err := a.Candidates(t.Context(), problem, arch.Space{})
	if err != nil {
		t.Fatal(err)
	}
	q := toConfigs(list.Configs)
	if len(q.Axes) != 2 {
		t.Fatalf("%d columns of named axes, want cluster and vector", len(q.Axes))
	}
	back, err := fromAnswered(q, "", a.Describe())
	if err != nil || !slices.Equal(back, list.Configs) {
		t.Errorf("the configurations come back as others: %v", err)
	}
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
		if _, err := fromAnswered(bad, "", a.Describe()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// A host that does not say that it knows named axes sees only the part of a family that has each at its default.
func TestOlderHostsSeeNoNamedAxes(t *testing.T) {
	p := connectTo(t, ArchService(axesProvider{}))
	client := pb.NewArchServiceClient(p.conn)
	request := toOpenRequest(arch.OpenRequest{Arch: "fake"})
	for _, knows := range []bool{true, false} {
		if !knows {
			request.ApiVersions = nil
		}
		opened, err := client.Open(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.Candidates(t.Context(), &pb.CandidatesRequest{
			Handle: opened.Handle, Problem: toProblem(problem), Space: &pb.Space{Kernel: "two"},
		})
		if err != nil {
			t.Fatal(err)
		}
		ranked, err := client.Rank(t.Context(), &pb.RankRequest{
			Handle: opened.Handle, Problems: []*pb.Problem{toProblem(problem)}, Space: &pb.Space{Kernel: "two"},
		})
		if err != nil {
			t.Fatal(err)
		}
		n, axes := len(list.Configs.BlockM), len(list.Configs.Axes)
		if m, named := len(ranked.Rankings[0].Configs.BlockM), len(ranked.Rankings[0].Configs.Axes) > 0; m != n ||
			named != knows {
			t.Errorf("%d of %d candidates are ranked, with named axes: %v", m, n, named)
		}
		if knows && (n != 4 || axes != 2) || !knows && (n != 1 || axes != 0) {
			t.Errorf("a host that knows named axes (%v) sees %d configurations with %d axes", knows, n, axes)
		}
	}
}

// axesProvider opens the fake with the space of its family "two" enumerated as it was asked for.
type axesProvider struct{ fake.Provider }

func (p axesProvider) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	a, err := p.Provider.Open(ctx, r)
	return axesModel{a}, err
}

type axesModel struct{ arch.Architecture }

func (m axesModel) Candidates(_ context.Context, _ gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	one := []int{1}
	configs, err := s.Enumerate(arch.Space{
		Kernel: s.Kernel, BlockM: one, BlockN: one, BlockK: one, NumWarps: one, NumStages: one, SplitK: one,
		Axes: []arch.AxisValues{{Name: "cluster", Values: []string{"1x1", "2x1"}},
			{Name: "vector", Values: []string{"4", "8"}}},
	}, m.Describe().Axes(s.Kernel)...)
	return &arch.Candidates{Configs: configs}, err
}

func (m axesModel) Estimate(_ context.Context, dst []arch.Estimate, _ gemm.Problem, _ []gemm.Config) error {
	for i := range dst {
		dst[i] = arch.Estimate{Cycles: 1}
	}
	return nil
}
