//go:build !race

package mma

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/emu"
)

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
	element := emu.ElementOf(s.dtype.String())
	if s.dtype == gemm.TF32 {
		element = "f32"
	}
	bits := emu.Narrow(element, v)
	for i := range s.at(batch, row, col) {
		s.at(batch, row, col)[i] = byte(bits >> (8 * i))
	}
}

// trial is a kernel and a problem to run it on.
type trial struct {
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
func (r trial) run(t *testing.T, random *rand.Rand, backwards bool) {
	t.Helper()
	p := problem(r.m, r.n, r.k, r.batch, r.majors[0] == 'm', r.majors[1] == 'k')
	p.DType, p.Epilogue = r.in, r.epilogue
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

	base := gemm.Config{NumWarps: 4, NumStages: 2, GroupM: 2, SplitK: 1, Kernel: Name}
	config, err := gemm.ParseConfig(r.config, base, axes...)
	if err != nil {
		t.Fatal(err)
	}
	partials, counters := gemmgen.Workspace(p, config)
	call.Partials, call.Counters = 4<<32, 5<<32
	memory := emu.Memory{
		a.Address: a.bytes, b.Address: b.bytes, c.Address: c.bytes,
		4 << 32: make([]byte, int(partials)), 5 << 32: make([]byte, int(counters)),
		bias.Address: bias.bytes,
	}
	s := SpecFor(call, r.out, config)
	if _, reason, detail := s.Check(limits(227 << 10)); reason != "" {
		t.Fatalf("%s: %s: %s", r, reason, detail)
	}
	k, err := s.Emit(sm(r.target))
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	l, err := s.Launch(k, call)
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	if err := emu.Run(emu.Launch{
		Text: k.Text, Params: l.Params, Grid: [3]int{l.GridX, l.GridY, l.GridZ}, Threads: l.Threads,
		Shared: int(l.SharedMemory), Backwards: backwards,
	}, memory); err != nil {
		t.Fatalf("%s: %s: %v", r, k.Name, err)
	}
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

// layouts are the layouts that the family has for a type.
func layoutsOf(d gemm.DType) []string {
	if d.Bytes() == 1 {
		return []string{"kk"}
	}
	return []string{"kn", "kk", "mn", "mk"}
}

var allTypes = []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP8, gemm.FP8E5M2, gemm.INT8, gemm.TF32, gemm.FP32}

// TestEveryTypeComputes runs kernels of every type and layout on aligned and unaligned problems.
func TestEveryTypeComputes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, d := range allTypes {
		for i, majors := range layoutsOf(d) {
			out := outputs(d)[i%len(outputs(d))]
			for j, r := range []trial{
				{config: "32x64x32,stages=3", m: 64, n: 64, k: 96},
				{config: "16x32x64,stages=2", m: 33, n: 35, k: 71},
				{config: "64x16x32,stages=4", m: 50, n: 34, k: 70, pad: 2},
				{config: "32x32x64,stages=2,split=3", m: 36, n: 28, k: 200, pad: 4, batch: 2},
				{config: "16x16x128,stages=2", m: 7, n: 9, k: 5, pad: 3, offset: 1},
				{config: "32x64x32,stages=3,split=2", m: 45, n: 37, k: 77, pad: 3, batch: 2}, // ragged, all aligned to 16 bytes
				{config: "64x32x32,stages=2", m: 45, n: 85, k: 13, pad: 3},
				{config: "64x64x32,stages=2,warps=8", m: 1, n: 1, k: 1},
			} {
				r.majors, r.in, r.out, r.alpha, r.batch = majors, d, out, 1, max(r.batch, 1)
				if j%2 == 1 {
					r.alpha, r.beta = 2, -1
				}
				if (d == gemm.BF16 || d == gemm.FP8E5M2) && j%3 != 1 {
					continue // differ from fp16 and fp8 in the name of the instruction alone
				}
				r.target = []int{89, 90}[j/2%2] // without and with fp8 as fp16
				r.run(t, random, j%2 == 0)
			}
		}
	}
}

// TestEveryWarpGridComputes runs kernels whose warps share a tile in another way than the family derives.
func TestEveryWarpGridComputes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for i, config := range []string{
		"64x32x32,stages=2,warp_count_m=1", "64x32x32,stages=3,warp_count_m=2", "32x64x64,stages=2,warp_count_k=2",
		"32x64x128,stages=2,warp_count_k=4", "64x64x64,stages=2,warps=8,warp_count_m=1",
		"16x64x128,stages=2,warp_count_k=4,split=2",
		"64x64x64,stages=2,warps=8,warp_count_m=4,warp_count_k=2",
	} {
		for j, d := range []gemm.DType{gemm.FP16, gemm.TF32, gemm.FP32, gemm.INT8} {
			if (i+j)%2 == 0 && d != gemm.FP16 {
				continue
			}
			majors := layoutsOf(d)[i%len(layoutsOf(d))]
			trial{
				config: config, majors: majors, in: d, out: outputs(d)[0], m: 40, n: 34 + 2*j, k: 150, batch: 1, pad: 2 * j,
				alpha: 1, target: 80,
			}.run(t, random, i%2 == 0)
		}
	}
}

// TestEpiloguesCompute: the bias is added after alpha, beta and the splits of K, and the activation comes last.
func TestEpiloguesCompute(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for i, d := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP8, gemm.FP32} {
		for j, r := range []trial{
			{config: "32x64x32,stages=3", m: 33, n: 40, k: 70, epilogue: gemm.Epilogue{Bias: true}},
			{config: "16x32x64,stages=2,split=3", m: 20, n: 35, k: 200, beta: 2,
				epilogue: gemm.Epilogue{Bias: true, Activation: gemm.ReLU}},
			{config: "64x256x32,stages=2,warps=8", m: 40, n: 201, k: 33, pad: 3, beta: -1,
				epilogue: gemm.Epilogue{Activation: gemm.ReLU}},
			{config: "32x32x32,stages=2", m: 31, n: 33, k: 20, batch: 2,
				epilogue: gemm.Epilogue{Bias: true, Activation: gemm.ReLU}},
		} {
			r.majors, r.in, r.out = layoutsOf(d)[0], d, floatOutputs[(i+j)%len(floatOutputs)]
			r.alpha, r.batch, r.target = 2, max(r.batch, 1), 90
			r.run(t, random, j%2 == 0)
		}
	}
}

// TestEpilogueRefused: a bias without an address, and integers.
func TestEpilogueRefused(t *testing.T) {
	p := problem(64, 64, 64, 1, false, false)
	p.Epilogue.Bias = true
	s := SpecFor(gemmgen.NewCall(p), gemm.FP16, gemm.Config{BlockM: 32, BlockN: 32, BlockK: 32, NumWarps: 4, NumStages: 2,
		GroupM: 1, SplitK: 1, Kernel: Name})
	if _, err := s.Launch(emit(t, s), gemmgen.NewCall(p)); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("a bias without an address: %v", err)
	}
	s.DType, s.Out, s.BMajor = gemm.INT8, gemm.INT32, gemm.MajorK
	if reason, _ := s.belongs(); reason == "" {
		t.Error("a bias is added to integers")
	}
}
