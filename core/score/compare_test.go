package score

import (
	"context"
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// cycles is a model that predicts a cycle per element of block_m, at 1 Hz.
type cycles struct{ arch.Architecture }

func (cycles) Describe() *arch.Description { return &arch.Description{Clock: 1} }
func (cycles) Candidates(context.Context, gemm.Problem, arch.Space) (*arch.Candidates, error) {
	list := &arch.Candidates{}
	for _, m := range []int{64, 16, 256, 32, 128} {
		list.Configs = append(list.Configs, gemm.Config{BlockM: m, BlockN: 16, BlockK: 16, NumWarps: 4, NumStages: 2,
			SplitK: 1})
	}
	return list, nil
}
func (cycles) Estimate(_ context.Context, dst []arch.Estimate, _ gemm.Problem, cfgs []gemm.Config) error {
	for i, c := range cfgs {
		dst[i] = arch.Estimate{Cycles: unit.Cycles(c.BlockM)}
	}
	return nil
}
func (cycles) Mapping(context.Context, gemm.Problem, gemm.Config) (arch.Mapping, error) {
	return arch.Mapping{GroupM: 3}, nil
}

// sweep returns a dataset with a time per block_m; 0 is the library.
func sweep(t *testing.T, group int, p gemm.Problem, times map[int]unit.Seconds) *dataset.Dataset {
	t.Helper()
	data := dataset.New("here", dataset.Conditions{Kernel: "k"})
	for m, time := range times {
		entry := dataset.Measurement{
			Problem: p, Phase: dataset.Sweep, Status: dataset.OK, Median: time, Resources: exec.Resources{Registers: 7},
			Config: gemm.Config{BlockM: m, BlockN: 16, BlockK: 16, NumWarps: 4, NumStages: 2, SplitK: 1, GroupM: group},
		}
		if m == 0 {
			entry.Config, entry.Library = gemm.Config{}, "blas"
		}
		add(t, data, entry)
	}
	return data
}

func add(t *testing.T, data *dataset.Dataset, m dataset.Measurement) {
	t.Helper()
	must.Do(t, data.Add(m))
}

func TestCompare(t *testing.T) {
	// The model ranks 16, 32, 64, 128, 256. 16 has no record; 32 is picked and is third of four.
	ctx, p := context.Background(), gemm.New(64, 64, 64)
	times := map[int]unit.Seconds{32: 5, 64: 3, 128: 3, 256: 8, 0: 2.5}
	row := must.Get(Compare(ctx, cycles{}, sweep(t, 3, p, times), p))(t)
	if row.Candidates != 5 || row.Measured != 4 || row.PassedOver != 1 || row.Missing != 1 || row.PickRank != 3 ||
		row.BestRank != 2 || row.Pick.Predicted != 32 {
		t.Errorf("%+v", row)
	}
	must.That(t, row.Pick.Config.BlockM == 32 && row.Pick.Config.GroupM == 3 && row.Pick.Measured == 5 &&
		row.Pick.Resources.Registers == 7 && row.Best.Measured == 3 && row.Libraries[0] == 2.5, "%+v", row)
	if row.Efficiency() != 0.6 || row.VersusLibrary(0) != 0.5 || row.Phase != dataset.Sweep || !math.IsNaN(row.Noise) {
		t.Errorf("efficiency %v, %v of the library", row.Efficiency(), row.VersusLibrary(0))
	}
	// Predicted 32 < 64 < 128 < 256 against measured 5, 3, 3, 8: three pairs agree, two disagree, one is tied.
	want := 1 / (math.Sqrt(6) * math.Sqrt(5))
	must.That(t, math.Abs(row.Tau-want) <= 1e-12, "tau %v, want %v", row.Tau, want)

	// The records say at which group a candidate counts.
	delete(times, 0)
	other := sweep(t, 8, p, times)
	row, err := Compare(ctx, cycles{}, other, p)
	must.That(t, err == nil && row.Measured == 4 && row.Pick.Config.GroupM == 8 &&
		len(row.Libraries) == 0, "at another group: %+v, %v", row, err)
	other.GroupM = 3
	must.Refuse(t, must.Err(Compare(ctx, cycles{}, other, p)), "(5 not recorded)")
}

// The finals decide what they measured, and nothing else.
func TestFinals(t *testing.T) {
	ctx, p := context.Background(), gemm.New(64, 64, 64)
	data := sweep(t, 3, p, map[int]unit.Seconds{16: 5, 32: 4, 64: 3, 256: 8, 0: 2.5})
	add(t, data, dataset.Measurement{Problem: p, Config: gemm.Config{BlockM: 128, BlockN: 16, BlockK: 16, NumWarps: 4,
		NumStages: 2, SplitK: 1, GroupM: 3},
		Phase: dataset.Sweep, Status: dataset.Wrong, Detail: "wrong"})
	final := func(block, arms, m int, null bool, time unit.Seconds) {
		entry := dataset.Measurement{
			Problem: p, Phase: dataset.Final, Block: block, Arms: arms, Null: null, Status: dataset.OK, Median: time,
			Config: gemm.Config{BlockM: m, BlockN: 16, BlockK: 16, NumWarps: 4, NumStages: 2, SplitK: 1, GroupM: 3},
		}
		if m == 0 {
			entry.Config, entry.Library = gemm.Config{}, "blas"
		}
		if time == 0 {
			entry.Status = dataset.Failed
		}
		add(t, data, entry)
	}
	check := func(phase dataset.Phase, pick, best, library unit.Seconds, noise float64, failed int) {
		t.Helper()
		row := must.Get(Compare(ctx, cycles{}, data, p))(t)
		if row.Phase != phase || row.Pick.Measured != pick || row.Best.Measured != best || row.Libraries[0] != library ||
			math.Abs(row.Noise-noise) > 1e-12 && !math.IsNaN(noise) {
			t.Errorf("%+v", row)
		}
		must.That(t, row.PickRank == 3 && row.Measured == 4 && row.Wrong == 1 && row.Failed == failed &&
			len(row.Excluded) == 1+failed, "%+v", row)
		if row.Efficiency() > 1 {
			t.Errorf("efficiency %v", row.Efficiency())
		}
	}
	check(dataset.Sweep, 5, 3, 2.5, math.NaN(), 0)
	// The pick turns out to be the fastest; its second entry is not a candidate.
	final(1, 4, 16, false, 2)
	final(1, 4, 64, false, 3.5)
	final(1, 4, 0, false, 2.25)
	check(dataset.Sweep, 5, 3, 2.5, math.NaN(), 0) // a block that is not whole
	final(1, 4, 16, true, 1.5)
	check(dataset.Final, 2, 2, 2.25, 1.0/3, 0)
	// A later block without the pick is another model's.
	final(2, 1, 32, false, 1)
	check(dataset.Final, 2, 2, 2.25, 1.0/3, 0)
	// A later one with it counts, and a library that fails in it has no time.
	final(3, 3, 16, false, 4)
	final(3, 3, 32, false, 3)
	final(3, 3, 0, false, 0)
	check(dataset.Final, 4, 3, 0, math.NaN(), 1)
	// Where the pick fails, the block before counts.
	final(4, 1, 16, false, 0)
	check(dataset.Final, 4, 3, 0, math.NaN(), 1)
}

func TestSummarise(t *testing.T) {
	row := func(pick, best, library unit.Seconds, tau float64, passed int) Comparison {
		return Comparison{
			Evaluation: Evaluation{Problem: gemm.New(1, 1, 1), Pick: Row{Measured: pick}, Best: Row{Measured: best}, Tau: tau},
			Libraries:  []unit.Seconds{library, 0}, PassedOver: passed, Noise: tau, Wrong: 1, Missing: passed,
		}
	}
	d := sweep(t, 0, gemm.New(1, 1, 1), map[int]unit.Seconds{0: 1})
	add(t, d, dataset.Measurement{Problem: gemm.New(1, 1, 1), Phase: dataset.Sweep, Status: dataset.OK, Median: 1,
		Library: "other"})
	s := SummariseComparisons(d, []Comparison{row(1, 1, 2, 0.5, 0), row(2, 1, 0, 0.1, 3), row(4, 1, 1, math.NaN(), 0)})
	must.That(t, s.Problems == 3 && s.PassedOver == 1 && s.TauMean == 0.3 && s.TauWorst == 0.1 &&
		math.Abs(float64(s.Noise)-0.3) <= 1e-12 && s.Wrong == 3 && s.Missing == 3 && s.Unfinished == 1, "%+v", s)
	e := s.Efficiency
	must.That(t, e.Count == 3 && e.Median == 0.5 && math.Abs(e.Geomean-0.5) <= 1e-12 && e.Worst == 0.25 &&
		math.Abs(e.P10-0.3) <= 1e-12, "efficiency %+v", e)
	l := s.Libraries["other"]
	must.That(t, l.Count == 0, "a library without times %+v", l)
	l = s.Libraries["blas"]
	must.That(t, l == s.Versus && l.Count == 2 && l.Worst == 0.25 && l.Median == 1.125, "library %+v", l)
	empty := SummariseComparisons(d, nil)
	must.That(t, empty.Problems == 0 && empty.Efficiency == (stats.Quantiles{}) &&
		math.IsNaN(float64(empty.TauMean)), "of nothing: %+v", empty)
}
