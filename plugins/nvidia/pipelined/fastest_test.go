//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package pipelined_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

// The fastest configurations are found without all estimates, and are the same. A time that stands for an estimate is
// never above it.
func TestFastestAreThoseOfAllEstimates(t *testing.T) {
	requests := nvtest.Devices(t, "refined", "mma")
	for _, rung := range arch.Rungs() {
		requests = append(requests, arch.OpenRequest{Arch: "sm90", Device: "h200", Rung: rung})
	}
	for n, request := range requests {
		a := nvtest.Open(t, request)
		fast := a.(arch.FastestEstimator)
		rng := rand.New(rand.NewPCG(11, uint64(n)))
		odd := gemm.New(1001, 999, 777)
		odd.BMajor = gemm.MajorK
		problems := []gemm.Problem{gemm.New(16, 4096, 11008), gemm.New(8192, 8192, 8192), gemm.New(128, 128, 1<<16), odd}
		for range 4 {
			problems = append(problems, nvtest.RandomProblem(rng))
		}
		for i, p := range problems {
			if (n+i)%2 != 0 && os.Getenv("ORIGAMI_TEST_ALL") != "1" {
				continue // devices differ in numbers alone
			}
			for _, family := range a.Describe().Kernels {
				list := must.Get(a.Candidates(t.Context(), p, arch.Space{Kernel: family}))(t)
				all, some := make([]arch.Estimate, len(list.Configs)), make([]arch.Estimate, len(list.Configs))
				must.Do(t, a.Estimate(t.Context(), all, p, list.Configs))
				if i == 0 {
					wantSameAlone(t, a, p, list.Configs, all)
				}
				top := []int{1, 2, 16, 17}[i%4]
				must.Do(t, fast.EstimateFastest(t.Context(), some, p, list.Configs, top))
				var totals []unit.Cycles
				for _, e := range all {
					if e.Reject == "" {
						totals = append(totals, e.Cycles)
					}
				}
				if len(totals) == 0 {
					continue // no kernel of the family can address the operands
				}
				slices.Sort(totals)
				last := totals[min(top, len(totals))-1]
				for j := range all {
					have, want := some[j], all[j]
					if have != want && (want.Cycles <= last || have.Cycles <= last || have.Reject != want.Reject ||
						have.Cycles > want.Cycles*(1+1e-9)) {
						t.Fatalf("%s %s %s, top %d: %+v, estimated %+v, the last of the top %v cycles",
							a.Describe().ID(), p, list.Configs[j], top, have, want, last)
					}
				}
			}
		}
	}
}

// wantSameAlone requires of the estimates of a list that they are those of short lists, in which nothing is shared
// between configurations.
func wantSameAlone(t *testing.T, a arch.Architecture, p gemm.Problem, cfgs []gemm.Config, all []arch.Estimate) {
	t.Helper()
	at := 0
	for some := range slices.Chunk(cfgs, 64) {
		alone := make([]arch.Estimate, len(some))
		must.Do(t, a.Estimate(t.Context(), alone, p, some))
		if !slices.Equal(alone, all[at:at+len(some)]) {
			t.Fatalf("%s %s: the estimates of %v and the next 63 depend on the list", a.Describe().ID(), p, some[0])
		}
		at += len(some)
	}
}
