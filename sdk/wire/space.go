package wire

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// spaceColumns are the values of a space by field, as arch.Space.Numbers has them.
func spaceColumns(q *pb.Space) [gemm.NumFields]*[]int64 {
	return [...]*[]int64{&q.BlockM, &q.BlockN, &q.BlockK, nil, &q.NumWarps, &q.NumStages, &q.SplitK}
}

func toSpace(s arch.Space) *pb.Space {
	q := &pb.Space{Kernel: valid(s.Kernel)}
	columns := spaceColumns(q)
	for i, values := range s.Numbers() {
		if values != nil {
			*columns[i] = toInts(*values)
		}
	}
	for _, axis := range s.Axes {
		values := make([]string, len(axis.Values))
		for i, v := range axis.Values {
			values[i] = valid(v)
		}
		q.Axes = append(q.Axes, &pb.AxisValues{Name: valid(axis.Name), Values: values})
	}
	return q
}

func fromSpace(q *pb.Space) arch.Space {
	if q == nil {
		return arch.Space{}
	}
	s := arch.Space{Kernel: q.Kernel}
	columns := spaceColumns(q)
	for i, values := range s.Numbers() {
		if values != nil {
			*values = fromInts(*columns[i])
		}
	}
	for _, axis := range q.Axes {
		s.Axes = append(s.Axes, arch.AxisValues{Name: axis.GetName(), Values: axis.GetValues()})
	}
	return s
}

func toInts(v []int) []int64 {
	if len(v) == 0 {
		return nil
	}
	out := make([]int64, len(v))
	for i := range v {
		out[i] = int64(v[i])
	}
	return out
}

func fromInts(v []int64) []int {
	if len(v) == 0 {
		return nil
	}
	out := make([]int, len(v))
	for i := range v {
		out[i] = int(v[i])
	}
	return out
}
