package gemmgen

import (
	"encoding/binary"
	"math"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Matrix is a matrix in device memory: the address of its first element, the elements from one row (of the stored, contiguous
// rows) to the next, and the elements from one matrix of a batch to the next.
type Matrix struct {
	Address    uint64
	LD, Stride int
}

// Call is one multiplication: C = Alpha·A·B + Beta·C for each matrix of the batch. C is not read when Beta is zero.
type Call struct {
	Problem     gemm.Problem
	A, B, C     Matrix
	Alpha, Beta float32
	// Partials and Counters are the device addresses of the workspace that Workspace asks for. Counters must hold zeros
	// before the first launch; every launch leaves them at zero. Launches that may overlap need workspaces of their own.
	Partials, Counters uint64
}

// Packed returns the leading dimensions and strides of densely stored matrices, with no addresses.
func Packed(p gemm.Problem) Call {
	c := Call{Problem: p, Alpha: 1, A: Matrix{LD: p.K, Stride: p.M * p.K}, B: Matrix{LD: p.N, Stride: p.K * p.N}, C: Matrix{LD: p.N, Stride: p.M * p.N}}
	if p.TransA() {
		c.A.LD = p.M
	}
	if p.TransB() {
		c.B.LD = p.K
	}
	return c
}

// Spec returns the fastest specification that computes the call.
func (c Call) Spec(out gemm.DType, cfg gemm.Config) Spec {
	p := c.Problem
	rowA, rowB := c.rows()
	return Spec{DType: p.DType, Out: out, AMajor: p.AMajor, BMajor: p.BMajor, Config: cfg,
		AlignA: c.A.align(rowA, p.DType, p.Batch), AlignB: c.B.align(rowB, p.DType, p.Batch), AlignC: c.C.align(p.N, out, p.Batch)}
}

// align returns the largest of 16, 8, 4 and 2 that divides the address and the length of every row.
func (m Matrix) align(row int, d gemm.DType, batch int) int {
	offsets := m.Address | uint64((row|m.LD)*d.Bytes()) | 16
	if batch > 1 {
		offsets |= uint64(m.Stride * d.Bytes())
	}
	return int(offsets & -offsets)
}

// Launch is what starts a kernel: the grid, and the parameters as the driver takes them in one buffer.
type Launch struct {
	GridX, GridY, GridZ int
	Threads             int
	SharedMemory        unit.Bytes
	Params              []byte
}

// Limits of a grid. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
const (
	maxGridX  = math.MaxInt32
	maxGridYZ = 65535
	// maxExtent keeps indices of a tile's last row within 32 bits.
	maxExtent = math.MaxInt32 - 1024
)

// Workspace returns the device memory that a call needs beside its matrices: zero unless the configuration splits K.
func Workspace(p gemm.Problem, c gemm.Config) (partials, counters unit.Bytes) {
	if c.SplitK < 2 {
		return 0, 0
	}
	tiles := ceilDiv(p.M, c.BlockM) * ceilDiv(p.N, c.BlockN) * p.Batch
	return unit.Bytes(tiles * c.SplitK * c.BlockM * c.BlockN * 4), unit.Bytes(tiles * 4)
}

// Launch returns how to start the kernel for a call. GroupM and SplitK are taken from cfg, whose other fields are those of
// the kernel. A call that the kernel does not compute right is refused.
func (k *Kernel) Launch(call Call, cfg gemm.Config) (Launch, error) {
	p := call.Problem
	if err := p.Validate(); err != nil {
		return Launch{}, err
	}
	where := func(err *diag.Error) (Launch, error) { return Launch{}, err.At("launch of %s", k.Name) }
	need, have := call.Spec(k.Spec.Out, cfg), k.Spec
	if need.AlignA < have.AlignA || need.AlignB < have.AlignB || need.AlignC < have.AlignC {
		return where(diag.Inputf("rows of A, B and C are aligned to %d, %d and %d bytes, the kernel needs %d, %d and %d",
			need.AlignA, need.AlignB, need.AlignC, have.AlignA, have.AlignB, have.AlignC).Do("emit the kernel for Call.Spec"))
	}
	need.AlignA, need.AlignB, need.AlignC = have.AlignA, have.AlignB, have.AlignC
	if need.Key() != have {
		return where(diag.Inputf("the kernel is not for %s with config %s", p, cfg).Do("emit the kernel for Call.Spec"))
	}
	if err := call.check(); err != nil {
		return where(err)
	}
	tilesM, tilesN := ceilDiv(p.M, cfg.BlockM), ceilDiv(p.N, cfg.BlockN)
	if tilesM*tilesN > maxGridX || p.Batch > maxGridYZ || cfg.SplitK > maxGridYZ {
		return where(diag.Inputf("%d tiles, %d splits and a batch of %d exceed the grid of %d, %d and %d", tilesM*tilesN, cfg.SplitK, p.Batch, maxGridX, maxGridYZ, maxGridYZ).
			Do("use a larger tile or split the batch"))
	}
	if cfg.SplitK > 1 && (call.Partials == 0 || call.Counters == 0) {
		return where(diag.Inputf("split_k %d needs a workspace", cfg.SplitK).Do("allocate what Workspace says"))
	}
	perSplit := ceilDiv(ceilDiv(p.K, cfg.BlockK), cfg.SplitK) * cfg.BlockK
	groupM := min(max(1, cfg.GroupM), tilesM)
	values := map[string]uint64{
		"a": call.A.Address, "b": call.B.Address, "c": call.C.Address, "partials": call.Partials, "counters": call.Counters,
		"lda": uint64(call.A.LD), "ldb": uint64(call.B.LD), "ldc": uint64(call.C.LD),
		"stride_a": uint64(call.A.Stride), "stride_b": uint64(call.B.Stride), "stride_c": uint64(call.C.Stride),
		"m": uint64(p.M), "n": uint64(p.N), "k": uint64(p.K), "tiles_m": uint64(tilesM), "tiles_n": uint64(tilesN), "group_m": uint64(groupM),
		"k_per_split": uint64(perSplit), "alpha": uint64(math.Float32bits(call.Alpha)), "beta": uint64(math.Float32bits(call.Beta)),
	}
	return Launch{GridX: tilesM * tilesN, GridY: cfg.SplitK, GridZ: p.Batch, Threads: k.Threads, SharedMemory: k.SharedMemory, Params: pack(k.Kernel, values)}, nil
}

// check refuses matrices that overlap themselves or whose indices do not fit into 32 bits.
func (c Call) check() *diag.Error {
	p := c.Problem
	rowA, rowB := c.rows()
	for _, m := range []struct {
		name    string
		ld, row int
	}{{"A", c.A.LD, rowA}, {"B", c.B.LD, rowB}, {"C", c.C.LD, p.N}} {
		if m.ld < m.row {
			return diag.Inputf("leading dimension of %s is %d, its rows have %d elements", m.name, m.ld, m.row).Do("give at least %d", m.row)
		}
	}
	if max(p.M, p.N, p.K, c.A.LD, c.B.LD) > maxExtent {
		return diag.Inputf("a side or leading dimension of %s is above %d", p, maxExtent).Do("split the problem")
	}
	return nil
}

// rows returns the elements of the contiguous rows of A and B.
func (c Call) rows() (a, b int) {
	a, b = c.Problem.K, c.Problem.N
	if c.Problem.TransA() {
		a = c.Problem.M
	}
	if c.Problem.TransB() {
		b = c.Problem.K
	}
	return a, b
}

// pack lays the parameters of a kernel out as the driver takes them.
func pack(k *ptx.Kernel, values map[string]uint64) []byte {
	b := make([]byte, k.ParamBytes)
	for _, p := range k.Params {
		if p.Type.Bytes() == 8 {
			binary.LittleEndian.PutUint64(b[p.Offset:], values[p.Name])
		} else {
			binary.LittleEndian.PutUint32(b[p.Offset:], uint32(values[p.Name]))
		}
	}
	return b
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
