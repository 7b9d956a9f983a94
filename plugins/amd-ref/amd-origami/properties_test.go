package amdorigami

import (
	"context"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/amd-ref/amd-origami/terms"
)

// randomProblem draws a valid problem that the device supports. Sizes range from 1 to the largest valid size.
func randomProblem(rng *rand.Rand, a *architecture) gemm.Problem {
	for {
		dim := func(bits int) int { return 1 + int(rng.Uint64N(1<<(1+rng.UintN(uint(bits))))) }
		p := gemm.Problem{M: dim(20), N: dim(20), K: dim(24), Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorK}
		if rng.UintN(20) == 0 {
			p.M = dim(34)
		}
		if rng.UintN(3) == 0 {
			p.Batch = dim(12)
		}
		p.SetTrans(rng.UintN(2) == 0, rng.UintN(2) == 0)
		p.DType = a.Description.Atoms[rng.IntN(len(a.Description.Atoms))].DType
		if p.Validate() == nil {
			return p
		}
	}
}

// randomConfig draws a configuration. Most of its block sizes are powers of two.
func randomConfig(rng *rand.Rand) gemm.Config {
	block := func() int {
		if rng.UintN(3) == 0 {
			return 1 + rng.IntN(gemm.MaxConfigNumber)
		}
		return 1 << rng.UintN(13)
	}
	c := gemm.Config{
		BlockM: block(), BlockN: block(), BlockK: block(),
		NumWarps: launchWarps, NumStages: launchStages, SplitK: 1, Kernel: Family,
	}
	if rng.UintN(4) == 0 {
		c.SplitK = 1 + rng.IntN(64)
	}
	return c
}

// eachArchitecture runs a test over all architectures and grid modes.
func eachArchitecture(t *testing.T, do func(t *testing.T, rng *rand.Rand, a *architecture)) {
	for i, id := range []string{"gfx90a", "gfx942", "gfx950"} {
		for j, mode := range gridModes {
			t.Run(id+"/"+mode, func(t *testing.T) {
				do(t, rand.New(rand.NewPCG(uint64(i), uint64(j))), open(t, id, "grid="+mode, "occ=2"))
			})
		}
	}
}

// For every problem and configuration, the estimate is a positive finite number or a rejection. It equals the total of
// the terms bit for bit and names the resource with the longest step.
func TestEstimateIsSound(t *testing.T) {
	ctx := context.Background()
	eachArchitecture(t, func(t *testing.T, rng *rand.Rand, a *architecture) {
		for range 200 {
			p := randomProblem(rng, a)
			configs := make([]gemm.Config, 20)
			for i := range configs {
				configs[i] = randomConfig(rng)
			}
			estimates := make([]arch.Estimate, len(configs))
			err := a.Estimate(ctx, estimates, p, configs)
			must.Need(t, err == nil, "%s: %v", p, err)
			values := make([]float64, len(configs)*len(terms.Terms))
			err = a.Terms(ctx, values, p, configs)
			must.Need(t, err == nil, "%s: %v", p, err)
			for i, c := range configs {
				named := map[string]float64{}
				for j := range terms.Terms {
					v := values[i*len(terms.Terms)+j]
					named[terms.Terms[j].Name] = v
					if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
						t.Fatalf("%s %s: %s = %v", p, c, terms.Terms[j].Name, v)
					}
				}
				e := estimates[i]
				if e.Reject != "" {
					must.Need(t, e.Cycles == 0 && (e.Reject == arch.ReasonSharedMemory) == (named["lds_ok"] == 0) &&
						(e.Reject != arch.ReasonModelRule || named["total_latency"] == arch.RejectedTotal),
						"%s %s: %+v with terms %v", p, c, e, named)
					continue
				}
				if !(e.Cycles > 0) || math.IsInf(float64(e.Cycles), 0) || float64(e.Cycles) != named["total_latency"] {
					t.Fatalf("%s %s: estimate %v, total %v", p, c, e.Cycles, named["total_latency"])
				}
				step := map[arch.Bound]float64{
					arch.BoundCompute: named["l_compute"],
					arch.BoundL2:      named["l_mem1"],
					arch.BoundMALL:    named["l_mem2"],
					arch.BoundDRAM:    named["l_mem3"],
					arch.BoundLatency: named["l_mem3"],
				}
				must.Need(t, step[e.Bound] == max(named["l_compute"], named["l_mem"]),
					"%s %s: bound %s with steps %v", p, c, e.Bound, step)
				latency := a.device.hbmLatency
				if transfer := named["l_mem3"] - latency; e.Bound == arch.BoundLatency && transfer > latency ||
					e.Bound == arch.BoundDRAM && transfer < latency*(1-1e-9) {
					t.Fatalf("%s %s: bound %s with a transfer of %v cycles", p, c, e.Bound, transfer)
				}
			}
		}
	})
}

// The model omits block_k from the hit rates where it cancels. That changes no bit.
func TestSharesScale(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	a := open(t, "gfx942")
	reuse := func(tm, tn, bm, bn, bk uint64) float64 {
		x, y := tm*(bm*bk), tn*(bn*bk)
		all := x*tn + y*tm
		return f(all-(x+y)) / f(all)
	}
	exact, rounded := 0, 0
	for range 20000 {
		e := evaluation{on: a}
		e.Problem(randomProblem(rng, a))
		c := randomConfig(rng)
		e.config = &c
		n, _ := e.place(&c)
		e.score(n)
		l, s := &e.launch, &e.area
		must.Need(t, l.l2Hit == reuse(l.l2M, l.l2N, s.bm, s.bn, n.bk) &&
			l.mallHit == reuse(uint64(l.mallTileM), uint64(l.mallTileN), s.bm, s.bn, n.bk), "%+v %s: %+v", e.problem, c, l)
		if bits.OnesCount64(n.bk) == 1 || s.grid*(s.bm+s.bn)*n.bk < 1<<53 {
			exact++
		} else {
			rounded++
		}
		if hit := e.step.l2HitGlobal; hit != e.allHit(n.bk) && hit != terms.OverflowHitRate {
			t.Fatalf("%+v %s: %v without block_k, %v with it", e.problem, c, e.step.l2HitGlobal, e.allHit(n.bk))
		}
	}
	must.That(t, exact != 0 && rounded != 0, "%d exact, %d rounded cases: not both covered", exact, rounded)
}

// The times of a K step at each level are what the level's bandwidth and latency give.
func TestLevelsExplainTheTerms(t *testing.T) {
	ctx := context.Background()
	eachArchitecture(t, func(t *testing.T, rng *rand.Rand, a *architecture) {
		values := make([]float64, len(terms.Terms))
		for range 100 {
			p, c := randomProblem(rng, a), randomConfig(rng)
			must.Do(t, a.Terms(ctx, values, p, []gemm.Config{c}))
			named := map[string]float64{}
			for j := range terms.Terms {
				named[terms.Terms[j].Name] = values[j]
			}
			for i, term := range []struct{ traffic, time string }{
				{"l2_traffic", "l_mem1"}, {"mall_traffic", "l_mem2"}, {"hbm_traffic", "l_mem3"},
			} {
				level := a.Levels()[i]
				rate := float64(level.Bandwidth.At(int(named["active_cus"])))
				got := named[term.traffic]/rate + float64(level.Latency)
				if got != named[term.time] {
					t.Fatalf("%s %s: %s takes %v, by its bandwidth %v", p, c, level.Name, named[term.time], got)
				}
			}
		}
	})
}

// Mapping returns a group of at least one for every problem, in reasonable time.
func TestMappingIsSound(t *testing.T) {
	ctx := context.Background()
	for _, mapping := range []string{"jan", "feb"} {
		for i, id := range []string{"gfx90a", "gfx942", "gfx950"} {
			rng := rand.New(rand.NewPCG(3, uint64(i)))
			a := open(t, id, "mapping="+mapping)
			for range 300 {
				p := randomProblem(rng, a)
				p.M, p.N = min(p.M, 1<<16), min(p.N, 1<<16)
				c := randomConfig(rng)
				c.BlockM, c.BlockN = max(c.BlockM, 16), max(c.BlockN, 16)
				m, err := a.Mapping(ctx, p, c)
				must.Need(t, err == nil && m.GroupM >= 1 && m.XCDs >= 0 && m.XCDs <= int(a.xcds) && m.Chunk >= 0,
					"%s %s %s: %+v, %v", id, p, c, m, err)
			}
		}
	}
}

// A mapping that would take minutes stops with its context, or fails with an error about the size of the problem.
func TestMappingStops(t *testing.T) {
	a := open(t, "gfx942")
	p := gemm.New(2, 1<<40, 1)
	c := gemm.Config{BlockM: 1, BlockN: 1, BlockK: 1, SplitK: 1, Kernel: Family}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := a.Mapping(ctx, p, c)
	must.That(t, err != nil, "the mapping of 2^41 tiles succeeds")
}

// The table of 0.95^n contains the doubles nearest to the powers.
func TestOccupancyDiscount(t *testing.T) {
	power := big.NewFloat(1).SetPrec(4096)
	base := big.NewFloat(terms.OccupancyBase).SetPrec(4096)
	for n, got := range occupancyDiscount {
		want, _ := power.Float64()
		must.That(t, got == want, "0.95^%d = %v, want %v", n, got, want)
		power.Mul(power, base)
	}
	// The bits that C's pow returns for the first two.
	for n, bits := range []uint64{1: 0x3FEE666666666666, 2: 0x3FECE147AE147AE1} {
		if bits != 0 && math.Float64bits(occupancyDiscount[n]) != bits {
			t.Errorf("0.95^%d = %x, want %x", n, math.Float64bits(occupancyDiscount[n]), bits)
		}
	}
}

// Emulated TF32 adds conversions and hand-made factors. The expected values are computed by hand from the equations.
func TestEmulatedTF32(t *testing.T) {
	a := open(t, "gfx950")
	for _, c := range []struct {
		m, n, k                int
		transA, transB         bool // flags of the command line
		bm, bn, bk             int
		wantConversion, factor float64
	}{
		// a = b = 32*32*4/128/16 = 2, 12 products, spare = 12-4-2 = 6: 6.5*4*2 - (0.5*4*6 + 0.25*4*6) = 34.
		{256, 256, 256, false, true, 64, 64, 32, 34, 1},
		// a = b = 8, 192 products, spare = 192-16-8 = 168: 208 - (336 + 24) < 0.
		{256, 256, 256, false, true, 256, 256, 32, 0, 0.8},
		{256, 256, 256, false, false, 256, 256, 32, 0, 1},     // T,T
		{256, 256, 256, true, false, 256, 256, 32, 0, 0.6},    // N,T
		{256, 256, 256, true, true, 256, 256, 32, 0, 0.8},     // N,N
		{4096, 4096, 4096, true, false, 256, 256, 32, 0, 0.4}, // intensity 6*4096/(3*4) = 2048
		{4096, 4096, 4096, true, true, 256, 256, 32, 0, 0.4},
		{64, 64, 1024, false, true, 16, 16, 128, 46, 0.5}, // a = b = 2, 3 products, spare 0: 52 - 0.25*4*6
	} {
		p := gemm.New(c.m, c.n, c.k)
		p.DType = gemm.TF32
		p.SetTrans(c.transA, c.transB)
		e := evaluation{on: a}
		e.set(a.problem(&p))
		e.config = &gemm.Config{BlockM: c.bm, BlockN: c.bn, BlockK: c.bk, SplitK: 1}
		n, _ := e.place(e.config)
		e.score(n)
		if e.step.lConversion != c.wantConversion || e.step.heuristicFactor != c.factor {
			t.Errorf("%s %dx%dx%d: conversion %v and factor %v, want %v and %v", p, c.bm, c.bn, c.bk, e.step.lConversion,
				e.step.heuristicFactor, c.wantConversion, c.factor)
		}
	}
}

// Repeated estimates and rankings do not allocate.
func TestAllocations(t *testing.T) {
	ctx := context.Background()
	a := open(t, "gfx942")
	sizes := tritonBLASSizes()
	configs := tritonBLASList(t, a)
	estimates := make([]arch.Estimate, len(configs))
	s := selector.New(a, arch.Space{})
	var result selector.Result
	for name, do := range map[string]func(p gemm.Problem) error{
		"Estimate": func(p gemm.Problem) error { return a.Estimate(ctx, estimates, p, configs) },
		"Select":   func(p gemm.Problem) error { return s.Select(ctx, p, &result) },
		"Rank":     func(p gemm.Problem) error { return s.Rank(ctx, p, 0, &result) },
	} {
		all := func() {
			for _, p := range sizes {
				must.Do(t, do(p))
			}
		}
		all()
		n := testing.AllocsPerRun(3, all)
		must.That(t, n == 0, "%s allocates %v times over %d problems", name, n, len(sizes))
	}
}
