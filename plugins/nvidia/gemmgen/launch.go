package gemmgen

import (
	"encoding/binary"
	"maps"
	"math"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// Launch is what starts a kernel: the grid, and the parameters as the driver takes them in one buffer.
type Launch struct {
	GridX, GridY, GridZ int
	Threads             int
	SharedMemory        unit.Bytes
	Params              []byte
	// Offsets are where the parameters begin, for kernels with tensor maps: the assembler aligns these by their address,
	// which it alone knows, so the driver has to place the parameters one by one. Others are placed as one buffer.
	Offsets []uintptr
	// Maps are the tensor maps among the parameters. Only the driver can write them.
	Maps []TensorMap
	// Before is the launch of Kernel.Before, or nil.
	Before *Launch
}

// Start returns the launch of a kernel for a call, one CTA for each output tile, split and matrix. need returns the key
// of the program that the call needs. complete adds what a family has beside that, and returns the values of the
// parameters that it has alone; it may change the call.
func Start(k *Kernel, call Call, c gemm.Config, need func() (any, *diag.Error),
	complete func(l *Launch, call *Call, t Tiling) (map[string]uint64, *diag.Error),
) (Launch, error) {
	if err := call.Problem.Validate(); err != nil {
		return Launch{}, err
	}
	start := func() (l Launch, err *diag.Error) {
		key, err := need()
		if err != nil {
			return l, err
		}
		if key != k.Key {
			return l, diag.Inputf("the kernel is not for %s with config %s", call.Problem, c).Do("emit a kernel for the call")
		}
		t, err := call.Tile(c)
		if err != nil {
			return l, err
		}
		l = Launch{
			GridX: t.TilesM * t.TilesN, GridY: t.Splits, GridZ: t.Batch, Threads: k.Threads, SharedMemory: k.SharedMemory,
		}
		own, err := complete(&l, &call, t)
		if err != nil {
			return l, err
		}
		values := call.Params(t)
		maps.Copy(values, own)
		l.Params = Pack(k.Kernel, values)
		return l, nil
	}
	l, err := start()
	if err != nil {
		return Launch{}, err.At("launch of %s", k.Name)
	}
	return l, nil
}

// Narrow is the error for a call whose rows of A, B and C are aligned to fewer bytes than a kernel needs.
func Narrow(alignA, alignB, alignC, needA, needB, needC int) *diag.Error {
	return diag.Inputf("rows of A, B and C are aligned to %d, %d and %d bytes, the kernel needs %d, %d and %d",
		alignA, alignB, alignC, needA, needB, needC).Do("emit a kernel for the call")
}

// TensorMap describes a batch of matrices to the copies of tensor tiles. Each row of a tile is 128 bytes long, and is
// written to shared memory in the 128-byte swizzle.
type TensorMap struct {
	// Offset is the place of the map among the parameters.
	Offset  int
	DType   gemm.DType
	Address uint64
	// Sizes are elements: of a contiguous row, the rows, the matrices. Strides are bytes: from one row to the next, from
	// one matrix to the next. Box is the tile.
	Sizes   [3]uint64
	Strides [2]uint64
	Box     [3]uint32
}

// maxGridX limits a grid. Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
const maxGridX = math.MaxInt32

// Workspace returns the device memory that a call needs beside its matrices: zero unless the configuration splits K,
// else a block of fp32 sums per output tile and split, and a counter per output tile and warp, of which a family may
// use one.
func Workspace(p gemm.Problem, c gemm.Config) (partials, counters unit.Bytes) {
	if c.SplitK < 2 {
		return 0, 0
	}
	tiles := ceilDiv(p.M, c.BlockM) * ceilDiv(p.N, c.BlockN) * p.Batch
	return unit.Bytes(tiles * c.SplitK * c.BlockM * c.BlockN * 4), unit.Bytes(tiles * max(c.NumWarps, 1) * 4)
}

// WorkspaceOf returns the device memory that a program needs for a call beside its matrices: what it says itself, else
// what Workspace says.
func WorkspaceOf(program Program, p gemm.Problem, c gemm.Config) (partials, counters unit.Bytes) {
	if own, ok := program.(interface {
		Workspace(p gemm.Problem) (partials, counters unit.Bytes)
	}); ok {
		return own.Workspace(p)
	}
	return Workspace(p, c)
}

// Tiling is how a configuration divides a call into CTAs: one per output tile, split of K and matrix of the batch.
type Tiling struct {
	TilesM, TilesN int
	// GroupM is how many rows of tiles are walked together, at most TilesM.
	GroupM int
	// Splits is how many CTAs share an output tile, Batch the number of matrices.
	Splits, Batch int
	// KPerSplit is the part of K that one split sums over, a multiple of block_k.
	KPerSplit int
}

// Tile divides a call. It refuses calls whose matrices overlap themselves, and those that exceed the grid or lack the
// workspace.
func (c Call) Tile(cfg gemm.Config) (Tiling, *diag.Error) {
	p := c.Problem
	if err := c.check(); err != nil {
		return Tiling{}, err
	}
	t := Tiling{
		TilesM: ceilDiv(p.M, cfg.BlockM), TilesN: ceilDiv(p.N, cfg.BlockN), Splits: cfg.SplitK, Batch: p.Batch,
		KPerSplit: ceilDiv(ceilDiv(p.K, cfg.BlockK), cfg.SplitK) * cfg.BlockK,
	}
	t.GroupM = min(max(1, cfg.GroupM), t.TilesM)
	if tiles := t.TilesM * t.TilesN; tiles > maxGridX || t.Batch > target.GridYZ || t.Splits > target.GridYZ {
		return Tiling{}, diag.Inputf("%d tiles, %d splits and a batch of %d exceed the grid of %d, %d and %d",
			tiles, t.Splits, t.Batch, maxGridX, target.GridYZ, target.GridYZ).Do("use a larger tile or split the batch")
	}
	if p.Epilogue.Bias && c.Bias == 0 {
		return Tiling{}, diag.Inputf("%s has a bias, and the call no address of it", p).Do("give one")
	}
	for _, s := range []Scales{c.ScaleA, c.ScaleB} {
		if p.Epilogue.Scales && (s.Address == 0 || s.Step&^1 != 0) {
			return Tiling{}, diag.Inputf("%s has scales, and the call no address of them or a step of %d", p, s.Step).
				Do("give an address, and a step of 0 or 1")
		}
	}
	if p.Epilogue.Residual && c.R == 0 {
		return Tiling{}, diag.Inputf("%s adds R, and the call has no address of it", p).Do("give one")
	}
	if t.Splits > 1 && (c.Partials == 0 || c.Counters == 0) {
		return Tiling{}, diag.Inputf("split_k %d needs a workspace", t.Splits).Do("allocate what Workspace says")
	}
	return t, nil
}

// Params are the values of the parameters that kernels have in common, by name: where the matrices are, sizes, tiles,
// workspace and scalars.
func (c Call) Params(t Tiling) map[string]uint64 {
	p, added := c.Problem, c.R
	if !p.Epilogue.Residual {
		added = c.C.Address
	}
	values := map[string]uint64{
		"a": c.A.Address, "b": c.B.Address, "c": c.C.Address, "bias": c.Bias, "r": added,
		"scale_a": c.ScaleA.Address, "scale_b": c.ScaleB.Address,
		"step_a": uint64(c.ScaleA.Step), "step_b": uint64(c.ScaleB.Step),
		"lda": uint64(c.A.LD), "ldb": uint64(c.B.LD), "ldc": uint64(c.C.LD),
		"stride_a": uint64(c.A.Stride), "stride_b": uint64(c.B.Stride), "stride_c": uint64(c.C.Stride),
		"m": uint64(p.M), "n": uint64(p.Columns()), "k": uint64(p.K), "partials": c.Partials, "counters": c.Counters,
		"tiles_m": uint64(t.TilesM), "tiles_n": uint64(t.TilesN), "group_m": uint64(t.GroupM),
		"k_per_split": uint64(t.KPerSplit),
		"alpha":       uint64(math.Float32bits(c.Alpha)), "beta": uint64(math.Float32bits(c.Beta)),
	}
	if p.Nest != (gemm.Nest{}) {
		maps.Copy(values, c.OffsetParams())
	}
	return values
}

// Pack lays out the parameters of a kernel as the driver takes them.
func Pack(k *ptx.Kernel, values map[string]uint64) []byte {
	b := make([]byte, k.ParamBytes)
	for _, p := range k.Params {
		switch p.Type.Bytes() {
		case 8:
			binary.LittleEndian.PutUint64(b[p.Offset:], values[p.Name])
		case 4:
			binary.LittleEndian.PutUint32(b[p.Offset:], uint32(values[p.Name]))
		default: // a tensor map, for the driver to write
		}
	}
	return b
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
