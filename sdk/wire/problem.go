package wire

import (
	"fmt"

	"github.com/origami-gemm/origami/core/gemm"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func toProblem(p gemm.Problem) *pb.Problem {
	q := &pb.Problem{
		M: int64(p.M), N: int64(p.N), K: int64(p.K), Batch: int64(p.Batch),
		AMajor: toMajor(p.AMajor), BMajor: toMajor(p.BMajor),
	}
	if p.DType <= gemm.INT8 {
		q.ElementType = pb.ElementType(p.DType)
	}
	return q
}

// fromProblem keeps unspecified values as zero: what a problem must have is the model's to say.
func fromProblem(q *pb.Problem) (gemm.Problem, error) {
	p := gemm.Problem{M: int(q.GetM()), N: int(q.GetN()), K: int(q.GetK()), Batch: int(q.GetBatch())}
	var err error
	if p.AMajor, err = fromMajor(q.GetAMajor()); err != nil {
		return p, fmt.Errorf("a_major: %w", err)
	}
	if p.BMajor, err = fromMajor(q.GetBMajor()); err != nil {
		return p, fmt.Errorf("b_major: %w", err)
	}
	p.DType, err = fromElementType(q.GetElementType())
	return p, err
}

var majors = [...]gemm.Major{pb.Major_MAJOR_K: gemm.MajorK, pb.Major_MAJOR_M: gemm.MajorM,
	pb.Major_MAJOR_N: gemm.MajorN}

func toMajor(m gemm.Major) pb.Major {
	for i, major := range majors {
		if m == major {
			return pb.Major(i)
		}
	}
	return pb.Major_MAJOR_UNSPECIFIED
}

func fromMajor(m pb.Major) (gemm.Major, error) {
	if m < 0 || int(m) >= len(majors) {
		return 0, fmt.Errorf("unknown major %d", m)
	}
	return majors[m], nil
}

func fromElementType(t pb.ElementType) (gemm.DType, error) {
	if t < 0 || t > pb.ElementType(gemm.INT8) {
		return 0, fmt.Errorf("unknown element type %d", t)
	}
	return gemm.DType(t), nil
}
