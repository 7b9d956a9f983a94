//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"unsafe"

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

// operands are the matrices of one problem on the device, each between fences.
type operands struct {
	device  *device
	problem gemm.Problem
	a, b, c region
	// first has the addresses of the first elements of A, B and C. They are as aligned as the problem says, not more.
	first [3]uint64
	// want is the right values of every rowStep-th row of C, rows of them, in fp32, or in int32 if C is. reference says
	// what computed them.
	want          region
	rows, rowStep int
	reference     string
	// onHost has the right values instead for the problems that are checked on the host.
	onHost *gemmgen.HostReference
	// workspace is memory that a kernel needs beside the matrices. offsets has the tables of a problem with a nest.
	workspace, offsets region
	// bias is that of the problem's epilogue, between fences. biases are its bytes.
	bias   region
	biases []byte
}

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
			return nil, tooLarge(err, p)
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
		return nil, tooLarge(err, p)
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

// tooLarge reports that a problem does not fit into memory, if that is the error.
func tooLarge(err error, p gemm.Problem) error {
	if !anyOf(err, []error{cu.OutOfMemory}) {
		return err
	}
	free, total, _ := cu.MemInfo()
	return diag.Inputf("%s does not fit: %.1f GB of %.1f GB of the device's memory are free",
		p, float64(free)/1e9, float64(total)/1e9).At("CUDA").
		Do("leave it out, or free the device's memory")
}

// fillPool generates the random numbers for a type: standard normal ones, for int8 the integers from -127 to 127.
func (d *device) fillPool(t gemm.DType) error {
	if d.poolType == t {
		return nil
	}
	host := normals(t, poolElements)
	d.pool.free()
	d.poolType = 0
	var err error
	if d.pool, err = allocate(unit.Bytes(len(host))); err != nil {
		return err
	}
	d.poolType = t
	return cu.MemcpyHtoD(d.pool.at, unsafe.Pointer(&host[0]), int64(len(host)))
}

// normals returns random numbers of a type. A fixed seed gives the same numbers in every run, so that a wrong result is
// reproducible.
func normals(t gemm.DType, n int) []byte {
	random := rand.New(rand.NewPCG(0x6f726967616d69, uint64(t)))
	size := t.Bytes()
	host := make([]byte, 0, n*size)
	for range n {
		bits := uint32(random.IntN(255) - 127)
		if t != gemm.INT8 {
			bits = narrow(t, float32(random.NormFloat64()))
		}
		for i := range size {
			host = append(host, byte(bits>>(8*i)))
		}
	}
	return host
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
	bytes += roundUp(1)
	if o.workspace.bytes >= bytes {
		return nil
	}
	o.workspace.free()
	var err error
	o.workspace, err = allocate(bytes)
	return tooLarge(err, o.problem)
}

func (o *operands) free() {
	if o == nil {
		return
	}
	for _, r := range []*region{&o.a, &o.b, &o.c, &o.want, &o.workspace, &o.offsets, &o.bias} {
		r.free()
	}
}

// roundUp rounds up to 256 bytes, the alignment of memory from the driver.
func roundUp(b unit.Bytes) unit.Bytes { return unit.Bytes((int64(b) + 255) / 256 * 256) }

// outside counts the bytes that a kernel overwrote around C: in its fences and between its rows. The caller holds
// d.running and has the context.
func (o *operands) outside() (int64, error) {
	p := o.problem
	start, end := o.start(gemm.C), o.start(gemm.C)+o.bytes(gemm.C)
	wrong, err := o.overwritten(0, start)
	if err != nil {
		return 0, err
	}
	after, err := o.overwritten(end, end+fence)
	if err != nil {
		return 0, err
	}
	wrong += after
	if p.LD(gemm.C) == p.N || onHost(p) { // Compare looks between the rows
		return wrong, nil
	}
	size := unit.Bytes(p.Output().Bytes())
	row, pitch := size*unit.Bytes(p.N), size*unit.Bytes(p.LD(gemm.C))
	for i := range p.Batch*p.M - 1 {
		at := start + unit.Bytes(i)*pitch
		n, err := o.overwritten(at+row, at+pitch)
		if err != nil {
			return 0, err
		}
		wrong += n
	}
	return wrong, nil
}

// overwritten counts the bytes of a part of C's region that are not poison.
func (o *operands) overwritten(from, to unit.Bytes) (n int64, err error) {
	band := make([]byte, int(to-from))
	if err := cu.MemcpyDtoH(unsafe.Pointer(&band[0]), cu.DevicePtr(o.c.address(from)), int64(len(band))); err != nil {
		return 0, fmt.Errorf("reading what surrounds C: %w", err)
	}
	for _, b := range band {
		if b != poison {
			n++
		}
	}
	return n, nil
}
