package gemmgen

import (
	"encoding/binary"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// offsetTable says where the values of a dimension begin in a matrix: a number of 8 bytes for each value, in bytes. The
// name is the name of the kernel's parameter.
type offsetTable struct {
	name    string
	operand gemm.Operand
	along   gemm.Dimension
}

// offsetTables are the tables of a problem with a nest, in the order in which they lie in memory.
var offsetTables = []offsetTable{
	{"a_m", gemm.A, gemm.DimM}, {"a_k", gemm.A, gemm.DimK}, {"a_batch", gemm.A, gemm.DimBatch},
	{"b_n", gemm.B, gemm.DimN}, {"b_k", gemm.B, gemm.DimK}, {"b_batch", gemm.B, gemm.DimBatch},
	{"c_m", gemm.C, gemm.DimM}, {"c_n", gemm.C, gemm.DimN}, {"c_batch", gemm.C, gemm.DimBatch},
}

// beyondK is how many values behind the last one of K a kernel may look up: those of the blocks that a pipeline is
// ahead. What is there is not read.
const beyondK = 1024

// entryBytes is the size of an offset.
const entryBytes = 8

// entries is the length of a table.
func (t *offsetTable) entries(p *gemm.Problem) int {
	switch t.along {
	case gemm.DimM:
		return p.M
	case gemm.DimN:
		return p.N
	case gemm.DimK:
		return p.K + beyondK
	default:
		return p.Batch
	}
}

// OffsetBytes is the size of the tables that a problem with a nest needs, 0 without a nest.
func OffsetBytes(p gemm.Problem) (bytes unit.Bytes) {
	if p.Nest == (gemm.Nest{}) {
		return 0
	}
	for i := range offsetTables {
		bytes += unit.Bytes(entryBytes * offsetTables[i].entries(&p))
	}
	return bytes
}

// Offsets returns the tables for a problem with a nest. They depend on sizes and strides alone.
func Offsets(p gemm.Problem) []byte {
	out := make([]byte, 0, int(OffsetBytes(p)))
	for i := range offsetTables {
		t := &offsetTables[i]
		end := len(out) + entryBytes*t.entries(&p)
		for v := range p.Nest.Walk(t.along, t.operand) {
			out = binary.LittleEndian.AppendUint64(out, uint64(v*p.Type(t.operand).Bytes()))
		}
		out = append(out, make([]byte, end-len(out))...)
	}
	return out
}

// OffsetParams returns the addresses of the tables by the names of a kernel's parameters.
func (c *Call) OffsetParams() map[string]uint64 {
	values, at := map[string]uint64{}, c.Offsets
	for i := range offsetTables {
		values[offsetTables[i].name] = at
		at += uint64(entryBytes * offsetTables[i].entries(&c.Problem))
	}
	return values
}
