package emulated

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// family is a kernel family with its program for a call, which the test fails without.
type family struct {
	gemmgen.Family
	program func(*testing.T, gemmgen.Call, gemm.DType, gemm.Config) gemmgen.Program
}

// configOf reads a configuration of a family.
func configOf(t *testing.T, text string, f family) gemm.Config {
	t.Helper()
	base := gemm.Config{NumWarps: 4, NumStages: 2, GroupM: 2, SplitK: 1, Kernel: f.Name()}
	return must.Get(gemm.ParseConfig(text, base, f.Axes()...))(t)
}

// stored is a matrix in the memory of the emulator, every byte of it inside one region that ends with its last element.
// Elements between rows are not numbers.
type stored struct {
	gemmgen.Matrix
	dtype      gemm.DType
	rows, cols int
	bytes      []byte
}

func newStored(address uint64, d gemm.DType, rows, cols, ld, batch int) *stored {
	s := &stored{Matrix: gemmgen.Matrix{Address: address, LD: ld, Stride: rows * ld}, dtype: d, rows: rows, cols: cols}
	s.bytes = make([]byte, ((batch-1)*s.Stride+(rows-1)*ld+cols)*d.Bytes())
	for i := range s.bytes {
		s.bytes[i] = 0xFF
	}
	return s
}

func (s *stored) at(batch, row, col int) []byte {
	i := (batch*s.Stride + row*s.LD + col) * s.dtype.Bytes()
	return s.bytes[i : i+s.dtype.Bytes()]
}

func (s *stored) set(batch, row, col int, v float64) {
	if s.dtype == gemm.TF32 {
		v *= 1 - 0x1p-20 // fp32 in memory, which the kernel must round and not truncate
	}
	element := ElementOf(s.dtype.String())
	if s.dtype == gemm.TF32 {
		element = "f32"
	}
	bits := Narrow(element, v)
	for i := range s.at(batch, row, col) {
		s.at(batch, row, col)[i] = byte(bits >> (8 * i))
	}
}

// trial is a kernel and a problem to run it on.
type trial struct {
	family         family
	config, majors string
	in, out        gemm.DType
	m, n, k, batch int
	// pad is added to every leading dimension, offset to every address, in elements.
	pad, offset int
	alpha, beta float32
	epilogue    gemm.Epilogue
	// target is what the kernel is for.
	target int
}

func (r trial) String() string {
	return fmt.Sprintf("%s %s %s to %s, %dx%dx%d batch %d, pad %d, offset %d, alpha %g, beta %g, epilogue %q",
		r.config, r.majors, r.in, r.out, r.m, r.n, r.k, r.batch, r.pad, r.offset, r.alpha, r.beta, r.epilogue)
}

// run runs the trial in the emulator, with operands of small integers, whose products and sums are exact in every type,
// and compares every byte of C with what it should be.
func (r trial) run(t *testing.T, random *rand.Rand, backwards bool, trace Trace) {
	t.Helper()
	p := gemm.New(r.m, r.n, r.k)
	p.Batch, p.DType, p.Epilogue = r.batch, r.in, r.epilogue
	p.SetTrans(r.majors[0] == 'm', r.majors[1] == 'k')
	call := gemmgen.NewCall(p)
	call.Alpha, call.Beta = r.alpha, r.beta
	rowsA, rowsB := r.m, r.k
	if p.TransA() {
		rowsA = r.k
	}
	if p.TransB() {
		rowsB = r.n
	}
	place := func(base uint64, d gemm.DType, rows, cols int) *stored {
		return newStored(base+uint64(r.offset*d.Bytes()), d, rows, cols, cols+r.pad, r.batch)
	}
	a, b := place(1<<32, r.in, rowsA, call.A.LD), place(2<<32, r.in, rowsB, call.B.LD)
	c, want := place(3<<32, r.out, r.m, r.n), place(3<<32, r.out, r.m, r.n)
	call.A, call.B, call.C = a.Matrix, b.Matrix, c.Matrix
	call.Bias = 6<<32 + uint64(r.out.Bytes())
	bias := newStored(call.Bias, r.out, 1, r.n, r.n, 1)
	r.fill(random, p, a, b, c, want, bias)

	config := configOf(t, r.config, r.family)
	partials, counters := gemmgen.Workspace(p, config)
	call.Partials, call.Counters, call.Scratch = 4<<32, 5<<32, 7<<32
	memory := Memory{
		a.Address: a.bytes, b.Address: b.bytes, c.Address: c.bytes, bias.Address: bias.bytes,
		4 << 32: make([]byte, int(partials)), 5 << 32: make([]byte, int(counters)),
	}
	s := r.family.program(t, call, r.out, config)
	if more, ok := s.(gemmgen.Scratcher); ok {
		memory[call.Scratch] = make([]byte, int(more.Scratch(p)))
	}
	k, err := s.Emit(target.Target{CC: r.target})
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	l, err := s.Launch(k, call)
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	if k.Before != nil {
		start(t, k.Before, l.Before, memory, backwards, nil)
	}
	start(t, k, &l, memory, backwards, trace)
	for i := range c.bytes {
		if c.bytes[i] != want.bytes[i] {
			element := i / r.out.Bytes()
			t.Fatalf("%s: %s: byte %d is %#x, want %#x: matrix %d, row %d, column %d", r, k.Name, i, c.bytes[i],
				want.bytes[i], element/c.Stride, element%c.Stride/c.LD, element%c.Stride%c.LD)
		}
	}
	for i, v := range memory[5<<32] {
		if v != 0 {
			t.Fatalf("%s: byte %d of the counters is %d after the launch", r, i, v)
		}
	}
}

// start runs a launch of a kernel in the emulator.
func start(t *testing.T, k *gemmgen.Kernel, l *gemmgen.Launch, m Memory, backwards bool, trace Trace) {
	t.Helper()
	if err := Run(Launch{
		Text: k.Text, Params: l.Params, Grid: [3]int{l.GridX, l.GridY, l.GridZ}, Threads: l.Threads,
		Shared: int(l.SharedMemory), Backwards: backwards, Trace: trace,
	}, m); err != nil {
		t.Fatalf("%s: %v", k.Name, err)
	}
}

// fill sets the operands, C and what C should become.
func (r trial) fill(random *rand.Rand, p gemm.Problem, a, b, c, want, bias *stored) {
	draw := func() float64 { return float64(random.IntN(7) - 3) }
	added := make([]float64, r.n)
	for i := range added {
		if r.epilogue.Bias {
			added[i] = draw()
			bias.set(0, 0, i, added[i])
		}
	}
	for batch := range r.batch {
		av, bv := make([]float64, r.m*r.k), make([]float64, r.k*r.n)
		for i := range av {
			row, k := i/r.k, i%r.k
			av[i] = draw()
			if p.TransA() {
				row, k = k, row
			}
			a.set(batch, row, k, av[i])
		}
		for i := range bv {
			k, column := i/r.n, i%r.n
			bv[i] = draw()
			if p.TransB() {
				k, column = column, k
			}
			b.set(batch, k, column, bv[i])
		}
		for i := range r.m * r.n {
			row, column := i/r.n, i%r.n
			sum, was := 0.0, draw()
			for k := range r.k {
				sum += av[row*r.k+k] * bv[k*r.n+column]
			}
			if r.beta != 0 {
				c.set(batch, row, column, was)
			}
			want.set(batch, row, column, r.epilogue.Activation.Of(float64(r.alpha)*sum+float64(r.beta)*was+added[column]))
		}
	}
}
