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

// configOf reads a configuration of a family.
func configOf(t *testing.T, text string, f gemmgen.Family) gemm.Config {
	t.Helper()
	base := gemm.Config{NumWarps: 4, NumStages: 2, GroupM: 2, SplitK: 1, Kernel: f.Name()}
	return must.Get(gemm.ParseConfig(text, base, f.Axes()...))(t)
}

// How to run a kernel: on a target, with the last CTA first, with a trace.
type how struct {
	cc        int
	backwards bool
	trace     Trace
}

// compute runs the kernel of a configuration for a call, with the workspace that it needs. The counters are zero
// afterwards.
func compute(t *testing.T, f gemmgen.Family, call gemmgen.Call, out gemm.DType, c gemm.Config, m Memory, h how) {
	t.Helper()
	partials, counters := gemmgen.Workspace(call.Problem, c)
	call.Partials, call.Counters, call.Scratch = 4<<32, 5<<32, 7<<32
	m[call.Partials], m[call.Counters] = make([]byte, int(partials)), make([]byte, int(counters))
	s, reason, detail := f.Program(call, out, c, limits)
	must.Need(t, reason == "", "%s of %s: %s: %s", c, call.Problem, reason, detail)
	if more, ok := s.(gemmgen.Scratcher); ok {
		m[call.Scratch] = make([]byte, int(more.Scratch(call.Problem)))
	}
	k := must.Get(s.Emit(target.Target{CC: h.cc}))(t)
	l := must.Get(s.Launch(k, call))(t)
	if k.Before != nil {
		start(t, k.Before, l.Before, m, how{backwards: h.backwards})
	}
	start(t, k, &l, m, h)
	for i, v := range m[call.Counters] {
		must.Need(t, v == 0, "%s: byte %d of the counters is %d after the launch", k.Name, i, v)
	}
}

// start runs a launch of a kernel in the emulator.
func start(t *testing.T, k *gemmgen.Kernel, l *gemmgen.Launch, m Memory, h how) {
	t.Helper()
	if err := Run(Launch{
		Text: k.Text, Params: l.Params, Grid: [3]int{l.GridX, l.GridY, l.GridZ}, Threads: l.Threads,
		Shared: int(l.SharedMemory), Backwards: h.backwards, Trace: h.trace,
	}, m); err != nil {
		t.Fatalf("%s: %v", k.Name, err)
	}
}

// stored is a matrix in the memory of the emulator, every byte of it inside one region that ends with its last element.
// Elements between rows are not numbers.
type stored struct {
	gemmgen.Matrix
	dtype gemm.DType
	bytes []byte
}

func newStored(address uint64, d gemm.DType, rows, cols, ld, batch int) *stored {
	s := &stored{Matrix: gemmgen.Matrix{Address: address, LD: ld, Stride: rows * ld}, dtype: d}
	s.bytes = make([]byte, ((batch-1)*s.Stride+(rows-1)*ld+cols)*d.Bytes())
	for i := range s.bytes {
		s.bytes[i] = 0xFF
	}
	return s
}

// storedOf is a matrix of a problem, with so many elements behind each row and in front of the first.
func storedOf(p gemm.Problem, o gemm.Operand, d gemm.DType, pad, offset int) *stored {
	rows, cols := p.Rows(o)
	return newStored(uint64(o+1)<<32+uint64(offset*d.Bytes()), d, rows, cols, cols+pad, p.Batch)
}

func (s *stored) at(batch, row, col int) []byte {
	i := (batch*s.Stride + row*s.LD + col) * s.dtype.Bytes()
	return s.bytes[i : i+s.dtype.Bytes()]
}

func (s *stored) set(batch, row, col int, v float64) { put(s.at(batch, row, col), s.dtype, v) }

// put writes an element. One of tf32 is fp32 in memory, which the kernel must round and not truncate.
func put(b []byte, d gemm.DType, v float64) {
	if d == gemm.TF32 {
		d, v = gemm.FP32, v*(1-0x1p-20)
	}
	putUint(b, uint64(gemmgen.Bits(d, v)))
}

// fill draws the elements of a matrix of rows and columns, which may be stored transposed, and returns them.
func (s *stored) fill(batch, rows, columns int, transposed bool, draw func() float64) []float64 {
	values := make([]float64, batch*rows*columns)
	for i := range values {
		z, row, column := i/(rows*columns), i/columns%rows, i%columns
		if transposed {
			row, column = column, row
		}
		values[i] = draw()
		s.set(z, row, column, values[i])
	}
	return values
}

// product fills A and B, and returns A·B.
func product(p gemm.Problem, a, b *stored, draw func() float64) []float64 {
	av, bv := a.fill(p.Batch, p.M, p.K, p.TransA(), draw), b.fill(p.Batch, p.K, p.N, p.TransB(), draw)
	c := make([]float64, p.Batch*p.M*p.N)
	for i := range c {
		z, row, column := i/(p.M*p.N), i/p.N, i%p.N // of all matrices
		for k := range p.K {
			c[i] += av[row*p.K+k] * bv[(z*p.K+k)*p.N+column]
		}
	}
	return c
}

// trial is a kernel and a problem to run it on.
type trial struct {
	family         gemmgen.Family
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
	a, b := storedOf(p, gemm.A, r.in, r.pad, r.offset), storedOf(p, gemm.B, r.in, r.pad, r.offset)
	c, want := storedOf(p, gemm.C, r.out, r.pad, r.offset), storedOf(p, gemm.C, r.out, r.pad, r.offset)
	call := gemmgen.NewCall(p)
	call.Alpha, call.Beta, call.A, call.B, call.C = r.alpha, r.beta, a.Matrix, b.Matrix, c.Matrix
	call.Bias = 6<<32 + uint64(r.out.Bytes())
	bias, added := newStored(call.Bias, r.out, 1, r.n, r.n, 1), make([]float64, r.n)
	draw := func() float64 { return float64(random.IntN(7) - 3) }
	if r.epilogue.Bias {
		added = bias.fill(1, 1, r.n, false, draw)
	}
	for i, sum := range product(p, a, b, draw) {
		batch, row, column, was := i/(r.m*r.n), i/r.n%r.m, i%r.n, draw()
		if r.beta != 0 {
			c.set(batch, row, column, was)
		}
		want.set(batch, row, column, r.epilogue.Activation.Of(float64(r.alpha)*sum+float64(r.beta)*was+added[column]))
	}
	memory := Memory{a.Address: a.bytes, b.Address: b.bytes, c.Address: c.bytes, bias.Address: bias.bytes}
	compute(t, r.family, call, r.out, configOf(t, r.config, r.family), memory, how{r.target, backwards, trace})
	for i := range c.bytes {
		if c.bytes[i] != want.bytes[i] {
			element := i / r.out.Bytes()
			t.Fatalf("%s: byte %d is %#x, want %#x: matrix %d, row %d, column %d", r, i, c.bytes[i],
				want.bytes[i], element/c.Stride, element%c.Stride/c.LD, element%c.Stride%c.LD)
		}
	}
}
