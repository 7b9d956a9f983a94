//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// fence is the size of the guard band before and after each matrix. Every byte of it is poison, which is not a number
// as fp16, bf16 or fp32. A kernel that reads beyond its operands thus produces NaN, and a write beyond the output is
// detected.
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
	// want is the right values of every rowStep-th row of C, rows of them, in fp32. reference says what computed them.
	want          region
	rows, rowStep int
	reference     string
	// workspace is memory that a kernel needs beside the matrices.
	workspace region
}

// prepare returns the operands of a problem. They stay until prepare is called for another problem. The caller holds
// d.running and has the context.
func (d *device) prepare(p gemm.Problem, input string) (*operands, error) {
	if input != "" && input != exec.InputNormal {
		return nil, diag.Inputf("there is no input distribution %q", input).At("CUDA").Do("use %s", exec.InputNormal)
	}
	if p.DType != gemm.FP16 && p.DType != gemm.BF16 {
		return nil, diag.Inputf("operands of type %s cannot be made", p.DType).At("CUDA").Do("use fp16 or bf16")
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
	size := unit.Bytes(p.DType.Bytes())
	matrices := []struct {
		to    *region
		count int64
	}{{&o.a, int64(p.M) * int64(p.K)}, {&o.b, int64(p.K) * int64(p.N)}, {&o.c, int64(p.M) * int64(p.N)}}
	offset := int64(0)
	for i, m := range matrices {
		bytes := size * unit.Bytes(m.count*int64(p.Batch))
		var err error
		if *m.to, err = allocate(fence + roundUp(bytes) + fence); err != nil {
			o.free()
			return nil, tooLarge(err, p)
		}
		if err := cu.MemsetD8Async(m.to.at, poison, int64(m.to.bytes), d.stream); err != nil {
			return nil, err
		}
		if i < 2 {
			if err := o.randomise(m.to, bytes, size*unit.Bytes(offset)); err != nil {
				return nil, err
			}
			offset = (offset + m.count) % poolElements
		}
	}
	d.operands = o
	return o, d.stream.Synchronize()
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

// fillPool generates the random numbers for a type.
func (d *device) fillPool(t gemm.DType) error {
	if d.poolType == t {
		return nil
	}
	// A fixed seed gives the same numbers in every run, so that a wrong result is reproducible.
	random := rand.New(rand.NewPCG(0x6f726967616d69, uint64(t)))
	host := make([]uint16, poolElements)
	for i := range host {
		host[i] = narrow(t, float32(random.NormFloat64()))
	}
	if d.pool.bytes == 0 {
		var err error
		if d.pool, err = allocate(2 * poolElements); err != nil {
			return err
		}
	}
	d.poolType = t
	return cu.MemcpyHtoD(d.pool.at, unsafe.Pointer(&host[0]), 2*poolElements)
}

// randomise fills a matrix from the pool, beginning at an offset in the pool.
func (o *operands) randomise(to *region, bytes, from unit.Bytes) error {
	for done := unit.Bytes(0); done < bytes; {
		n := min(bytes-done, o.device.pool.bytes-from)
		target, source := cu.DevicePtr(to.address(fence+done)), cu.DevicePtr(o.device.pool.address(from))
		if err := cu.MemcpyDtoDAsync(target, source, int64(n), o.device.stream); err != nil {
			return err
		}
		done, from = done+n, 0
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
	for _, r := range []*region{&o.a, &o.b, &o.c, &o.want, &o.workspace} {
		r.free()
	}
}

// roundUp rounds up to 256 bytes, the alignment of memory from the driver.
func roundUp(b unit.Bytes) unit.Bytes { return unit.Bytes((int64(b) + 255) / 256 * 256) }

// narrow rounds a finite number to the nearest fp16 or bf16, ties to even, and returns the bits. Numbers below the
// smallest normal number become zero: of a standard normal distribution they do not matter, and none overflows.
func narrow(t gemm.DType, v float32) uint16 {
	bits := math.Float32bits(v)
	if t == gemm.BF16 {
		return uint16((bits + 0x7FFF + bits>>16&1) >> 16)
	}
	sign := uint16(bits >> 16 & 0x8000)
	if exponent := int(bits>>23&0xFF) - 127 + 15; exponent <= 0 {
		return sign
	}
	magnitude := bits&0x7FFFFFFF - (127-15)<<23
	return sign | uint16((magnitude+0xFFF+magnitude>>13&1)>>13)
}

// outside counts the bytes that a kernel overwrote in the fences of C. The caller holds d.running and has the context.
func (o *operands) outside() (int64, error) {
	wrong, band := int64(0), make([]byte, int(fence))
	p := o.problem
	used := unit.Bytes(int64(p.DType.Bytes()) * int64(p.M) * int64(p.N) * int64(p.Batch))
	for _, at := range []unit.Bytes{0, fence + used} {
		if err := cu.MemcpyDtoH(unsafe.Pointer(&band[0]), cu.DevicePtr(o.c.address(at)), int64(len(band))); err != nil {
			return 0, fmt.Errorf("reading the fence: %w", err)
		}
		for _, b := range band {
			if b != poison {
				wrong++
			}
		}
	}
	return wrong, nil
}
