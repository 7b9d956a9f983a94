//go:build cuda

package cuda

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
)

// drawn is a kernel for a random problem.
type drawn struct {
	problem gemm.Problem
	config  gemm.Config
	kernel  exec.Kernel
	err     error
}

// compileAll compiles kernels at once.
func compileAll(t *testing.T, x *executor, all []drawn) {
	var compiling sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i := range all {
		one := &all[i]
		compiling.Go(func() {
			slots <- struct{}{}
			one.kernel, one.err = x.Compile(t.Context(), 0, one.problem, one.config)
			<-slots
		})
	}
	compiling.Wait()
}

// checkDrawn draws four times as many kernels as least, compiles them together and checks those that can be built,
// until these are least. If they are fewer than one in forty, something is wrong.
func checkDrawn(t *testing.T, x *executor, least int, draw func() drawn) {
	built := 0
	for round := 0; built < least; round++ {
		if round == 10 {
			t.Fatalf("only %d kernels could be built, want %d", built, least)
		}
		all := make([]drawn, 4*least)
		for i := range all {
			all[i] = draw()
		}
		compileAll(t, x, all)
		built += checkAll(t, all)
	}
}

// checkAll checks kernels against the float64 reference and returns how many had been built.
func checkAll(t *testing.T, all []drawn) (built int) {
	worst := 0.0
	for _, one := range all {
		if one.err != nil {
			if diag.KindOf(one.err) != diag.Input || !strings.Contains(one.err.Error(), "cannot be built") {
				t.Fatalf("%s on %s: %v", one.config, one.problem, one.err)
			}
			continue
		}
		built++
		n, err := one.kernel.Check(t.Context())
		if err != nil {
			t.Fatalf("%s on %s: %v", one.config, one.problem, err)
		}
		p := &one.problem
		whole := n.Checked == int64(p.M)*int64(p.N)*int64(p.Batch) || onHost(*p) && n.Checked > 0
		if worst = max(worst, n.MaxError/max(n.Tolerance, 1e-9)); !n.OK() || !whole {
			t.Errorf("%s on %s: %+v", one.config, one.problem, n)
		}
		if err := one.kernel.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d kernels, the largest error is %.2f of the tolerance", built, worst)
	return built
}

// TestRandomSgemm: every rung of the ladder, and random configurations of the family, compute random problems: odd and
// tiny sizes, gaps between rows, batches, every layout.
func TestRandomSgemm(t *testing.T) {
	x, _ := openGPU(t)
	random := rand.New(rand.NewPCG(13, 14))
	draw := func() gemm.Problem {
		p := gemm.New(1+random.IntN(700), 1+random.IntN(700), 1+random.IntN(900))
		if random.IntN(4) == 0 {
			p = gemm.New(1+random.IntN(40), 1+random.IntN(40), 1+random.IntN(40))
		}
		p.DType, p.Out, p.Batch = gemm.FP32, gemm.FP32, 1+random.IntN(3)
		p.SetTrans(random.IntN(2) == 0, random.IntN(2) == 0)
		if random.IntN(2) == 0 { // aligned rows
			p.M, p.N, p.K = (p.M+15)/16*16, (p.N+15)/16*16, (p.K+15)/16*16
		} else {
			p.LDA, p.LDB, p.LDC = p.LD(gemm.A)+random.IntN(9), p.LD(gemm.B)+random.IntN(9), p.LD(gemm.C)+random.IntN(9)
		}
		return p.Canonical()
	}
	t.Run("rungs", func(t *testing.T) {
		var all []drawn
		for _, r := range sgemm.Rungs() {
			for range 12 {
				one := drawn{problem: draw(), config: r.Config}
				if instead, why := sgemm.Guard(&one.problem, r.Config); why != "" {
					t.Logf("%s on %s: %s: %s instead", r.Name, one.problem, why, instead.Name)
					one.config = instead.Config
				}
				one.config.GroupM = 1 + random.IntN(8)
				all = append(all, one)
			}
		}
		checkEach(t, x, all)
	})
	t.Run("space", func(t *testing.T) {
		space := must.Get(sgemm.Family{}.Space().Enumerate(sgemm.Family{}.Space(), sgemm.Family{}.Axes()...))(t)
		checkDrawn(t, x, 60, func() drawn {
			one := drawn{problem: draw(), config: space[random.IntN(len(space))]}
			one.config.GroupM = 1 + random.IntN(8)
			return one
		})
	})
	t.Run("fp16", func(t *testing.T) { // math=wmma without its conversion
		rung, _ := sgemm.FindRung(sgemm.RungWMMA)
		all := make([]drawn, 8)
		for i := range all {
			p := gemm.New(16*(1+random.IntN(30)), 16*(1+random.IntN(30)), 16*(1+random.IntN(30)))
			p.DType, p.Out, p.Batch = gemm.FP16, gemm.FP32, 1+random.IntN(3)
			p.SetTrans(i%2 == 0, i/2%2 == 0)
			all[i] = drawn{problem: p.Canonical(), config: rung.Config}
		}
		checkEach(t, x, all)
	})
}

// checkEach compiles and checks kernels that can all be built.
func checkEach(t *testing.T, x *executor, all []drawn) {
	compileAll(t, x, all)
	if built := checkAll(t, all); built < len(all) {
		t.Errorf("only %d of %d kernels could be built", built, len(all))
	}
}
