package sgemm

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

func fp32(m, n, k int) gemm.Problem {
	p := gemm.New(m, n, k)
	p.DType, p.Out = gemm.FP32, gemm.FP32
	return p
}

// turnOf returns what the kernel of a rung does in a turn of the K loop, for row-major matrices.
func turnOf(t *testing.T, rung string) (Spec, Turn) {
	t.Helper()
	r, ok := FindRung(rung)
	must.Need(t, ok, "no rung %s", rung)
	s := SpecFor(gemmgen.NewCall(fp32(4096, 4096, 4096)), r.Config)
	turn, reason, detail := s.Turn()
	must.Need(t, reason == "", "%s: %s: %s", rung, reason, detail)
	return s, turn
}

// TestRungsBelong: every rung is a configuration that fits an SM of today, and no two are the same.
func TestRungsBelong(t *testing.T) {
	must.Do(t, gemm.CheckAxes(axes))
	seen := map[gemm.Config]string{}
	for _, r := range Rungs() {
		other, ok := seen[r.Config]
		must.That(t, !ok && r.Doc != "", "%s is %s", r.Name, other)
		seen[r.Config] = r.Name
		s := SpecFor(gemmgen.NewCall(fp32(4096, 4096, 4096)), r.Config)
		_, reason, detail := s.Check(gemmgen.Limits{
			RegistersPerThread: 255, RegisterFile: 65536, RegisterGranule: 8, SharedMemory: 99 << 10,
		})
		must.That(t, reason == "", "%s: %s: %s", r.Name, reason, detail)
	}
}

// TestSeedRungs: shared memory, barriers, loads and conflicts of the published kernels, per thread and 32 indices of K.
func TestSeedRungs(t *testing.T) {
	for _, want := range []struct {
		rung                   string
		shared, barriers       int
		global, shared4, wide4 int // loads of 4 bytes from global and shared memory, of 16 bytes from shared memory
	}{
		{RungNaive, 0, 0, 64, 0, 0},
		{RungTiled, 8192, 2, 2, 32, 8},
		{RungPadded, 8448, 2, 2, 64, 0},
		{RungDoubleBuffer, 16896, 1, 2, 64, 0},
	} {
		s, turn := turnOf(t, want.rung)
		r, _, _ := s.Resources()
		must.That(t, int(r.SharedMemory) == want.shared && turn.Barriers*32/turn.K == want.barriers && r.Threads == 1024,
			"%s: %+v, %d barriers", want.rung, r, turn.Barriers)
		count := map[[2]int]int{}
		for i := range turn.Accesses {
			a := &turn.Accesses[i]
			count[[2]int{int(a.Instruction), a.Bytes}] += a.Count * 32 / turn.K
			if least, most := a.Wavefronts(); a.Conflicts() != 1 || least > most {
				t.Errorf("%s: %s of %v conflicts, degree %g", want.rung, a.Instruction, a.Operand, a.Conflicts())
			}
		}
		got := [3]int{
			count[[2]int{int(LoadGlobal), 4}], count[[2]int{int(LoadShared), 4}], count[[2]int{int(LoadShared), 16}],
		}
		must.That(t, got == [3]int{want.global, want.shared4, want.wide4} && turn.FMAs*32/turn.K == 32,
			"%s: loads %v, want %+v", want.rung, got, want)
	}
}

// TestConflicts: the degree of a column read of a tile that is 32 words wide is 32, and 1 with rows of 33 words.
func TestConflicts(t *testing.T) {
	for stride, want := range map[int]float64{0: 1, 1: 1, 32: 32, 33: 1, 34: 2, 36: 4} {
		a := Access{Instruction: LoadShared, Bytes: 4, Lanes: 32}
		for lane := range a.Shared {
			a.Shared[lane] = lane * stride * 4
		}
		must.Equal(t, a.Conflicts(), want, "rows of", stride, "words: degree")
	}
}

// TestGuard: math=wmma is refused with the reason and the rung that computes the problem, and nothing else is.
func TestGuard(t *testing.T) {
	wmma, _ := FindRung(RungWMMA)
	naive, _ := FindRung(RungNaive)
	const apart = "rows are no multiples of 16 bytes apart, or matrices of 32"
	limits := gemmgen.Limits{RegistersPerThread: 255, RegisterFile: 65536, SharedMemory: 99 << 10}
	for _, c := range []struct {
		change func(p *gemm.Problem)
		why    string
	}{
		{func(*gemm.Problem) {}, ""},
		{func(p *gemm.Problem) { p.M = 15 }, "M is 15, no multiple of 16"},
		{func(p *gemm.Problem) { p.N = 17 }, "N is 17, no multiple of 16"},
		{func(p *gemm.Problem) { p.K = 24 }, "K is 24, no multiple of 16"},
		{func(p *gemm.Problem) { p.LDC = 33 }, apart},
		{func(p *gemm.Problem) { p.LDA = 33 }, ""}, // rounded to fp16 first, into rows without gaps
		{func(p *gemm.Problem) { p.DType, p.LDA = gemm.FP16, 33 }, apart},
	} {
		p := fp32(32, 32, 32)
		c.change(&p)
		instead, why := Guard(&p, wmma.Config)
		must.That(t, why == c.why && (why != "") == (instead.Name == RungPadded), "%s: %q, %q instead", p, why, instead.Name)
		_, reason, detail := Family{}.Program(gemmgen.NewCall(p), gemm.FP32, wmma.Config, limits)
		must.That(t, (reason == ReasonGuard) == (c.why != "") && strings.Contains(detail, instead.Name),
			"%s: %s: %s", p, reason, detail)
		_, why = Guard(&p, naive.Config)
		must.That(t, why == "", "%s: the guard has %s: %s", p, naive.Name, why)
	}
}
