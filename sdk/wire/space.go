package wire

import (
	"github.com/origami-gemm/origami/core/arch"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func toSpace(s arch.Space) *pb.Space {
	return &pb.Space{
		Kernel: valid(s.Kernel),
		BlockM: toInts(s.BlockM), BlockN: toInts(s.BlockN), BlockK: toInts(s.BlockK),
		NumWarps: toInts(s.NumWarps), NumStages: toInts(s.NumStages), SplitK: toInts(s.SplitK),
	}
}

func fromSpace(q *pb.Space) arch.Space {
	return arch.Space{
		Kernel: q.GetKernel(),
		BlockM: fromInts(q.GetBlockM()), BlockN: fromInts(q.GetBlockN()), BlockK: fromInts(q.GetBlockK()),
		NumWarps: fromInts(q.GetNumWarps()), NumStages: fromInts(q.GetNumStages()), SplitK: fromInts(q.GetSplitK()),
	}
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
