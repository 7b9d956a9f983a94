package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
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
