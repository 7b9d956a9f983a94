//go:build cuda

package cuda

import (
	"fmt"
	"math/rand/v2"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// hostProducts is the most products that the host computes for a check: less than a second.
const hostProducts = 1 << 26

// onHost reports whether a problem is checked on the host: its tensors are no matrices, or C is not A·B alone.
func onHost(p gemm.Problem) bool {
	alpha, beta := p.Scalars()
	return p.Nest != (gemm.Nest{}) || alpha != 1 || beta != 0 || p.Epilogue != (gemm.Epilogue{})
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
	return cu.MemcpyHtoD(o.offsets.at, unsafe.Pointer(&table[0]), int64(len(table)))
}

// startOfBias is the place of the bias in its region: no more aligned than an element.
func (o *operands) startOfBias() unit.Bytes { return fence + unit.Bytes(o.problem.Output().Bytes()) }

// fillBias gives the bias random elements, if the problem has one.
func (o *operands) fillBias() (err error) {
	if !o.problem.Epilogue.Bias {
		return nil
	}
	o.biases = normals(o.problem.Output(), o.problem.N)
	size := unit.Bytes(len(o.biases))
	if o.bias, err = allocate(o.startOfBias() + size + fence); err != nil {
		return err
	}
	if err := cu.MemsetD8Async(o.bias.at, poison, int64(o.bias.bytes), o.device.stream); err != nil {
		return err
	}
	if err := o.device.stream.Synchronize(); err != nil {
		return err
	}
	return cu.MemcpyHtoD(cu.DevicePtr(o.bias.address(o.startOfBias())), unsafe.Pointer(&o.biases[0]), int64(size))
}

// blockOfC is the number of random numbers that fill C again and again. It is a prime, see poolElements.
const blockOfC = 1<<20 - 3

// fillC gives C random elements if a kernel reads them.
func (o *operands) fillC() error {
	if o.problem.Beta == 0 {
		return nil
	}
	t, random := o.problem.Output(), rand.New(rand.NewPCG(0x63, 1))
	var host []byte
	for range blockOfC {
		bits := uint32(int32(random.IntN(255) - 127))
		if t != gemm.INT32 {
			bits = narrow(t, float32(random.NormFloat64()))
		}
		for i := range t.Bytes() {
			host = append(host, byte(bits>>(8*i)))
		}
	}
	all := int64(o.bytes(gemm.C))
	first := min(all, int64(len(host)))
	if err := cu.MemcpyHtoD(cu.DevicePtr(o.first[gemm.C]), unsafe.Pointer(&host[0]), first); err != nil {
		return err
	}
	for done := first; done < all; done += first {
		to, n := cu.DevicePtr(o.first[gemm.C]+uint64(done)), min(first, all-done)
		if err := cu.MemcpyDtoDAsync(to, cu.DevicePtr(o.first[gemm.C]), n, o.device.stream); err != nil {
			return err
		}
	}
	return o.device.stream.Synchronize()
}

// download copies a tensor to the host.
func (o *operands) download(m gemm.Operand) ([]byte, error) {
	host := make([]byte, int(o.bytes(m)))
	if err := cu.MemcpyDtoH(unsafe.Pointer(&host[0]), cu.DevicePtr(o.first[m]), int64(len(host))); err != nil {
		return nil, fmt.Errorf("reading %s: %w", m, err)
	}
	return host, nil
}

// checkOnHost is check for the problems of onHost.
func (d *device) checkOnHost(o *operands, run func() error) (n exec.Numerics, err error) {
	if err := cu.MemsetD8Async(o.c.at, poison, int64(o.c.bytes), d.stream); err != nil {
		return n, err
	}
	if err := o.fillC(); err != nil {
		return n, err
	}
	if err := d.stream.Synchronize(); err != nil {
		return n, err
	}
	if err := o.referOnHost(); err != nil {
		return n, err
	}
	if err := run(); err != nil {
		return n, err
	}
	if err := d.stream.Synchronize(); err != nil {
		return n, err
	}
	after, err := o.download(gemm.C)
	if err != nil {
		return n, err
	}
	n.Tolerance = withActivation(tolerance(o.problem.Types(), o.problem.K), o.problem.Epilogue.Activation)
	v := o.onHost.Compare(after, n.Tolerance)
	n.MaxError, n.Checked, n.Wrong, n.Reference = v.MaxError, v.Checked, v.Wrong, "float64 on the host"
	if v.Checked < v.Elements {
		n.Reference += fmt.Sprintf(", %d of %d elements", v.Checked, v.Elements)
	}
	n.OutOfBounds, err = o.outside()
	n.OutOfBounds += v.OutOfBounds
	return n, err
}

// withActivation is the tolerance behind an activation: errors grow with its slope, which is at most 1.13, that of
// GELU, and the instructions that compute it are within 2^−20.
func withActivation(tolerance float64, a gemm.Activation) float64 {
	if a == gemm.Identity {
		return tolerance
	}
	return 1.13*tolerance + 0x1p-20
}

// referOnHost computes the right values, once per problem.
func (o *operands) referOnHost() error {
	if o.onHost != nil {
		return nil
	}
	var host [3][]byte
	for m := gemm.A; m <= gemm.C; m++ {
		var err error
		if host[m], err = o.download(m); err != nil {
			return err
		}
	}
	o.onHost = gemmgen.NewHostReference(o.problem, host[gemm.A], host[gemm.B], host[gemm.C], o.biases, hostProducts)
	return nil
}
