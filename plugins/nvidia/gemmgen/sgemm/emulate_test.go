//go:build !race

package sgemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/emu"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// trial is a configuration and a problem to run it on in the emulator.
type trial struct {
	config         gemm.Config
	transA, transB bool
	m, n, k, batch int
	// pad is added to every leading dimension, offset to every address, in elements.
	pad, offset int
	alpha, beta float32
}

func (r trial) String() string {
	return fmt.Sprintf("%s on %dx%dx%d batch %d, trans %t %t, pad %d, offset %d, alpha %g, beta %g", r.config, r.m, r.n,
		r.k, r.batch, r.transA, r.transB, r.pad, r.offset, r.alpha, r.beta)
}

// matrix is a batch of fp32 matrices in the emulator's memory, the elements between rows not numbers.
type matrix struct {
	gemmgen.Matrix
	bytes []byte
}

func newMatrix(address uint64, rows, cols, ld, batch int) *matrix {
	m := &matrix{Matrix: gemmgen.Matrix{Address: address, LD: ld, Stride: rows * ld}}
	m.bytes = make([]byte, ((batch-1)*m.Stride+(rows-1)*ld+cols)*4)
	for i := range m.bytes {
		m.bytes[i] = 0xFF
	}
	return m
}

func (m *matrix) at(batch, row, col int) []byte { return m.bytes[(batch*m.Stride+row*m.LD+col)*4:][:4] }

func (m *matrix) set(batch, row, col int, v float64) {
	binary.LittleEndian.PutUint32(m.at(batch, row, col), math.Float32bits(float32(v)))
}

func (m *matrix) get(batch, row, col int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(m.at(batch, row, col))))
}

// operands are the matrices of a trial, and what C should become.
type trialMatrices struct{ a, b, c, want *matrix }

// fill draws small integers, whose products and sums are exact.
func (r trial) fill(random *rand.Rand) (o trialMatrices) {
	place := func(base uint64, rows, cols int) *matrix {
		return newMatrix(base+uint64(4*r.offset), rows, cols, cols+r.pad, r.batch)
	}
	shape := func(trans bool, rows, cols int) (int, int) {
		if trans {
			return cols, rows
		}
		return rows, cols
	}
	rowsA, colsA := shape(r.transA, r.m, r.k)
	rowsB, colsB := shape(r.transB, r.k, r.n)
	o = trialMatrices{
		place(1<<32, rowsA, colsA), place(2<<32, rowsB, colsB), place(3<<32, r.m, r.n), place(3<<32, r.m, r.n),
	}
	draw := func() float64 { return float64(random.IntN(7) - 3) }
	for batch := range r.batch {
		for i := range rowsA * colsA {
			o.a.set(batch, i/colsA, i%colsA, draw())
		}
		for i := range rowsB * colsB {
			o.b.set(batch, i/colsB, i%colsB, draw())
		}
		for i := range r.m * r.n {
			row, column := i/r.n, i%r.n
			sum, was := 0.0, draw()
			for k := range r.k {
				rowA, colA := shape(r.transA, row, k)
				rowB, colB := shape(r.transB, k, column)
				sum += o.a.get(batch, rowA, colA) * o.b.get(batch, rowB, colB)
			}
			if r.beta != 0 {
				o.c.set(batch, row, column, was)
			}
			o.want.set(batch, row, column, float64(r.alpha)*sum+float64(r.beta)*was)
		}
	}
	return o
}

// run runs the trial in the emulator and compares every byte of C with what it should be.
func (r trial) run(t *testing.T, random *rand.Rand, backwards bool, trace emu.Trace) {
	t.Helper()
	p := fp32(r.m, r.n, r.k)
	p.Batch = r.batch
	p.SetTrans(r.transA, r.transB)
	call := gemmgen.NewCall(p)
	o := r.fill(random)
	call.A, call.B, call.C, call.Alpha, call.Beta = o.a.Matrix, o.b.Matrix, o.c.Matrix, r.alpha, r.beta
	call.Scratch = 4 << 32
	s := SpecFor(call, r.config)
	k, err := s.Emit(target.Target{CC: 80})
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	l, err := s.Launch(k, call)
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	memory := emu.Memory{o.a.Address: o.a.bytes, o.b.Address: o.b.bytes, o.c.Address: o.c.bytes,
		call.Scratch: make([]byte, int(s.Scratch(p)))}
	launch := func(k *gemmgen.Kernel, l *gemmgen.Launch, trace emu.Trace) {
		if err := emu.Run(emu.Launch{
			Text: k.Text, Params: l.Params, Grid: [3]int{l.GridX, l.GridY, l.GridZ}, Threads: l.Threads,
			Shared: int(l.SharedMemory), Backwards: backwards, Trace: trace,
		}, memory); err != nil {
			t.Fatalf("%s: %s: %v", r, k.Name, err)
		}
	}
	if k.Before != nil {
		launch(k.Before, l.Before, nil)
	}
	launch(k, &l, trace)
	for i := range o.c.bytes {
		if o.c.bytes[i] != o.want.bytes[i] {
			element := i / 4
			t.Fatalf("%s: %s: byte %d is %#x, want %#x: matrix %d, row %d, column %d", r, k.Name, i, o.c.bytes[i],
				o.want.bytes[i], element/o.c.Stride, element%o.c.Stride/o.c.LD, element%o.c.Stride%o.c.LD)
		}
	}
}

// TestEveryRungComputes runs every rung on odd, tiny and aligned problems, in all layouts, with a batch, beta and gaps
// between rows.
func TestEveryRungComputes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i, rung := range Rungs() {
		for j, r := range []trial{
			{m: 40, n: 36, k: 20},
			{m: 33, n: 35, k: 37, pad: 1},
			{m: 12, n: 140, k: 12, pad: 4, batch: 2},
			{m: 1, n: 1, k: 1},
			{m: 7, n: 66, k: 5, pad: 3, offset: 1},
		} {
			if (i+j)%2 == 1 && j != 1 { // every rung on odd sizes, and on half of the others
				continue
			}
			r.config, r.alpha, r.batch = rung.Config, 1, max(r.batch, 1)
			r.transA, r.transB = (i+j)%2 == 1, (i+j)/2%2 == 1
			if j%2 == 1 {
				r.alpha, r.beta = 2, -1
			}
			p := fp32(r.m, r.n, r.k)
			p.LDC = r.n + r.pad
			if _, why := Guard(&p, r.config); why != "" {
				r.m, r.n, r.k, r.pad, r.offset = 48, 32, 64, r.pad/4*4, 0
			}
			r.run(t, random, j%2 == 0, nil)
		}
	}
}

// TestEveryAxisComputes runs configurations that are no rungs.
func TestEveryAxisComputes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for i, config := range []string{
		"32x64x8,warps=2,stages=2,thread_m=4", "64x32x16,warps=2,stages=3,pad=4", "64x64x8,warps=2,stages=4,lane_map=quad",
		"64x64x16,warps=4,stages=3,shared_a=k,thread_m=4", "32x64x8,warps=1,stages=2,staging=registers,thread_m=16,lanes_m=2",
		"64x64x4,warps=4,stages=2,staging=registers,copy_width=2,read_width=2,thread_m=4,pad=2",
		"64x64x2,warps=4,stages=2,thread_m=4,copy_width=2",
		"64x32x4,warps=2,stages=1,staging=registers,shared_a=k,read_width=a1b4,copy_width=2",
		"64x64x8,warps=2,stages=1,staging=none", "32x64x32,warps=2,stages=5,pad=8,copy_width=1,read_width=1",
	} {
		for j := i % 2; j < 4; j += 2 { // half of the layouts each
			c, err := gemm.ParseConfig(config, gemm.Config{GroupM: 2, SplitK: 1, Kernel: Name}, axes...)
			if err != nil {
				t.Fatal(err)
			}
			r := trial{
				config: c, m: []int{64, 45}[(i+j)%2], n: []int{68, 97, 64}[(i+j)%3], k: []int{40, 21, 8}[(i+j)%3], batch: 1,
				transA: j%2 == 1, transB: j/2 == 1, alpha: 1, pad: []int{0, 4, 1}[i%3],
			}
			r.run(t, random, i%2 == 0, nil)
		}
	}
}
