package bench

import (
	"math"
	"testing"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/exec/replay"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/record"
	"github.com/origami-gemm/origami/core/unit"
)

func TestChoose(t *testing.T) {
	const none = 0
	for name, tc := range map[string]struct {
		times []unit.Seconds // of the candidates and the null arm
		want  int
		noise float64
	}{
		"the fastest":                     {[]unit.Seconds{1.2, 1.1, 1, 1.25}, 2, 1.25/1.2 - 1},
		"within the noise the first":      {[]unit.Seconds{1.02, 1.1, 1, 1.05}, 0, 1.05/1.02 - 1},
		"the null arm may be the faster":  {[]unit.Seconds{1.05, 1.1, 1.02, 1}, 0, 0.05},
		"the first has no time":           {[]unit.Seconds{none, 1.1, 1.2, none}, 1, math.NaN()},
		"the null arm has none":           {[]unit.Seconds{1.001, 1, 1.2, none}, 1, math.NaN()},
		"nobody has":                      {[]unit.Seconds{none, none, none}, -1, math.NaN()},
		"the first alone":                 {[]unit.Seconds{1, 1.5}, 0, 0.5},
		"never the null arm for another":  {[]unit.Seconds{1.5, 1.4, 1}, 0, 0.5},
		"equal times leave the first one": {[]unit.Seconds{1, 1, 1}, 0, 0},
	} {
		block := make([]record.Measurement, len(tc.times))
		for i, time := range tc.times {
			block[i] = record.Measurement{Status: record.OK, Median: time, Null: i == len(tc.times)-1}
			if time == none {
				block[i].Status = record.Failed
			}
		}
		got, noise := Choose(block)
		if got != tc.want || math.Abs(noise-tc.noise) > 1e-12 || math.IsNaN(noise) != math.IsNaN(tc.noise) {
			t.Errorf("%s: %d with noise %v, want %d with %v", name, got, noise, tc.want, tc.noise)
		}
	}
}

// Over recorded measurements the recorded times come back, a wrong result is not timed, and what is not recorded is said.
func TestTurnsOfRecords(t *testing.T) {
	p := gemm.New(256, 256, 256)
	data := record.New("made up", record.Conditions{Arch: "toy", Device: "d", Kernel: "k", Input: "normal"})
	config := func(block int) gemm.Config {
		return gemm.Config{BlockM: block, BlockN: 16, BlockK: 16, NumWarps: 4, NumStages: 2, SplitK: 1, GroupM: 8, Kernel: "k"}
	}
	for block, median := range map[int]unit.Seconds{16: 3e-3, 32: 2e-3, 48: 1e-3} {
		m := record.Measurement{Problem: p, Config: config(block), Phase: record.Sweep, Status: record.OK, Median: median, Runs: 1}
		if block == 48 {
			m.Status, m.Numerics = record.Wrong, &exec.Numerics{MaxError: 1, Tolerance: 0.1, Wrong: 5}
		}
		if err := data.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	s := &Sweep{Executor: replay.New(data), Data: record.New("", data.Conditions)}
	block, err := s.Turns(t.Context(), p, []gemm.Config{config(16), config(32), config(48), config(64)})
	if err != nil {
		t.Fatal(err)
	}
	want := []record.Status{record.OK, record.OK, record.Wrong, record.Failed, record.OK}
	for i, m := range block {
		if m.Status != want[i] || m.Null != (i == 4) || (m.Status == record.OK) != (m.Runs >= minRounds) {
			t.Errorf("arm %d: %s after %d runs, null %v: %s", i, m.Status, m.Runs, m.Null, m.Detail)
		}
	}
	if choice, noise := Choose(block); choice != 1 || noise != 0 || block[1].Median != 2e-3 {
		t.Errorf("chose %d at %v with noise %v", choice, block[1].Median, noise)
	}
	if data := s.Data; data.Len() != 0 {
		t.Errorf("%d measurements are kept", data.Len())
	}
}
