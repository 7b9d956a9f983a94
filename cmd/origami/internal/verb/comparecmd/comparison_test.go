package comparecmd

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// answered is a side that predicts a time in µs, on a clock of 1 GHz. A width makes it one whose model was checked: the
// interval is from time ÷ width to time · width.
func answered(p gemm.Problem, micros, width float64) ask.Ranking {
	d := &arch.Description{Arch: "a", Device: "d", Clock: 1e9, Kernels: []string{"one"}, Units: 1,
		Terms: []arch.Term{{Name: "start", Common: arch.CommonLaunch, Kind: arch.KindShare, Unit: "cycles"}}}
	if width > 0 {
		u := arch.Uncertainty{Kernel: "one", Level: 0.9, MedianError: 0.05,
			Ranges: []arch.ErrorRange{{Low: 1 / width, High: width}}}
		u.Checked.Add(&p, 1)
		u.Checked.Times = 7
		d.Uncertainty = []arch.Uncertainty{u}
	}
	c := gemm.Config{BlockM: 64, BlockN: 64, BlockK: 64, SplitK: 1}
	return ask.Ranking{Arch: d, Kernel: "one", Problem: p, Entries: []ask.Entry{{Config: c, Candidate: c,
		Estimate: arch.Estimate{Cycles: unit.Cycles(micros * 1000)}, Terms: []float64{250}}}}
}

// contenders are sides that are found.
func contenders(n int) []ask.Contender {
	found := arch.Match{Arch: &arch.ArchEntry{ID: "a"}, Device: &arch.DeviceEntry{ID: "d"}}
	return slices.Repeat([]ask.Contender{{Found: models.Found{Match: found}}}, n)
}

func rowOf(answers ...ask.Ranking) ask.Contest {
	return ask.Contest{Problem: problems.Problem{Problem: gemm.New(256, 256, 256)},
		Sides: contenders(len(answers)), Answers: answers}
}

// A side is fastest beyond doubt only if its interval ends before those of all others begin.
func TestVerdict(t *testing.T) {
	p := gemm.New(256, 256, 256)
	ranks := answered(p, 1, 1.1)
	ranks.Arch.RanksOnly = true
	fails := ask.Ranking{Err: diag.Inputf("no")}
	for name, c := range map[string]struct {
		row   ask.Contest
		side  int
		lead  float64
		clear bool
		none  bool
	}{
		"apart":           {row: rowOf(answered(p, 30, 1.1), answered(p, 20, 1.1)), side: 1, lead: 1.5, clear: true},
		"overlap":         {row: rowOf(answered(p, 30, 1.1), answered(p, 28, 1.1)), side: 1, lead: 30.0 / 28},
		"one unchecked":   {row: rowOf(answered(p, 30, 0), answered(p, 20, 1.1)), side: 1, lead: 1.5},
		"third too near":  {row: rowOf(answered(p, 10, 1.1), answered(p, 20, 1.1), answered(p, 10.5, 1.1)), lead: 1.05},
		"ranks only":      {row: rowOf(ranks, answered(p, 20, 1.1), answered(p, 10, 1.1)), side: 2, lead: 2, clear: true},
		"a failed side":   {row: rowOf(answered(p, 30, 1.1), fails, answered(p, 60, 1.1)), lead: 2, clear: true},
		"one time alone":  {row: rowOf(answered(p, 30, 1.1), ranks, fails), none: true},
		"a tie":           {row: rowOf(answered(p, 30, 1.1), answered(p, 20, 1.1), answered(p, 20.001, 1.1)), none: true},
		"nothing answers": {row: rowOf(fails, fails), none: true},
	} {
		f := c.row.Fastest()
		must.That(t, (f == nil) == c.none && (f == nil ||
			f.Entry == c.side && math.Abs(float64(f.Lead)-c.lead) <= 1e-12 && f.Clear == c.clear), "%s: %+v", name, f)
	}
}

// The means are over the problems where both sides have a time; wins over those where at least two have.
func TestSummarise(t *testing.T) {
	p := gemm.New(256, 256, 256)
	fails := ask.Ranking{Err: diag.Inputf("no")}
	rows := []ask.Contest{
		rowOf(answered(p, 10, 1.1), answered(p, 20, 1.1), fails), rowOf(answered(p, 10, 1.1), answered(p, 5, 0), fails),
		rowOf(fails, answered(p, 7, 0), fails),
		rowOf(answered(p, 10, 0), answered(p, 80, 0), answered(p, 40, 0)),
	}
	all := ask.StandingsOf(contenders(3), rows).Summary
	must.That(t, all.Problems == 4 && all.Compared == 3 && all.Decided == 3,
		"%d problems, %d compared, %d decided", all.Problems, all.Compared, all.Decided)
	for i, want := range []struct {
		wins, clear, ratios int
		mean                float64
	}{{2, 1, 3, 1}, {1, 0, 3, 2}, {0, 0, 1, 4}} {
		s := all.Sides[i]
		must.That(t, s.Wins == want.wins && s.Clear == want.clear && s.Count == want.ratios && s.Ratio != nil &&
			math.Abs(float64(*s.Ratio)-want.mean) <= 1e-12, "side %d: %+v, want %+v", i, s, want)
	}
}

// A class says of how many of its problems it knows something, and a side that knows fewer says so too.
func TestStandingsCountAnswers(t *testing.T) {
	small, large := gemm.New(256, 256, 256), gemm.New(4096, 4096, 4096)
	fails := ask.Ranking{Err: diag.Inputf("no")}
	c := &comparison{sides: contenders(3), rows: []ask.Contest{
		rowOf(answered(small, 10, 0), answered(small, 20, 0), answered(small, 40, 0)),
		rowOf(answered(small, 10, 0), answered(small, 20, 0), fails), rowOf(fails, answered(small, 20, 0), fails),
		rowOf(answered(large, 10, 0), fails, fails),
	}}
	c.rows[3].Problem = problems.Problem{Problem: large}
	_, rows := c.standings()
	want := [][]string{{"fastest, of 2 of 4 problems", "2", "0", "0"}, {"  with 95 % and more", "0", "0", "0"},
		{"time ÷ first, geomean, of 2 of 4", "1.000", "2.000", "4.000 (of 1)"},
		{"  tiny (2 of 3)", "1.000", "2.000", "4.000 (of 1)"}, {"  prefill (0 of 1)", "1.000", absent, absent}}
	must.That(t, reflect.DeepEqual(rows, want), "%q, want %q", rows, want)
}

// The share of the launch is found under the name that models have in common, and work is per second of cost.
func TestLaunchAndWork(t *testing.T) {
	r := rowOf(answered(gemm.New(1000, 1000, 500), 10, 0), ask.Ranking{Err: diag.Inputf("no")})
	r.M, r.N, r.K = 1000, 1000, 500 // 1e9 operations in 10 µs: 1e14 per second
	launch := r.Launch(0)
	must.That(t, launch != nil && math.Abs(float64(*launch)-250e-9) <= 1e-15, "launch %v", launch)
	r.Sides[0].Dollars, r.Sides[0].Watts = 0.001, 500
	v := r.PerDollar(0)
	must.That(t, v != nil && math.Abs(float64(*v)/1e17-1) <= 1e-12, "%v per dollar", v)
	v = r.PerJoule(0)
	must.That(t, v != nil && math.Abs(float64(*v)/2e11-1) <= 1e-12, "%v per joule", v)
	must.That(t, r.PerJoule(1) == nil, "a failed side has work per joule")
}

// The grade of evidence stands beside what it rests on, or how a prediction differs from what was checked.
func TestEvidenceCells(t *testing.T) {
	p, other := gemm.New(256, 256, 256), gemm.New(256, 256, 256)
	other.DType = gemm.BF16
	inside, unlike, never := answered(p, 10, 1.1), answered(p, 10, 1.1), answered(p, 10, 0)
	unlike.Problem = other
	for want, a := range map[string]*ask.Ranking{
		"checked on 7 published times of this device, median error 5.00 %": &inside,
		"unchecked: bf16": &unlike,
		"unchecked: no times of this device were compared": &never,
	} {
		must.Equal(t, show.Evidence(a, &a.Entries[0]), want)
	}
	c := &comparison{sides: contenders(1), rows: []ask.Contest{rowOf(inside), rowOf(unlike), rowOf(inside)}}
	want := "checked for 2 of 3, unchecked for 1 of 3"
	must.Equal(t, c.evidence(0), want)
}
