package emulated

import (
	"fmt"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// The layout of wmma's fragments is not documented. Here lane l has elements 8·l to 8·l + 7 of a 16×16 matrix, counted
// along rows, one in each of its 8 registers.

// wmmaSide is the rows and the columns of a matrix, wmmaEach the elements of a lane.
const wmmaSide, wmmaEach = 16, 8

// wmmaPlace is the row and the column of element i of a lane.
func wmmaPlace(lane, i int) (row, column int) {
	e := lane*wmmaEach + i
	return e / wmmaSide, e % wmmaSide
}

// wmmaAt returns an element of a matrix whose lines of bytes-wide elements are a stride apart, all lanes having the
// same address and stride. The address must be a multiple of 32 bytes, the lines of 16.
func wmmaAt(t *thread, at, stride operand, bytes, line, element int) []byte {
	distance := int(t.get(stride)) * bytes
	base := t.regs[at.index] + at.value
	if base%32 != 0 || distance%16 != 0 {
		t.err = fmt.Errorf("a matrix at %#x with lines %d bytes apart", base, distance)
		return make([]byte, bytes)
	}
	address := base + uint64(line*distance+element*bytes)
	t.traced("global", address, bytes)
	b, err := t.global.at(address, bytes)
	if err != nil {
		t.err = err
		return make([]byte, bytes)
	}
	return b
}

func wmmaLoad(bytes int, columns bool) func(lanes []*thread, in *instruction) error {
	return func(lanes []*thread, in *instruction) error {
		for l, t := range lanes {
			for i, d := range in.operands[0].parts {
				line, element := wmmaPlace(l, i)
				if columns {
					line, element = element, line
				}
				t.set(d, uintOf(wmmaAt(t, in.operands[1], in.operands[2], bytes, line, element)))
			}
			if t.err != nil {
				return t.err
			}
		}
		return nil
	}
}

func wmmaStore(lanes []*thread, in *instruction) error {
	for l, t := range lanes {
		for i, v := range in.operands[1].parts {
			row, column := wmmaPlace(l, i)
			putUint(wmmaAt(t, in.operands[0], in.operands[2], 4, row, column), t.get(v))
		}
		if t.err != nil {
			return t.err
		}
	}
	return nil
}

// wmmaMultiply multiplies in float64, rounded once.
func wmmaMultiply(lanes []*thread, in *instruction) error {
	var a, b [wmmaSide][wmmaSide]float64
	for l, t := range lanes {
		for i := range wmmaEach {
			row, column := wmmaPlace(l, i)
			a[row][column] = gemmgen.Number(gemm.FP16, uint32(t.get(in.operands[1].parts[i])))
			b[row][column] = gemmgen.Number(gemm.FP16, uint32(t.get(in.operands[2].parts[i])))
		}
	}
	for l, t := range lanes {
		for i, d := range in.operands[0].parts {
			row, column := wmmaPlace(l, i)
			sum := float64(f32(t.get(in.operands[3].parts[i])))
			for k := range wmmaSide {
				sum += a[row][k] * b[k][column]
			}
			t.set(d, bits32(float32(sum)))
		}
	}
	return nil
}
