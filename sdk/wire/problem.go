package wire

import (
	"fmt"
	"math"

	"github.com/origami-gemm/origami/core/gemm"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// ProblemMessage returns the message of a problem, for a caller that speaks the protocol itself.
func ProblemMessage(p gemm.Problem) *pb.Problem { return toProblem(p) }

func toProblem(p gemm.Problem) *pb.Problem {
	q := &pb.Problem{
		M: int64(p.M), N: int64(p.N), K: int64(p.K), Batch: int64(p.Batch),
		AMajor: toMajor(p.AMajor), BMajor: toMajor(p.BMajor),
		OutputType: pb.ElementType(p.Out), // unspecified is the default, so an unknown type must not become that
		Lda:        int64(p.LDA), Ldb: int64(p.LDB), Ldc: int64(p.LDC),
		AlignA: uint32(p.AlignA), AlignB: uint32(p.AlignB), AlignC: uint32(p.AlignC),
		Nest: p.Nest.String(), Alpha: p.Alpha, Beta: p.Beta, Epilogue: p.Epilogue.String(),
	}
	if p.DType.Known() {
		q.ElementType = pb.ElementType(p.DType)
	}
	for rows := range p.Groups.All() {
		q.Groups = append(q.Groups, int64(rows))
	}
	return q
}

// fromProblem keeps unspecified values as zero: what a problem must have is the model's to say.
func fromProblem(q *pb.Problem) (gemm.Problem, error) {
	p := gemm.Problem{
		M: int(q.GetM()), N: int(q.GetN()), K: int(q.GetK()), Batch: int(q.GetBatch()),
		LDA: int(q.GetLda()), LDB: int(q.GetLdb()), LDC: int(q.GetLdc()),
		AlignA: alignment(q.GetAlignA()), AlignB: alignment(q.GetAlignB()), AlignC: alignment(q.GetAlignC()),
		Alpha: q.GetAlpha(), Beta: q.GetBeta(),
	}
	var err error
	if p.AMajor, err = fromMajor(q.GetAMajor()); err != nil {
		return p, fmt.Errorf("a_major: %w", err)
	}
	if p.BMajor, err = fromMajor(q.GetBMajor()); err != nil {
		return p, fmt.Errorf("b_major: %w", err)
	}
	if p.Out, err = fromElementType(q.GetOutputType()); err != nil {
		return p, fmt.Errorf("output type: %w", err)
	}
	if p.DType, err = fromElementType(q.GetElementType()); err != nil {
		return p, err
	}
	if p.Nest, err = gemm.ParseNest(q.GetNest()); err != nil {
		return p, fmt.Errorf("nest: %w", err)
	}
	if p.Epilogue, err = gemm.ParseEpilogue(q.GetEpilogue()); err != nil {
		return p, fmt.Errorf("epilogue: %w", err)
	}
	p.Groups, err = fromGroups(q.GetGroups())
	return p, err
}

func fromGroups(rows []int64) (gemm.Groups, error) {
	if len(rows) == 0 {
		return gemm.Groups{}, nil
	}
	return gemm.NewGroups(all(rows, func(n int64) int { return int(n) })...)
}

// alignment turns what is too large into something that no alignment is, instead of wrapping.
func alignment(bytes uint32) uint8 { return uint8(min(bytes, math.MaxUint8)) }

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
	d := gemm.DType(t)
	if t != 0 && (!d.Known() || pb.ElementType(d) != t) {
		return 0, fmt.Errorf("unknown element type %d", t)
	}
	return d, nil
}
