//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// exactFlops is the most that the float64 reference computes: a fraction of a second on a data-centre GPU. Above it
// cuBLAS is the reference, once a sample of its rows has passed against float64. Without cuBLAS, and for 8-bit
// operands, for which it is restricted, only a sample of the kernel's rows is compared.
const exactFlops = 1 << 36

// check compares the result of a program, which may round its operands to a type first, with the reference. The caller
// holds d.running and has the context.
func (d *device) check(o *operands, rounds gemm.DType, run func() error) (n exec.Numerics, err error) {
	if onHost(o.problem) {
		return d.checkOnHost(o, run)
	}
	if err := d.refer(o); err != nil {
		return n, err
	}
	if err := cu.MemsetD8Async(o.c.at, poison, int64(o.c.bytes), d.stream); err != nil {
		return n, err
	}
	if err := run(); err != nil {
		return n, err
	}
	if err := d.stream.Synchronize(); err != nil {
		return n, err
	}
	n.Tolerance = tolerance(o.problem.Types(), o.problem.K) + rounded[rounds]
	v := o.verification(n.Tolerance)
	verdict, err := d.compare(v, o.problem.Output())
	if err != nil {
		return n, err
	}
	n.MaxError, n.Wrong, n.Reference = float64(verdict.MaxError), int64(verdict.Wrong), o.reference
	n.Checked = int64(v.Rows) * int64(o.problem.N) * int64(o.problem.Batch)
	n.OutOfBounds, err = o.outside()
	return n, err
}

// tolerance is the error that a correct result of standard normal operands may have, relative to |want| + √K. It is the
// rounding of the output, 2^−11 for fp16 and 2^−8 for bf16, plus the loss of adding K products in fp32. Sums of int8
// are exact.
//
// Tensor cores truncate: they align 16 products at a time to the largest and add them to the sum, which loses up to
// 2^−23 of it each time, always downwards. K/16 such steps on sums of the order of √K lose at most K·2^−27 of √K. The
// tolerance allows twice that. A missing product is an error of 1/√K for a third of the elements, above the tolerance
// for any K below 2^17. A step of tf32 has 8 products, so there are twice as many. FMA rounds each sum by up to 2^−24
// of it, up or down. That adds up to less, but where K is small, the sums on the way can be larger than their end.
//
// For fp8 the tensor cores of some architectures align 32 products and the sum to 13 bits below the largest. The sum
// loses K/32 times 2^−13 of itself, always towards zero. What the products lose has either sign, and the largest may be
// several times √K, or than all of √K where K is small: √(K/32) times 2^−9 is 1.4 times the largest error of 600 random
// kernels of the family wgmma on an H200. A missing step of 32 products is above the tolerance for any K below 2^13.
func tolerance(t gemm.Types, k int) float64 {
	rounding := map[gemm.DType]float64{gemm.FP16: 0x1p-11, gemm.BF16: 0x1p-8, gemm.FP32: 0x1p-23}[t.Out]
	switch t.In {
	case gemm.FP32:
		return rounding + 0x1p-21 + float64(k)*0x1p-26
	case gemm.INT8:
		return 0
	case gemm.FP8, gemm.FP8E5M2:
		return rounding + float64(k)*0x1p-18 + math.Sqrt(float64(k)/32)*0x1p-9
	case gemm.TF32:
		return rounding + float64(k)*0x1p-25
	default:
		return rounding + float64(k)*0x1p-26
	}
}

// rounded is what the tolerance adds for kernels that round fp32 operands to a type first. To fp16, a standard normal
// number is off by 2^−12.2 of itself on average, a product of two by 2^−11.7, and a sum of K of them by 2^−11.7 of √K.
// The tolerance is 13 times that.
var rounded = map[gemm.DType]float64{gemm.FP16: 0x1p-8}

// verification describes the check of C to the kernels that perform it.
func (o *operands) verification(tolerance float64) gemmgen.Verification {
	return gemmgen.Verification{Call: o.call(), Rows: o.rows, RowStep: o.rowStep, Want: o.want.address(0),
		Tolerance: float32(tolerance), Scale: float32(math.Sqrt(float64(o.problem.K)))}
}

// refer computes the right values of C, once per problem.
func (d *device) refer(o *operands) error {
	if o.want.bytes > 0 {
		return nil
	}
	p := o.problem
	sample := sampleRows(p)
	trusted := d.blas != nil && p.DType.Bits() >= 16
	o.rows, o.rowStep = p.M, 1
	if !trusted {
		o.rows, o.rowStep = sample, rowStep(p.M, sample)
	}
	want, err := allocate(o.verification(0).WantBytes())
	if err != nil {
		return tooLarge(err, p)
	}
	if sample == p.M || !trusted {
		o.reference = "float64"
		if sample < p.M {
			o.reference = fmt.Sprintf("float64, %d of %d rows", sample, p.M)
		}
		o.want = want
		if err := d.exact(o.verification(0)); err != nil {
			o.want.free()
			return err
		}
		return nil
	}
	defer want.free()
	if o.reference, err = d.trustBLAS(o, want, sample); err != nil {
		return err
	}
	o.want, want = want, region{}
	return nil
}

// sampleRows returns how many rows of C the float64 reference computes: as many as exactFlops allows.
func sampleRows(p gemm.Problem) int {
	perRow := 2 * float64(p.N) * float64(p.K) * float64(p.Batch)
	return min(p.M, max(1, int(exactFlops/perRow)))
}

// rowStep spreads a sample over m rows. The step is odd, so that the sample has all places in a tile.
func rowStep(m, sample int) int {
	step := m / sample
	return max(1, step-(step+1)%2)
}

// trustBLAS lets cuBLAS compute the right values in fp32, and compares a sample of its rows with float64.
func (d *device) trustBLAS(o *operands, want region, sample int) (string, error) {
	dense := o.dense(want.at)
	if err := d.blas.gemm(dense, blasExact)(); err != nil {
		return "", err
	}
	sampled := *dense
	sampled.rows, sampled.rowStep = sample, rowStep(o.problem.M, sample)
	exact, err := allocate(sampled.verification(0).WantBytes())
	if err != nil {
		return "", tooLarge(err, o.problem)
	}
	defer exact.free()
	sampled.want = exact
	v := sampled.verification(tolerance(sampled.problem.Types(), o.problem.K))
	if err := d.exact(v); err != nil {
		return "", err
	}
	verdict, err := d.compare(v, gemm.FP32)
	if err != nil {
		return "", err
	}
	if verdict.Wrong > 0 {
		return "", fmt.Errorf("cuBLAS %s computes %s wrong: %d of %d elements, error %.3g",
			d.blas.version, o.problem, verdict.Wrong, sample*o.problem.N*o.problem.Batch, verdict.MaxError)
	}
	return fmt.Sprintf("cuBLAS %s in fp32, %d of its rows within %.2g of float64",
		d.blas.version, sample, verdict.MaxError), nil
}

// checks holds the kernels that check results. They are compiled when they are first needed.
type checks struct {
	references  map[layout]*compiled[*gemmgen.Reference]
	comparisons map[gemm.DType]*compiled[*gemmgen.Comparison]
	verdict     region
}

type layout struct {
	dtype  gemm.DType
	aMajor gemm.Major
	bMajor gemm.Major
}

// compiled is a generated kernel that is loaded on the device.
type compiled[K any] struct {
	kernel   K
	module   cu.Module
	function cu.Function
}

// exact runs the float64 reference.
func (d *device) exact(v gemmgen.Verification) error {
	p := v.Call.Problem
	key := layout{p.DType, p.AMajor, p.BMajor}
	r, err := kept(d.checks.references, key, func() (*gemmgen.Reference, *ptx.Kernel, error) {
		k, err := gemmgen.EmitReference(p.DType, p.AMajor, p.BMajor, d.target)
		if err != nil {
			return nil, nil, err
		}
		return k, k.Kernel, nil
	})
	if err != nil {
		return err
	}
	at, err := r.kernel.Launch(v)
	if err != nil {
		return err
	}
	return d.start(r.function, at)
}

// compare runs the comparison and returns what it finds.
func (d *device) compare(v gemmgen.Verification, out gemm.DType) (verdict gemmgen.Verdict, err error) {
	c, err := kept(d.checks.comparisons, out, func() (*gemmgen.Comparison, *ptx.Kernel, error) {
		k, err := gemmgen.EmitComparison(out, d.target)
		if err != nil {
			return nil, nil, err
		}
		return k, k.Kernel, nil
	})
	if err != nil {
		return verdict, err
	}
	if d.checks.verdict.bytes == 0 {
		if d.checks.verdict, err = allocate(gemmgen.VerdictBytes); err != nil {
			return verdict, err
		}
	}
	v.Verdict = d.checks.verdict.address(0)
	at, err := c.kernel.Launch(v)
	if err != nil {
		return verdict, err
	}
	bytes := gemmgen.NewVerdict()
	if err := cu.MemcpyHtoD(d.checks.verdict.at, unsafe.Pointer(&bytes[0]), int64(len(bytes))); err != nil {
		return verdict, err
	}
	if err := d.start(c.function, at); err != nil {
		return verdict, err
	}
	if err := d.stream.Synchronize(); err != nil {
		return verdict, err
	}
	if err := cu.MemcpyDtoH(unsafe.Pointer(&bytes[0]), d.checks.verdict.at, int64(len(bytes))); err != nil {
		return verdict, err
	}
	return gemmgen.ParseVerdict(bytes)
}

// kept returns a kernel from a map of compiled ones. It adds the kernel if it is missing.
func kept[Key comparable, K any](
	in map[Key]*compiled[K], key Key, emit func() (K, *ptx.Kernel, error),
) (*compiled[K], error) {
	if c := in[key]; c != nil {
		return c, nil
	}
	kernel, text, err := emit()
	if err != nil {
		return nil, err
	}
	c := &compiled[K]{kernel: kernel}
	if c.module, c.function, err = loadFunction(text.Text, text.Name); err != nil {
		return nil, err
	}
	in[key] = c
	return c, nil
}

// free unloads the kernels.
func (c *checks) free() {
	for _, r := range c.references {
		_ = r.module.Unload()
	}
	for _, r := range c.comparisons {
		_ = r.module.Unload()
	}
	c.verdict.free()
}
