package bench

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// model predicts a cycle per element of block_m, at 1 Hz.
type model struct{ arch.Architecture }

func (model) Describe() *arch.Description { return &arch.Description{Clock: 1} }
func (model) Candidates(context.Context, gemm.Problem, arch.Space) (*arch.Candidates, error) {
	list := &arch.Candidates{}
	for _, m := range []int{64, 16, 256, 32, 128} {
		list.Configs = append(list.Configs, gemm.Config{BlockM: m, BlockN: 16, BlockK: 16, NumWarps: 4, NumStages: 2, SplitK: 1})
	}
	return list, nil
}
func (model) Estimate(_ context.Context, dst []arch.Estimate, _ gemm.Problem, cfgs []gemm.Config) error {
	for i, c := range cfgs {
		dst[i] = arch.Estimate{Cycles: unit.Cycles(c.BlockM)}
	}
	return nil
}
func (model) Mapping(context.Context, gemm.Problem, gemm.Config) (arch.Mapping, error) {
	return arch.Mapping{GroupM: 3}, nil
}

// device runs configurations in written times; samples are given in a scrambled order.
type device struct {
	exec.Executor
	times map[int][]float64 // by block_m; 0 is the library
	group int
	fail  error
}

func (d device) Compile(_ context.Context, _ int, _ gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	times, ok := d.times[c.BlockM]
	if !ok || c.BlockM > 0 && c.GroupM != d.group {
		return nil, diag.Inputf("%s does not compile", c)
	}
	return run{times, d.fail}, nil
}

type run struct {
	times []float64
	fail  error
}

func (r run) Resources() exec.Resources                    { return exec.Resources{Registers: 7} }
func (r run) Check(context.Context) (exec.Numerics, error) { return exec.Numerics{}, nil }
func (r run) Close() error                                 { return nil }
func (r run) Measure(_ context.Context, _ exec.MeasureOptions, sample func(exec.Sample) bool) error {
	for _, t := range r.times {
		sample(exec.Sample{Time: unit.Seconds(t)})
	}
	return r.fail
}

func TestProblem(t *testing.T) {
	// The model ranks 16, 32, 64, 128, 256. 16 does not compile; 32 is picked and is third of four.
	d := device{times: map[int][]float64{32: {5, 90, 4}, 64: {3}, 128: {2, 4}, 256: {8}, 0: {2.5}}, group: 3}
	row, err := Problem(context.Background(), model{}, d, gemm.New(64, 64, 64), Options{Library: "blas"})
	if err != nil {
		t.Fatal(err)
	}
	if row.Candidates != 5 || row.Measured != 4 || row.PassedOver != 1 || row.PickRank != 3 || row.Predicted != 32 {
		t.Errorf("%+v", row)
	}
	if row.Pick.Config.BlockM != 32 || row.Pick.Config.GroupM != 3 || row.Pick.Time != 5 || row.Pick.Resources.Registers != 7 || row.Best.Time != 3 || row.Library != 2.5 {
		t.Errorf("%+v", row)
	}
	if row.Efficiency() != 0.6 || row.VersusLibrary() != 0.5 {
		t.Errorf("efficiency %v, %v of the library", row.Efficiency(), row.VersusLibrary())
	}
	// Predicted 32 < 64 < 128 < 256 against measured 5, 3, 3, 8: three pairs agree, two disagree, one is tied.
	if want := 1 / (math.Sqrt(6) * math.Sqrt(5)); math.Abs(row.Tau-want) > 1e-12 {
		t.Errorf("tau %v, want %v", row.Tau, want)
	}

	// All at one group, where the executor knows no other.
	d.group = 8
	if _, err := Problem(context.Background(), model{}, d, gemm.New(64, 64, 64), Options{}); diag.KindOf(err) != diag.Input {
		t.Errorf("nothing measurable: %v", err)
	}
	if row, err := Problem(context.Background(), model{}, d, gemm.New(64, 64, 64), Options{GroupM: 8}); err != nil || row.Measured != 4 || row.Library != 0 {
		t.Errorf("at group 8: %+v, %v", row, err)
	}
	// A device that is lost is no configuration that does not fit.
	lost := errors.New("lost")
	d.fail = lost
	if _, err := Problem(context.Background(), model{}, d, gemm.New(64, 64, 64), Options{GroupM: 8}); !errors.Is(err, lost) {
		t.Errorf("a lost device: %v", err)
	}
}

func TestSummarise(t *testing.T) {
	row := func(pick, best, library unit.Seconds, tau float64, passed int) Row {
		return Row{Problem: gemm.New(1, 1, 1), Pick: Measured{Time: pick}, Best: Measured{Time: best}, Library: library, Tau: tau, PassedOver: passed}
	}
	s := Summarise([]Row{row(1, 1, 2, 0.5, 0), row(2, 1, 0, 0.1, 3), row(4, 1, 1, math.NaN(), 0)})
	if s.Problems != 3 || s.PassedOver != 1 || s.TauMean != 0.3 || s.TauWorst != 0.1 {
		t.Errorf("%+v", s)
	}
	if e := s.Efficiency; e.Count != 3 || e.Median != 0.5 || math.Abs(e.Geomean-0.5) > 1e-12 || e.Worst != 0.25 || math.Abs(e.P10-0.3) > 1e-12 {
		t.Errorf("efficiency %+v", e)
	}
	if l := s.Library; l.Count != 2 || l.Worst != 0.25 || l.Median != 1.125 {
		t.Errorf("library %+v", l)
	}
	if empty := Summarise(nil); empty.Problems != 0 || empty.Efficiency != (Spread{}) || !math.IsNaN(empty.TauMean) {
		t.Errorf("of nothing: %+v", empty)
	}
}

func TestSizes(t *testing.T) {
	seen := map[gemm.Problem]bool{}
	for _, p := range Sizes() {
		if err := p.Validate(); err != nil || seen[p] {
			t.Errorf("%s: %v", p, err)
		}
		seen[p] = true
	}
	if len(seen) != 23 {
		t.Errorf("%d sizes", len(seen))
	}
}
