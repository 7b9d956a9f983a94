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
			*columns[i] = ints[int64](*values)
		}
	}
	for _, axis := range s.Axes {
		q.Axes = append(q.Axes, &pb.AxisValues{Name: valid(axis.Name), Values: all(axis.Values, valid)})
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
			*values = ints[int](*columns[i])
		}
	}
	for _, axis := range q.Axes {
		s.Axes = append(s.Axes, arch.AxisValues{Name: axis.GetName(), Values: axis.GetValues()})
	}
	return s
}

// ints converts numbers between core and messages.
func ints[T, V int | int64](list []V) []T { return each(list, func(v *V) T { return T(*v) }) }
