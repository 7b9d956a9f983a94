//go:build cuda

package cuda

import (
	"fmt"
	"math"

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
		o.rows, o.rowStep = sample, spread(p.M, sample)
	}
	want, err := allocate(o.verification(0).WantBytes())
	if err != nil {
		return doesNotFit(err, p.String())
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

// spread returns the step that spreads a sample over m rows. It is odd, so that the sample has all places in a tile.
func spread(m, sample int) int {
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
	sampled.rows, sampled.rowStep = sample, spread(o.problem.M, sample)
	exact, err := allocate(sampled.verification(0).WantBytes())
	if err != nil {
		return "", doesNotFit(err, o.problem.String())
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

// exact runs the float64 reference.
func (d *device) exact(v gemmgen.Verification) error {
	p := v.Call.Problem
	return d.verify(layout{p.DType, p.AMajor, p.BMajor}, v, func() (verifier, *ptx.Kernel, error) {
		k, err := gemmgen.EmitReference(p.DType, p.AMajor, p.BMajor, d.target)
		if err != nil {
			return nil, nil, err
		}
		return k, k.Kernel, nil
	})
}

// verify enqueues a kernel that checks results. It is compiled when it is first needed.
func (d *device) verify(
	key any, v gemmgen.Verification, emit func() (verifier, *ptx.Kernel, error),
) error {
	c, ok := d.checks.kernels[key]
	if !ok {
		kernel, text, err := emit()
		if err != nil {
			return err
		}
		if c.loaded, err = loadFunction(text.Text, text.Name); err != nil {
			return err
		}
		c.verifier = kernel
		d.checks.kernels[key] = c
	}
	at, err := c.Launch(v)
	if err != nil {
		return err
	}
	return start(d.stream, c.function, at)
}

// compare runs the comparison and returns what it finds.
func (d *device) compare(v gemmgen.Verification, out gemm.DType) (verdict gemmgen.Verdict, err error) {
	if err := d.checks.verdict.reserve(gemmgen.VerdictBytes); err != nil {
		return verdict, err
	}
	v.Verdict = d.checks.verdict.address(0)
	bytes := gemmgen.NewVerdict()
	if err := upload(d.checks.verdict.at, bytes); err != nil {
		return verdict, err
	}
	err = d.verify(out, v, func() (verifier, *ptx.Kernel, error) {
		k, err := gemmgen.EmitComparison(out, d.target)
		if err != nil {
			return nil, nil, err
		}
		return k, k.Kernel, nil
	})
	if err != nil {
		return verdict, err
	}
	if err := d.stream.Synchronize(); err != nil {
		return verdict, err
	}
	if err := download(bytes, d.checks.verdict.at); err != nil {
		return verdict, err
	}
	return gemmgen.ParseVerdict(bytes)
}

// free unloads the kernels.
func (c *checks) free() {
	for _, k := range c.kernels {
		k.unload()
	}
	c.verdict.free()
}
