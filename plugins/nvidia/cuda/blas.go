//go:build cuda

package cuda

// #include "blas.h"
import "C"

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// blasWorkspace is the memory that cuBLAS may use beside the matrices: as much as it allocates by default on Hopper.
// Source: cuBLAS library documentation, cublasSetWorkspace.
const blasWorkspace = unit.Bytes(32 << 20)

// openBLAS returns nil if cuBLAS is not installed. That is not an error: there is just nothing to compare with.
func openBLAS(d *device) *blas {
	b := &blas{}
	err := d.do(func() (err error) {
		if b.workspace, err = allocate(blasWorkspace); err != nil {
			return err
		}
		b.library = C.origami_blas_open(*(*C.CUstream)(unsafe.Pointer(&d.stream)),
			C.CUdeviceptr(b.workspace.at), C.size_t(b.workspace.bytes))
		if b.library == nil {
			b.workspace.free()
		}
		return nil
	})
	if err != nil || b.library == nil {
		return nil
	}
	v := int(C.origami_blas_version(b.library))
	b.version = fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
	return b
}

func (b *blas) close() {
	if b != nil {
		C.origami_blas_close(b.library)
		b.workspace.free()
	}
}

// How cuBLAS adds products.
const (
	// blasUsual is with the type's fastest instructions. Sums are fp32, or int32 of int8.
	blasUsual = iota
	// blasExact is with fp32 products and sums, also of tf32 operands.
	blasExact
)

// call describes the multiplication of operands to cuBLAS. cuBLAS is column-major: it reads a matrix stored by rows
// as the transpose, so it computes Cᵀ = Bᵀ·Aᵀ.
func (b *blas) call(o *operands, how int) C.origami_gemm {
	p := o.problem
	g := C.origami_gemm{
		m: C.int64_t(p.N), n: C.int64_t(p.M), k: C.int64_t(p.K), batch: C.int(p.Batch),
		in_type: dataType(p.DType), out_type: dataType(p.Output()), compute: computeFloat,
		a: C.CUdeviceptr(o.first[gemm.B]), lda: C.int64_t(p.LD(gemm.B)), stride_a: C.int64_t(p.Stride(gemm.B)),
		b: C.CUdeviceptr(o.first[gemm.A]), ldb: C.int64_t(p.LD(gemm.A)), stride_b: C.int64_t(p.Stride(gemm.A)),
		c: C.CUdeviceptr(o.first[gemm.C]), ldc: C.int64_t(p.LD(gemm.C)), stride_c: C.int64_t(p.Stride(gemm.C)),
	}
	if p.TransB() {
		g.trans_a = 1
	}
	if p.TransA() {
		g.trans_b = 1
	}
	switch {
	case p.DType.Integer():
		g.compute = computeInteger
	case p.DType == gemm.TF32 && how == blasUsual:
		g.compute = computeTF32
	}
	return g
}

// CUDA's numbers of compute types. Source: cublas_api.h, cublasComputeType_t.
const (
	computeFloat   = 68
	computeInteger = 72
	computeTF32    = 77
)

// dataType returns CUDA's number for a type. Source: library_types.h, cudaDataType_t.
func dataType(t gemm.DType) C.int {
	switch t {
	case gemm.FP16:
		return 2
	case gemm.INT8:
		return 3
	case gemm.INT32:
		return 10
	case gemm.BF16:
		return 14
	case gemm.FP8:
		return 28
	case gemm.FP8E5M2:
		return 29
	default:
		return 0
	}
}

// gemm returns a function that enqueues the kernel that cuBLAS chooses.
func (b *blas) gemm(o *operands, how int) func() error {
	g := b.call(o, how)
	return func() error { return b.status(C.origami_blas_run(b.library, &g), o.problem) }
}

// status converts the result of a cuBLAS call to an error.
func (b *blas) status(s C.int, p gemm.Problem) error {
	if s == 0 {
		return nil
	}
	return diag.Inputf("cuBLAS %s refuses %s with status %d", b.version, p, int(s))
}

// library returns cuBLAS as a program.
func (d *device) library(p gemm.Problem, name string) (program, error) {
	if d.blas == nil {
		return nil, diag.Inputf("cuBLAS was not found").At("CUDA").
			Do("put libcublas and libcublasLt on LD_LIBRARY_PATH")
	}
	return &libraryProgram{device: d, best: name == libraryBest}, nil
}

// libraryProgram is the kernel that cuBLAS chooses, or the fastest of those that it proposes.
type libraryProgram struct {
	device *device
	best   bool
	plan   *C.origami_blas_plan
	choice int
	bound  *operands
}

// resources returns zeros: a library does not tell what its kernels use.
func (l *libraryProgram) resources() exec.Resources { return exec.Resources{} }

func (l *libraryProgram) bind(o *operands) (func() error, error) {
	b := l.device.blas
	if !l.best && !onlyLt(o.problem) {
		return b.gemm(o, blasUsual), nil
	}
	g := b.call(o, blasUsual)
	if l.bound != o {
		if err := l.choose(o, &g); err != nil {
			return nil, err
		}
	}
	return func() error {
		return b.status(C.origami_blas_plan_run(b.library, l.plan, &g, C.int(l.choice)), o.problem)
	}, nil
}

// onlyLt reports whether cuBLASLt alone has the types of a problem. Its first proposal is then what cuBLAS chooses.
func onlyLt(p gemm.Problem) bool { return p.DType == gemm.FP8 || p.DType == gemm.FP8E5M2 }

// candidateRuns is how often each candidate is timed with a cold L2. The fastest by the median is chosen.
const candidateRuns = 5

// choose keeps the fastest candidate, or, unless the best is wanted, the first.
func (l *libraryProgram) choose(o *operands, g *C.origami_gemm) error {
	l.close()
	b, count := l.device.blas, C.int(0)
	if err := b.status(C.origami_blas_plan_new(b.library, g, &l.plan, &count), o.problem); err != nil {
		return err
	}
	if l.choice = 0; !l.best && count > 0 {
		l.bound = o
		return nil
	}
	fastest := unit.Seconds(0)
	for i := range int(count) {
		run := func() error { return b.status(C.origami_blas_plan_run(b.library, l.plan, g, C.int(i)), o.problem) }
		if run() != nil { // also the warm-up; skip a candidate that refuses
			continue
		}
		var times []unit.Seconds
		for range candidateRuns {
			s, err := l.device.timed(run, false)
			if err != nil {
				return err
			}
			times = append(times, s.Time)
		}
		slices.Sort(times)
		if median := times[candidateRuns/2]; fastest == 0 || median < fastest {
			fastest, l.choice = median, i
		}
	}
	if fastest == 0 {
		return diag.Inputf("cuBLASLt %s proposes nothing for %s", b.version, o.problem)
	}
	l.bound = o
	return nil
}

func (l *libraryProgram) close() {
	if l.plan != nil {
		C.origami_blas_plan_free(l.device.blas.library, l.plan)
		l.plan, l.bound = nil, nil
	}
}
