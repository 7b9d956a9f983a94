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

// fence is the guard band before and after each matrix. Every byte of it is poison: as fp16, bf16 or fp32 it is not a
// number, so a kernel that reads beyond its operands gives no numbers, and one that writes beyond its output is seen.
const (
	fence  = unit.Bytes(4096)
	poison = 0xFF
)

// poolElements is how many random numbers there are. Operands repeat them; the period is a prime, so that no row, column
// or tile of a matrix meets itself again at a distance that a wrong index would make.
const poolElements = 1<<24 - 3

// operands are the matrices of one problem on the device, each between fences.
type operands struct {
	device  *device
	problem gemm.Problem
	a, b, c region
	// want is what C must be, in fp32; reference says where it is from. Rows lists every rowStep-th row of C.
	want          region
	rows, rowStep int
	reference     string
	// workspace is what a kernel needs beside the matrices.
	workspace region
}

// prepare returns the operands of a problem, which stay until another problem is asked for. The caller holds d.running and
// has the context.
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

// tooLarge says how much memory a problem needs, if that is what is wrong.
func tooLarge(err error, p gemm.Problem) error {
	if !anyOf(err, []error{cu.OutOfMemory}) {
		return err
	}
	free, total, _ := cu.MemInfo()
	return diag.Inputf("%s does not fit: %.1f GB of %.1f GB of the device's memory are free", p, float64(free)/1e9, float64(total)/1e9).At("CUDA").
		Do("leave it out, or free the device's memory")
}

// fillPool makes the random numbers of a type.
func (d *device) fillPool(t gemm.DType) error {
	if d.poolType == t {
		return nil
	}
	// Seeded: the same numbers in every run, so that a result that is wrong stays wrong.
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

// randomise fills a matrix from the pool, from an offset in it on.
func (o *operands) randomise(to *region, bytes, from unit.Bytes) error {
	for done := unit.Bytes(0); done < bytes; {
		n := min(bytes-done, o.device.pool.bytes-from)
		if err := cu.MemcpyDtoDAsync(cu.DevicePtr(to.address(fence+done)), cu.DevicePtr(o.device.pool.address(from)), int64(n), o.device.stream); err != nil {
			return err
		}
		done, from = done+n, 0
	}
	return nil
}

// reserve makes the workspace at least that large.
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

// roundUp rounds up to the 256 bytes to which the driver aligns regions.
func roundUp(b unit.Bytes) unit.Bytes { return unit.Bytes((int64(b) + 255) / 256 * 256) }

// narrow rounds a finite number to fp16 or bf16, to nearest even, as bits. Numbers of a standard normal distribution
// neither overflow nor matter when they are below the smallest normal number, which becomes zero.
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

// outside counts the bytes of C's fences that a kernel overwrote. The caller holds d.running and has the context.
func (o *operands) outside() (int64, error) {
	wrong, band := int64(0), make([]byte, int(fence))
	used := unit.Bytes(o.problem.DType.Bytes()) * unit.Bytes(int64(o.problem.M)*int64(o.problem.N)*int64(o.problem.Batch))
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
