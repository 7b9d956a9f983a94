//go:build cuda

package cuda

import (
	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// fence is the size of the guard band before and after each matrix. Every byte of it, and of the gaps between rows, is
// poison, which is not a number in any float type. A kernel that reads beyond its operands thus produces NaN, or with
// int8 a wrong sum, and a write beyond the output is detected.
const (
	fence  = unit.Bytes(4096)
	poison = 0xFF
)

// poolElements is the number of random numbers. Operands repeat them. The period is a prime, so that no row, column
// or tile of a matrix repeats at a distance that an index error would produce.
const poolElements = 1<<24 - 3

// prepare returns the operands of a problem. They stay until prepare is called for another problem. The caller holds
// d.running and has the context.
func (d *device) prepare(p gemm.Problem, input string) (*operands, error) {
	if input != "" && input != exec.InputNormal {
		return nil, diag.Inputf("there is no input distribution %q", input).At("CUDA").Do("use %s", exec.InputNormal)
	}
	if d.operands != nil && d.operands.problem == p {
		return d.operands, nil
	}
	d.operands.free()
	d.operands = nil
	if err := d.fillPool(p.DType); err != nil {
		return nil, err
	}
	o := &operands{device: d, problem: p}
	from := int64(0)
	for i, to := range []*region{&o.a, &o.b, &o.c} {
		m := gemm.Operand(i)
		var err error
		if *to, err = allocate(fence + roundUp(o.bytes(m)+gemm.MaxVector) + fence); err != nil {
			o.free()
			return nil, doesNotFit(err, p.String())
		}
		o.first[m] = to.address(o.start(m))
		if err := cu.MemsetD8Async(to.at, poison, int64(to.bytes), d.stream); err != nil {
			return nil, err
		}
		if m == gemm.C {
			continue
		}
		if err := o.randomise(m, from); err != nil {
			return nil, err
		}
		rows, elements := p.Rows(m)
		from = (from + int64(rows)*int64(elements)) % poolElements
	}
	if err := o.prepareWhole(); err != nil {
		o.free()
		return nil, doesNotFit(err, p.String())
	}
	d.operands = o
	return o, d.stream.Synchronize()
}

// start is the place of a matrix in its region, behind the fence and as aligned as the problem says.
func (o *operands) start(m gemm.Operand) unit.Bytes {
	return fence + unit.Bytes(o.problem.Align(m)%gemm.MaxVector)
}

// bytes is the size of a matrix, from its first element to its last. Gaps between rows are inside.
func (o *operands) bytes(m gemm.Operand) unit.Bytes {
	p := o.problem
	if p.Nest != (gemm.Nest{}) {
		return unit.Bytes(p.Nest.Span(m)) * unit.Bytes(p.Type(m).Bytes())
	}
	rows, elements := p.Rows(m)
	last := int64(p.Batch-1)*int64(p.Stride(m)) + int64(rows-1)*int64(p.LD(m))
	return unit.Bytes(p.Type(m).Bytes()) * unit.Bytes(last+int64(elements))
}

// call describes the multiplication to generated kernels.
func (o *operands) call() gemmgen.Call {
	call := gemmgen.NewCall(o.problem)
	call.A.Address, call.B.Address, call.C.Address = o.first[gemm.A], o.first[gemm.B], o.first[gemm.C]
	if o.offsets.bytes > 0 {
		call.Offsets = o.offsets.address(0)
	}
	if o.bias.bytes > 0 {
		call.Bias = o.bias.address(o.startOfBias())
	}
	return call
}

// dense returns the operands with a dense C at another address, of the type that the right values have.
func (o *operands) dense(c cu.DevicePtr) *operands {
	other := *o
	other.problem.Out, other.problem.LDC, other.problem.AlignC = gemm.FP32, 0, 0
	other.first[gemm.C] = uint64(c)
	return &other
}

// fillPool generates the random numbers for a type: standard normal ones, for int8 the integers from -127 to 127.
func (d *device) fillPool(t gemm.DType) error {
	if d.poolType == t {
		return nil
	}
	host := normals(seedOperands, t, poolElements)
	d.pool.free() // no larger than the numbers, where it begins again
	d.poolType = 0
	if err := d.pool.reserve(unit.Bytes(len(host))); err != nil {
		return err
	}
	d.poolType = t
	return upload(d.pool.at, host)
}

// randomise fills a matrix from the pool, beginning at an element of the pool. Gaps between rows stay as they are.
func (o *operands) randomise(m gemm.Operand, element int64) error {
	p := o.problem
	size := unit.Bytes(p.DType.Bytes())
	rows, elements := p.Rows(m)
	runs, run, pitch := p.Batch*rows, size*unit.Bytes(elements), size*unit.Bytes(p.LD(m))
	if p.Nest != (gemm.Nest{}) {
		runs, run = 1, o.bytes(m)
	} else if p.LD(m) == elements {
		runs, run = 1, size*unit.Bytes(int64(p.Batch)*int64(rows)*int64(elements))
	}
	from := size * unit.Bytes(element)
	for i := range runs {
		to := o.first[m] + uint64(unit.Bytes(i)*pitch)
		for done := unit.Bytes(0); done < run; {
			n := min(run-done, o.device.pool.bytes-from)
			target, source := cu.DevicePtr(to+uint64(done)), cu.DevicePtr(o.device.pool.address(from))
			if err := cu.MemcpyDtoDAsync(target, source, int64(n), o.device.stream); err != nil {
				return err
			}
			done, from = done+n, from+n
			if from == o.device.pool.bytes {
				from = 0
			}
		}
	}
	return nil
}

// reserve makes the workspace large enough.
func (o *operands) reserve(bytes unit.Bytes) error {
	return doesNotFit(o.workspace.reserve(bytes+roundUp(1)), o.problem.String())
}

func (o *operands) free() {
	if o == nil {
		return
	}
	for _, r := range []*region{&o.a, &o.b, &o.c, &o.want, &o.workspace, &o.offsets, &o.bias} {
		r.free()
	}
}

// prepareWhole fills C and the bias, if a kernel reads them, and writes the tables of a problem with a nest.
func (o *operands) prepareWhole() error {
	if err := o.fillC(); err != nil {
		return err
	}
	if err := o.fillBias(); err != nil {
		return err
	}
	table := gemmgen.Offsets(o.problem)
	if o.problem.Nest == (gemm.Nest{}) {
		return nil
	}
	var err error
	if o.offsets, err = allocate(unit.Bytes(len(table))); err != nil {
		return err
	}
	return upload(o.offsets.at, table)
}

// startOfBias is the place of the bias in its region: no more aligned than an element.
func (o *operands) startOfBias() unit.Bytes { return fence + unit.Bytes(o.problem.Output().Bytes()) }

// fillBias gives the bias random elements, if the problem has one.
func (o *operands) fillBias() (err error) {
	if !o.problem.Epilogue.Bias {
		return nil
	}
	o.biases = normals(seedOperands, o.problem.Output(), o.problem.N)
	if o.bias, err = allocate(o.startOfBias() + unit.Bytes(len(o.biases)) + fence); err != nil {
		return err
	}
	if err := cu.MemsetD8Async(o.bias.at, poison, int64(o.bias.bytes), o.device.stream); err != nil {
		return err
	}
	if err := o.device.stream.Synchronize(); err != nil {
		return err
	}
	return upload(cu.DevicePtr(o.bias.address(o.startOfBias())), o.biases)
}

// blockOfC is the number of random numbers that fill C again and again. It is a prime, see poolElements.
const blockOfC = 1<<20 - 3

// fillC gives C random elements if a kernel reads them.
func (o *operands) fillC() error {
	if o.problem.Beta == 0 {
		return nil
	}
	host := normals(seedC, o.problem.Output(), blockOfC)
	at, all := cu.DevicePtr(o.first[gemm.C]), int64(o.bytes(gemm.C))
	host = host[:min(all, int64(len(host)))]
	if err := upload(at, host); err != nil {
		return err
	}
	if err := repeat(at, int64(len(host)), all, o.device.stream); err != nil {
		return err
	}
	return o.device.stream.Synchronize()
}
