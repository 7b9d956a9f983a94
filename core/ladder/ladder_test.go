package ladder

import (
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// described is a model whose predicted ratios may be off by a factor of 1.25.
func described(clock float64) *arch.Description {
	return &arch.Description{Clock: unit.Hertz(clock), Constants: []arch.Constant{{Name: "ladder_ratio", Value: 1.25}}}
}

// A device of 1 GHz, and kernels of 10 steps in two CTAs of an SM: a cost of 1 in a step is busy for 20 cycles.
const clock = 1e9

var costs = []Cost{
	{Name: "DRAM", Term: "dram_step"}, {Name: "FMA", Term: "fma_step"}, {Name: "load issue", Term: "load_step"},
	{Name: "launch", Term: "launch", Whole: true},
}

// kernel are the values of a kernel that takes 1000 cycles. A resource is busy for so many of them.
func kernel(dram, fma, loads float64) Values {
	return Values{"steps": 10, "ctas_of_sm": 2, "total": 1000,
		"dram_step": dram / 20, "fma_step": fma / 20, "load_step": loads / 20}
}

// rung is an entry with a predicted and a measured time in cycles, 0 for none.
func rung(name string, v Values, predicted, measured float64) Entry {
	return Entry{Rung: Rung{Name: name}, Values: v, Predicted: unit.Seconds(predicted / clock),
		Measured: unit.Seconds(measured / clock)}
}

// judge returns the verdict on one claim.
func judge(t *testing.T, c Claim, entries ...Entry) Judged {
	t.Helper()
	l := Ladder{Costs: costs, Claims: []Claim{c}}
	list := l.Judge(entries, described(clock))
	must.Need(t, len(list) == 1 && list[0].Claim == c && list[0].Evidence != "", "%+v", list)
	return list[0]
}

func TestAResourceThatLimits(t *testing.T) {
	claim := Claim{Rung: "tiled", Text: "is limited by compute", Cost: "FMA"}
	for _, test := range []struct {
		name     string
		e        Entry
		want     Verdict
		evidence string
	}{
		{"busy for most of the time", rung("tiled", kernel(100, 850, 900), 1000, 0), True,
			"FMA is busy for 85 % of the predicted time; the model's largest cost is load issue, 90 %"},
		{"the largest of small costs", rung("tiled", kernel(100, 300, 200), 1000, 0), True,
			"FMA is busy for 30 % of the predicted time"},
		{"busy for half of it", rung("tiled", kernel(100, 500, 900), 1000, 0), Nearly, "50 % of the predicted"},
		{"idle", rung("tiled", kernel(100, 90, 900), 1000, 0), False, "FMA is busy for 9 % of the predicted time; "},
		{"busy in a measured time that is shorter", rung("tiled", kernel(100, 500, 900), 1000, 600), True,
			"FMA is busy for 83 % of the measured time"},
		{"idle in a measured time that is longer", rung("tiled", kernel(100, 500, 900), 1000, 2000), False,
			"FMA is busy for 25 % of the measured time"},
		{"a measured time below what the resource needs", rung("tiled", kernel(0, 500, 900), 1000, 100), True,
			"FMA is busy for 100 % of the measured time"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := judge(t, claim, test.e)
			must.That(t, j.Verdict == test.want && strings.Contains(j.Evidence, test.evidence),
				"%s: %s", j.Verdict, j.Evidence)
		})
	}
}

// A number of a rung is the claimed one, nearly it, or another.
func TestAValue(t *testing.T) {
	for intensity, want := range map[float64]Verdict{1: True, 0.95: True, 1.4: Nearly, 0.25: False, 0: Unknown} {
		v := kernel(0, 0, 0)
		v["bytes"] = 1 / intensity
		claim := Claim{Rung: "naive", Text: "has an intensity of about 1", Value: "1 / bytes", Is: 1, Unit: "FLOP/B"}
		j := judge(t, claim, rung("naive", v, 1000, 0))
		must.That(t, j.Verdict == want && j.Evidence != "", "%v FLOP/B: %s, %s", intensity, j.Verdict, j.Evidence)
	}
}

func TestAGainOverAnotherRung(t *testing.T) {
	claim := Claim{Rung: "padded", Text: "gains over tiled", Over: "tiled", Least: 1.25}
	none := kernel(0, 0, 0)
	for _, test := range []struct {
		name        string
		rung, below Entry
		want        Verdict
		evidence    string
	}{
		{"of the claimed size", rung("padded", none, 0, 800), rung("tiled", none, 0, 1000), True,
			"1.25 times as fast as tiled, measured"},
		{"smaller", rung("padded", none, 0, 990), rung("tiled", none, 0, 1000), Nearly, "1.01 times"},
		{"none", rung("padded", none, 0, 1000), rung("tiled", none, 0, 1000), False, "1.00 times"},
		{"predicted, by much", rung("padded", none, 600, 0), rung("tiled", none, 1000, 0), True, "1.67 times"},
		{"predicted, of the claimed size", rung("padded", none, 800, 0), rung("tiled", none, 1000, 0), Unknown,
			"1.25 times as fast as tiled, predicted: within the model's error"},
		{"predicted, none", rung("padded", none, 1000, 0), rung("tiled", none, 1000, 0), Unknown, "1.00 times"},
		{"a loss", rung("padded", none, 2000, 0), rung("tiled", none, 1000, 0), False, "0.50 times"},
		{"measured against a prediction that says otherwise", rung("padded", none, 2000, 500),
			rung("tiled", none, 1000, 1000), True, "2.00 times as fast as tiled, measured"},
		{"measured times without a prediction", rung("padded", nil, 0, 500), rung("tiled", nil, 0, 1000), True,
			"2.00 times as fast as tiled, measured"},
		{"one measured, one predicted: predictions are compared", rung("padded", none, 2000, 500),
			rung("tiled", none, 1000, 0), False, "0.50 times as fast as tiled, predicted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := judge(t, claim, test.below, test.rung)
			must.That(t, j.Verdict == test.want && strings.Contains(j.Evidence, test.evidence),
				"%s: %s", j.Verdict, j.Evidence)
			must.That(t, !strings.Contains(j.Evidence, "conflict"), "conflicts of a kernel that counts none: %s", j.Evidence)
		})
	}
}

// A loss is explained by lost reads of 16 bytes only if these are fewer, and there was no conflict to remove.
func TestWhyPaddingLoses(t *testing.T) {
	const because = "tiled has no bank conflicts, and its reads of 16 bytes are lost"
	for _, test := range []struct {
		degree, wide, padded float64
		above                float64
		want                 bool
	}{{1, 8, 0, 1, true}, {2, 8, 0, 1, false}, {1, 8, 8, 1, false}, {1, 8, 0, 0, false}} {
		below, above := kernel(0, 0, 0), kernel(0, 0, 0)
		below["conflict_degree"], below["wide_instructions"] = test.degree, test.wide
		above["conflict_degree"], above["wide_instructions"] = test.above, test.padded
		claim := Claim{Rung: "padded", Over: "tiled", Least: 1.1, Lost: because,
			LostIf: "over_conflict_degree == 1 && conflict_degree >= 1 && over_wide_instructions > wide_instructions"}
		j := judge(t, claim, rung("tiled", below, 1000, 0), rung("padded", above, 1400, 0))
		must.Equal(t, strings.Contains(j.Evidence, because), test.want, test.degree, test.wide, test.padded, j.Evidence)
	}
}

// What cannot be judged is unknown, and the evidence says why.
func TestUnknown(t *testing.T) {
	v, nan := kernel(100, 500, 900), math.NaN()
	zero := Values{"total": 1000}
	limit, gain := Claim{Rung: "a", Cost: "FMA"}, Claim{Rung: "a", Over: "b", Least: 1.1}
	for _, test := range []struct {
		name     string
		claim    Claim
		entries  []Entry
		evidence string
	}{
		{"nothing at all", limit, nil, "no time of a"},
		{"a rung that does not fit the device", limit, []Entry{{Rung: Rung{Name: "a"}, Rejected: "smem"}}, "no time of a"},
		{"no rung to gain on", gain, []Entry{rung("a", v, 1000, 0)}, "no time of b"},
		{"the rung to gain on has no time", gain, []Entry{rung("a", v, 1000, 0), rung("b", nil, 0, 0)}, "no time of b"},
		{"a measured time, and a predicted one", gain, []Entry{rung("a", nil, 0, 900), rung("b", v, 1000, 0)},
			"no prediction of both"},
		{"a time without a model", limit, []Entry{rung("a", nil, 0, 1000)}, "no configuration of the family"},
		{"times that are no numbers", gain, []Entry{rung("a", v, nan, nan), rung("b", v, 1000, 0)}, "no time of a"},
		{"an infinite time", gain, []Entry{rung("a", v, 1000, 0), rung("b", v, math.Inf(1), 0)}, "no time of b"},
		{"a negative time", gain, []Entry{rung("a", v, -1, -1), rung("b", v, 1000, 0)}, "no time of a"},
		{"a cost that no one knows", Claim{Rung: "a", Cost: "texture units"}, []Entry{rung("a", v, 1000, 0)},
			"texture units is no cost of the model"},
		{"a model without numbers", limit, []Entry{rung("a", zero, 1000, 0)}, "the model has no numbers for it"},
		{"a model whose numbers are broken", limit, []Entry{rung("a", kernel(1, nan, 1), 1000, 0)},
			"the model has no numbers for it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := judge(t, test.claim, test.entries...)
			must.That(t, j.Verdict == Unknown && strings.Contains(j.Evidence, test.evidence), "%s: %s", j.Verdict, j.Evidence)
		})
	}
	l := Ladder{Costs: costs, Claims: []Claim{limit}}
	for _, clock := range []float64{0, -1, nan} {
		j := l.Judge([]Entry{rung("a", v, 1000, 0)}, described(clock))[0]
		must.That(t, j.Verdict == Unknown, "clock %v: %s, %s", clock, j.Verdict, j.Evidence)
	}
}

// Verdicts come in the order of the claims, whatever the order of the rungs, and one that is unknown stops none.
func TestVerdictsAreInTheOrderOfClaims(t *testing.T) {
	l := Ladder{Costs: costs, Claims: []Claim{
		{Rung: "c", Over: "b", Least: 1.1}, {Rung: "missing", Cost: "FMA"}, {Rung: "b", Over: "a", Least: 1.1},
		{Rung: "a", Cost: "load issue"},
	}}
	v := kernel(100, 500, 900)
	entries := []Entry{rung("a", v, 1000, 0), rung("b", v, 500, 0), rung("c", v, 600, 0)}
	reversed := []Entry{entries[2], entries[1], entries[0]}
	for _, list := range [][]Entry{entries, reversed} {
		for i, want := range []Verdict{Unknown, Unknown, True, True} {
			j := l.Judge(list, described(clock))[i]
			must.That(t, j.Verdict == want && j.Claim == l.Claims[i], "claim %d: %s %s: %s", i, j.Rung, j.Verdict, j.Evidence)
		}
	}
	got := (&Ladder{}).Judge(entries, described(clock))
	must.That(t, len(got) == 0, "%d verdicts without claims", len(got))
}

func TestDominant(t *testing.T) {
	launch := kernel(100, 200, 300)
	launch["launch"] = 400 // in all, not in each step
	broken := kernel(math.NaN(), 200, 100)
	for _, test := range []struct {
		name  string
		v     Values
		want  string
		share float64
	}{
		{"in each step", kernel(100, 200, 300), "load issue", 0.3}, {"in all", launch, "launch", 0.4},
		{"the first of equals", kernel(300, 300, 300), "DRAM", 0.3}, {"one without a number", broken, "FMA", 0.2},
		{"no values", nil, "", 0}, {"no total", Values{"steps": 1, "ctas_of_sm": 1, "fma_step": 1}, "", 0},
	} {
		most, share := Dominant(costs, test.v)
		must.That(t, most.Name == test.want && math.Abs(share-test.share) <= 1e-12,
			"%s: %q at %v", test.name, most.Name, share)
	}
	s := costs[1].Seconds(kernel(0, 500, 0), clock)
	must.That(t, math.Abs(s-500e-9) <= 1e-15, "500 cycles at 1 GHz take %v s", s)
}

func TestNames(t *testing.T) {
	must.Equal(t, costs[2].Column(), "load_issue")
}
