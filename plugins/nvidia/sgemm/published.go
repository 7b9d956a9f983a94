package sgemm

import (
	"bytes"
	_ "embed"
	"sync"

	tables "github.com/origami-gemm/origami/core/columns"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/unit"
	generator "github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
	family "github.com/origami-gemm/origami/plugins/nvidia/kernel/sgemm"
)

// published are rates of public ladders, with the configuration that does what each kernel does. Its provenance is in
// docs/ladder.md.
//
//go:embed published.csv
var published []byte

// The costs that a claim names.
const (
	costDRAM, costShared, costFMA, costTensor = "DRAM", "shared memory", "FMA", "tensor cores"
	costConversion                            = "conversion"
)

// costs are what can limit a rung.
var costs = []ladder.Cost{
	{Name: "load issue", Term: "load_issue_step"}, {Name: costShared, Term: "shared_step"},
	{Name: "L1", Term: "l1_step"}, {Name: costFMA, Term: "fma_step"}, {Name: costTensor, Term: "tensor_step"},
	{Name: "instruction issue", Term: "issue_step"}, {Name: "L2", Term: "l2_step"}, {Name: costDRAM, Term: "dram_step"},
	{Name: "latency and barriers", Term: "waiting_step"}, {Name: "launch", Term: "launch", Whole: true},
	{Name: costConversion, Term: "conversion", Whole: true},
}

// claims are what LessUp/sgemm-optimization@4b39e85, docs/en/validation/performance-model.md, says of its rungs.
var claims = []ladder.Claim{
	{Rung: generator.RungNaive, Text: "is limited by DRAM bandwidth", Cost: costDRAM},
	intensity(generator.RungNaive, "has an intensity of about 1", 1),
	gains(generator.RungTiled, "gains significantly over naive", generator.RungNaive, 1.25),
	{Rung: generator.RungTiled, Text: "is limited by shared-memory bandwidth", Cost: costShared},
	intensity(generator.RungTiled, "has an intensity of about half its tile's side", 16),
	gains(generator.RungTiled, "is sensitive to the tile size", smallTile, 1.25),
	gains(generator.RungPadded, "gains moderately over tiled", generator.RungTiled, 1.1),
	gains(generator.RungDoubleBuffer, "gains over the rung below", generator.RungPadded, 1.1),
	{Rung: generator.RungDoubleBuffer, Text: "is limited by compute", Cost: costFMA},
	gains(generator.RungWMMA, "gains much over tiled for large sizes", generator.RungTiled, 2),
	{Rung: generator.RungWMMA, Text: "is limited by the conversion of its operands", Cost: costConversion},
	{
		Rung: generator.RungWMMA, Text: "has 8 times the throughput of FP32 units", Value: "peak_fp16 / peak_fp32", Is: 8,
		Unit: "times by the device's peaks",
	},
}

// rungWMMAHalf is the rung wmma without the launches that convert its operands.
const rungWMMAHalf = "wmma-fp16"

// smallTile is the kernel tiled with tiles of 16×16, the least that a warp can have.
const smallTile = "tiled 16x16"

// intensity is the claim of the FLOP per byte that the threads of a rung ask for.
func intensity(rung, text string, is float64) ladder.Claim {
	return ladder.Claim{Rung: rung, Text: text, Value: "intensity_requested", Is: is, Unit: "FLOP/B"}
}

// gains is the claim that a rung is faster than another. What other rungs gain, they can lose by narrower reads: where
// the rung below has no bank conflicts to remove. A degree of conflicts of 0 is a kernel without shared memory, which
// has lost nothing there.
func gains(rung, text, over string, least float64) ladder.Claim {
	return ladder.Claim{Rung: rung, Text: text, Over: over, Least: least,
		LostIf: "over_conflict_degree == 1 && conflict_degree >= 1 && over_wide_instructions > wide_instructions",
		Lost:   over + " has no bank conflicts, and its reads of 16 bytes are lost"}
}

// Ladder returns the rungs of the family, the claims about them, and published times.
var Ladder = sync.OnceValue(func() *ladder.Ladder {
	l := &ladder.Ladder{
		Family: Family, Device: laptop, Types: gemm.Types{In: gemm.FP32, Out: gemm.FP32},
		Claims: claims, Costs: costs,
	}
	for _, r := range generator.Rungs() {
		rung := ladder.Rung{Name: r.Name, Doc: r.Doc, Config: r.Config}
		if r.Name != generator.RungWMMA {
			l.Rungs = append(l.Rungs, rung)
			continue
		}
		rung.Label, rung.Instead = "end to end", generator.RungPadded
		l.Rungs = append(l.Rungs, rung, ladder.Rung{Name: rungWMMAHalf, Label: "compute only", Operands: gemm.FP16,
			Doc: "wmma on operands that are in fp16 already", Config: r.Config})
	}
	small, err := gemm.ParseConfig(
		"16x16x16,warps=8,stages=1,staging=registers,thread_m=1,lanes_m=2,shared_a=k,copy_width=1",
		gemm.Config{GroupM: 1, SplitK: 1, Kernel: Family}, family.Family{}.Axes()...)
	if err != nil {
		panic(err) // a test reads it
	}
	l.Others = []ladder.Rung{{Name: smallTile, Doc: "tiles of 16x16 in shared memory", Config: small}}
	if l.Published, err = readPublished(published); err != nil {
		panic(err) // a test reads it
	}
	return l
})

// laptop is the device of the claims. unknownClock is why its cuBLAS and wmma are predicted too fast.
const (
	laptop       = "sm86@rtx3060-laptop"
	unknownClock = ", of a laptop whose clock and power limit are unknown (--arch rtx3060-laptop:clock=1.283GHz, the " +
		"least of the data sheet, predicts its cuBLAS within 1 % at 4096x4096x4096)"
)

// readPublished reads the file: source, device, size, stage, rung, config, gflops.
func readPublished(data []byte) (times []ladder.Time, err error) {
	table := tables.Table{Place: "published.csv", Fix: "restore it",
		Columns: []string{"source", "device", "size", "stage", "rung", "config", "gflops"}}
	err = table.Each(bytes.NewReader(data), func(r *tables.Row) (err error) {
		t := ladder.Time{Source: r.Text("source"), Device: r.Text("device"), Size: r.Count("size"), Stage: r.Text("stage"),
			Rung: r.Text("rung"), Rate: unit.FlopsPerSecond(r.Positive("gflops") * 1e9)}
		if t.Device == laptop {
			t.Source += unknownClock
		}
		if rung, ok := generator.FindRung(t.Rung); ok {
			t.Config = rung.Config
		}
		if text := r.Text("config"); text != "" {
			base := gemm.Config{GroupM: 1, SplitK: 1, Kernel: Family}
			if t.Config, err = gemm.ParseConfig(text, base, family.Family{}.Axes()...); err != nil {
				r.Fault("config", "%v", err)
			}
		}
		times = append(times, t)
		return nil
	})
	return times, err
}
