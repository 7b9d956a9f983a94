package kernel

import (
	"bytes"
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/origami-gemm/origami/core/gemm"
)

// A packed table has a row for each kernel, sorted by the key with which a row begins. The shipped tables are packed in
// the program and searched where they lie: to read their text would be a quarter of the time of a command.

// keyBytes is the length of a key: five numbers of two bytes, the type, and whether K is masked or B transposed.
const keyBytes = 12

type key [keyBytes]byte

// keyOf has all properties that the code of a kernel depends on, and the variant.
func keyOf(t gemm.DType, c *gemm.Config, variant bool) (k key) {
	for i, v := range [...]int{c.BlockM, c.BlockN, c.BlockK, c.NumStages, c.NumWarps} {
		binary.BigEndian.PutUint16(k[2*i:], uint16(v))
	}
	k[10] = byte(SameKernels(t))
	if variant {
		k[11] = 1
	}
	return k
}

// pack writes rows of numbers.
func pack[N interface{ numbers() []float64 }](rows map[key]N) []byte {
	var out []byte
	for _, k := range slices.SortedFunc(maps.Keys(rows), func(a, b key) int { return bytes.Compare(a[:], b[:]) }) {
		out = append(out, k[:]...)
		for _, v := range rows[k].numbers() {
			out = binary.BigEndian.AppendUint64(out, math.Float64bits(v))
		}
	}
	return out
}

// find fills v with the numbers of a row.
func find(table []byte, k key, v []float64) bool {
	size := keyBytes + 8*len(v)
	i := size * sort.Search(len(table)/size, func(i int) bool {
		return bytes.Compare(table[i*size:][:keyBytes], k[:]) >= 0
	})
	if i == len(table) || key(table[i:]) != k {
		return false
	}
	unpack(table[i:], v)
	return true
}

func unpack(row []byte, v []float64) {
	for j := range v {
		v[j] = math.Float64frombits(binary.BigEndian.Uint64(row[keyBytes+8*j:]))
	}
}

// all are the numbers of every row.
func all(table []byte, numbers int) iter.Seq[[]float64] {
	return func(yield func([]float64) bool) {
		for row := range slices.Chunk(table, keyBytes+8*numbers) {
			v := make([]float64, numbers)
			if unpack(row, v); !yield(v) {
				return
			}
		}
	}
}
