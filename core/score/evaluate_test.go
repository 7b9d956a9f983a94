package score

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// model predicts the cycles of a function, at a clock of 1 MHz.
type model struct {
	arch.Architecture
	candidates []gemm.Config
	cycles     func(gemm.Config) float64 // 0 for a configuration to reject
	group      int
}

func (m *model) Describe() *arch.Description {
	return &arch.Description{Arch: "a", Device: "d", Model: "m", Kernels: []string{"f"}, Clock: 1e6}
}

func (m *model) Hierarchy() arch.MemoryHierarchy { return m }
func (*model) Levels() []arch.Level              { return nil }

func (m *model) Candidates(_ context.Context, _ gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	list := &arch.Candidates{}
	for _, c := range m.candidates {
		if len(s.SplitK) == 0 || s.SplitK[0] == c.SplitK {
			list.Configs = append(list.Configs, c)
		}
	}
	return list, nil
}

func (m *model) Estimate(_ context.Context, dst []arch.Estimate, p gemm.Problem, configs []gemm.Config) error {
	if p.M == 13 {
		return diag.Inputf("no")
	}
	for i, c := range configs {
		dst[i] = arch.Estimate{Cycles: unit.Cycles(m.cycles(c)), Bound: arch.BoundL2}
		if dst[i].Cycles == 0 {
			dst[i].Reject = arch.ReasonRegisters
		}
	}
	return nil
}

func (m *model) Mapping(context.Context, gemm.Problem, gemm.Config) (arch.Mapping, error) {
	return arch.Mapping{GroupM: m.group}, nil
}

func config(block, group, split int) gemm.Config {
	return gemm.Config{BlockM: block, BlockN: 16, BlockK: 16, NumWarps: 4, NumStages: 2, GroupM: group, SplitK: split,
		Kernel: "f"}
}

// addTime adds a time in microseconds.
func addTime(t *testing.T, d *dataset.Dataset, p gemm.Problem, c gemm.Config, us float64) {
	t.Helper()
	add(t, d, dataset.Measurement{Problem: p, Config: c, Phase: dataset.Sweep, Status: dataset.OK,
		Median: unit.Seconds(us * 1e-6), Runs: 1})
}

// recorded has blocks 16, 32, 48, 64 at group 8 and split 1, with times 40, 20, 10, 30; other groups of block 32,
// and a second problem with half of that.
func recorded(t *testing.T) (*dataset.Dataset, gemm.Problem) {
	d := dataset.New("made up", dataset.Conditions{Arch: "a", Device: "d", Kernel: "f"})
	d.GroupM = 8
	p := gemm.New(4096, 4096, 4096)
	for i, us := range []float64{40, 20, 10, 30} {
		addTime(t, d, p, config(16*(i+1), 8, 1), us)
	}
	addTime(t, d, p, config(32, 2, 1), 16)
	addTime(t, d, p, config(32, 16, 1), 25)
	addTime(t, d, gemm.New(1, 2, 3), config(16, 8, 1), 1)
	return d, p
}

func evaluate1(t *testing.T, m *model, r *Subset, p gemm.Problem) Evaluation {
	t.Helper()
	rows, bad, err := Evaluate(t.Context(), m, r, []gemm.Problem{p})
	must.Need(t, err == nil && bad[0] == nil, "%v %v", err, bad)
	return rows[0]
}

// The fastest is that of all splits if the sweep varies them, however few they are.
func TestSplitsVary(t *testing.T) {
	d, p := recorded(t)
	addTime(t, d, p, config(16, 8, 4), 8)
	m := &model{cycles: func(c gemm.Config) float64 { return float64(c.BlockM) / float64(c.SplitK) }}
	m.candidates = []gemm.Config{config(48, 0, 1), config(16, 0, 4)}
	r := SubsetOf(d)
	row := evaluate1(t, m, r, p)
	if r.Split != 0 || row.Pick.Config != config(16, 8, 4) || row.Best.Config != row.Pick.Config || row.Efficiency() != 1 {
		t.Errorf("split %d, pick %v, best %v", r.Split, row.Pick, row.Best)
	}
	split, err := SplitChoice(t.Context(), m, r, r.Problems)
	must.That(t, err == nil && split.Chosen.Count == 1 && split.Chosen.Worst == 1, "split %+v, %v", split, err)
}

func isMicro(t unit.Seconds, us float64) bool { return math.Abs(float64(t)*1e6-us) < 1e-9 }

func TestEvaluate(t *testing.T) {
	d, p := recorded(t)
	r := SubsetOf(d)
	must.Need(t, r.Group == 8 && r.Split == 1 && len(r.Problems) == 1 && r.Problems[0] == p && len(r.Partial) == 1,
		"group %d, split %d, problems %v, partial %v", r.Group, r.Split, r.Problems, r.Partial)
	// The model predicts that small blocks are fast, rejects 64, and would choose another group and split.
	m := &model{group: 3, cycles: func(c gemm.Config) float64 {
		if c.BlockM == 64 {
			return 0
		}
		return float64(c.BlockM) / float64(c.SplitK)
	}}
	for _, block := range []int{64, 48, 32, 16} {
		m.candidates = append(m.candidates, config(block, 0, 1), config(block, 0, 4), config(block, 2, 1))
	}
	row := evaluate1(t, m, r, p)
	if row.Pick.Config != config(16, 8, 1) || !isMicro(row.Pick.Measured, 40) || !isMicro(row.Pick.Predicted, 16) ||
		row.Best.Config != config(48, 8, 1) || !isMicro(row.Best.Measured, 10) || row.Pick.Bound != arch.BoundL2 {
		t.Errorf("pick %v %v (predicted %v), best %v %v", row.Pick.Config, row.Pick.Measured, row.Pick.Predicted,
			row.Best.Config, row.Best.Measured)
	}
	if row.Efficiency() != 0.25 || row.Top != [...]float64{1, 1, 1} {
		t.Errorf("efficiency %v, top %v", row.Efficiency(), row.Top)
	}
	must.That(t, row.PickRank == 4 && row.BestRank == 3 && row.Measured == 4 && row.Rejected == 1 && len(row.Rows) == 3 &&
		len(row.Leading) == 3, "%+v", row)
	// Predicted 16, 32, 48 and last; measured 40, 20, 10, 30: of six pairs, 16-32, 16-48, 32-48 and 16-64 are
	// discordant.
	want := (2.0 - 4) / 6
	must.That(t, math.Abs(row.Tau-want) <= 1e-12, "tau %v, want %v", row.Tau, want)
	// |16/40 − 1|, |32/20 − 1|, |48/10 − 1|
	must.That(t, math.Abs(row.Error-0.6) <= 1e-12, "error %v", row.Error)

	group, err := GroupChoice(t.Context(), m, r, r.Problems)
	// The group 3 is nearest to 2.
	must.That(t, err == nil && group.Chosen.Count == 1 && group.Chosen.Worst == 1 && group.Constant.Worst == 0.8,
		"group %+v, %v", group, err)
}

// The efficiency of a pick that was never tried is unknown and left out of the mean. A failed pick has efficiency 0.
// The candidates after it count for Top.
func TestUnmeasuredPick(t *testing.T) {
	d, p := recorded(t)
	m := &model{cycles: func(c gemm.Config) float64 { return float64(c.BlockM) }}
	for _, block := range []int{1, 2, 3, 4, 16} {
		m.candidates = append(m.candidates, config(block, 0, 1))
	}
	row := evaluate1(t, m, SubsetOf(d), p)
	must.That(t, row.Pick.Config.BlockM == 1 && math.IsNaN(row.Efficiency()) && row.PickRank == 0 &&
		!row.Failed && row.Top[1] == 0.25 && row.Top[2] == 0.25, "%+v", row)
	_, ok := row.Pick.Held(Everywhere(&arch.Uncertainty{Ranges: []arch.ErrorRange{{Low: 0.1, High: 10}}}))
	must.That(t, !ok, "an interval held nothing")
	// What the sweep did not try is no pick.
	d.Untried = []gemm.Config{config(1, 8, 1), config(2, 8, 1), config(3, 8, 1)}
	tried := evaluate1(t, m, SubsetOf(d), p)
	must.That(t, tried.Pick.Config.BlockM == 4, "%+v", tried)
	if s := SummariseEvaluations([]Evaluation{row}, nil); s.Unmeasured != 1 || s.Failed != 0 ||
		!math.IsNaN(s.Efficiency.Geomean) || !math.IsNaN(s.Coverage) {
		t.Errorf("%+v", s)
	}
	d.Untried = nil
	add(t, d, dataset.Measurement{Problem: p, Config: config(1, 8, 1), Phase: dataset.Sweep, Status: dataset.NotBuilt})
	failed := evaluate1(t, m, SubsetOf(d), p)
	must.That(t, failed.Efficiency() == 0 && failed.Failed, "%+v", failed)
	s := SummariseEvaluations([]Evaluation{row, failed, failed}, nil)
	must.That(t, s.Unmeasured == 3 && s.Failed == 2 && s.Efficiency.Count == 2 && s.Efficiency.Worst == 0, "%+v", s)
}

func TestCoveredIntervals(t *testing.T) {
	d, p := recorded(t)
	m := &model{cycles: func(c gemm.Config) float64 { return 20 },
		candidates: []gemm.Config{config(32, 0, 1), config(48, 0, 1)}}
	row := evaluate1(t, m, SubsetOf(d), p)
	u := Everywhere(&arch.Uncertainty{Ranges: []arch.ErrorRange{{Bound: arch.BoundDRAM, Low: 1, High: 1},
		{Bound: arch.BoundL2, Below: 1, Low: 0.49, High: 1.4}}})
	s := SummariseEvaluations([]Evaluation{row}, u)
	// 20 and 10 of 40, 20, 10, 30 are within 10 to 28.
	covered, ok := row.Pick.Held(u)
	must.That(t, covered && ok && s.Coverage == 0.5 && s.PickCoverage == 1, "covered %v, %v; %+v", covered, ok, s)
}

// An error about one problem does not affect the others.
func TestProblemsWithoutAnswer(t *testing.T) {
	d, p := recorded(t)
	m := &model{cycles: func(c gemm.Config) float64 { return 1 }, candidates: []gemm.Config{config(32, 0, 1)}}
	rows, bad, err := Evaluate(t.Context(), m, SubsetOf(d), []gemm.Problem{gemm.New(13, 1, 1), gemm.New(5, 5, 5), p})
	must.That(t, err == nil && diag.KindOf(bad[0]) == diag.Input && diag.KindOf(bad[1]) == diag.Input && bad[2] == nil &&
		rows[2].Best.Config.BlockM == 48, "%v, %v", bad, err)
	if want := "made up: there are no recorded times of 5x5x5 fp16"; bad[1] == nil ||
		fmt.Sprint(bad[1])[:len(want)] != want {
		t.Errorf("%v", bad[1])
	}
}

// If each configuration was measured at a group of its own, it is scored at that group.
func TestOwnLaunchOrders(t *testing.T) {
	d := dataset.New("made up", dataset.Conditions{Arch: "a", Device: "d", Kernel: "f"})
	p := gemm.New(4096, 4096, 4096)
	addTime(t, d, p, config(16, 1, 1), 10)
	addTime(t, d, p, config(32, 4, 1), 20)
	m := &model{group: 4, cycles: func(c gemm.Config) float64 { return 100 / float64(c.BlockM) },
		candidates: []gemm.Config{config(16, 0, 1), config(32, 0, 1)}}
	r := SubsetOf(d)
	row := evaluate1(t, m, r, p)
	must.That(t, r.Group == 0 && row.Pick.Config == config(32, 4, 1) && row.Efficiency() == 0.5 &&
		row.Top[0] == 1 && row.BestRank == 2, "group %d, %+v", r.Group, row)
}

func TestClasses(t *testing.T) {
	for _, tc := range []struct {
		m, n, k int
		want    Class
	}{
		{64, 64, 64, Tiny}, {512, 512, 512, Tiny}, {1, 4096, 4096, Tiny}, {513, 512, 512, Square},
		{64, 16384, 4096, Decode}, {16384, 64, 4096, Decode}, {65, 16384, 4096, Skinny}, {512, 4096, 4096, Skinny},
		{513, 4096, 4096, Square}, {1024, 1024, 65536, LargeK}, {512, 512, 4095, Square}, {512, 512, 4096, LargeK},
		{8192, 8192, 8192, Square}, {8192, 28672, 8192, Square}, {1 << 40, 65, 1, Skinny},
	} {
		must.Equal(t, ClassOf(gemm.New(tc.m, tc.n, tc.k)), tc.want, tc.m, tc.n, tc.k)
	}
}
