package selector

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// table is an architecture with given estimates.
type table struct {
	order   arch.Order
	configs []gemm.Config
	cycles  []float64 // NaN stands for a rejection by the model
	static  []arch.Rejection
	params  hw.Set
}

func (t *table) Describe() *arch.Description {
	return &arch.Description{Arch: "table", Device: "test", Model: "written", Order: t.order, Params: t.params}
}
func (t *table) Hierarchy() arch.MemoryHierarchy { return nil }
func (t *table) Candidates(context.Context, gemm.Problem, arch.Space) (*arch.Candidates, error) {
	return &arch.Candidates{Configs: t.configs, Rejected: t.static}, nil
}
func (t *table) Estimate(_ context.Context, dst []arch.Estimate, _ gemm.Problem, cfgs []gemm.Config) error {
	for i := range cfgs {
		dst[i] = arch.Estimate{Cycles: unit.Cycles(t.cycles[i])}
		if math.IsNaN(t.cycles[i]) {
			dst[i] = arch.Estimate{Reject: arch.ReasonModelRule}
		}
	}
	return nil
}
func (t *table) Terms(context.Context, []float64, gemm.Problem, []gemm.Config) error { return nil }
func (t *table) Mapping(_ context.Context, _ gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	return arch.Mapping{GroupM: c.BlockM / 16}, nil
}

func tile(m, n, k int) gemm.Config { return gemm.Config{BlockM: m, BlockN: n, BlockK: k} }

func ranked(t *testing.T, a arch.Architecture, top int) Result {
	t.Helper()
	results, err := Rank(context.Background(), a, Request{Problems: []gemm.Problem{gemm.New(64, 64, 64)}, Top: top})
	must.Do(t, err)
	must.Do(t, results[0].Err)
	return results[0]
}

func indices(r Result) []int {
	out := make([]int, len(r.Entries))
	for i, e := range r.Entries {
		out[i] = e.Index
	}
	return out
}

func TestBitEqualTotalsGoByIntensityThenCandidateOrder(t *testing.T) {
	a := &table{
		order: arch.Order{Keys: []arch.Key{arch.KeyIntensity}},
		configs: []gemm.Config{
			tile(16, 16, 16), tile(64, 128, 64), tile(128, 64, 64), tile(32, 32, 32), tile(64, 64, 64),
		},
		cycles: []float64{50, 100, 100, 200, 200},
	}
	// Candidates 1 and 2 tie in both. Candidate 4 has the higher intensity of the second tie.
	must.Alike(t, indices(ranked(t, a, 0)), []int{0, 1, 2, 4, 3})
}

func TestWindowReordersTheLeadingGroupOnly(t *testing.T) {
	a := &table{
		order: arch.Order{Window: 0.01, Keys: []arch.Key{arch.KeyIntensity, arch.KeyLargeTile}},
		configs: []gemm.Config{
			tile(16, 16, 16),  // best, lowest intensity
			tile(64, 128, 64), // highest intensity of the group, twice: the larger block_m is first
			tile(128, 64, 64),
			tile(32, 32, 32),
			tile(256, 256, 64), // exactly at the window, so outside the group
			tile(64, 64, 64),
			tile(128, 128, 64),
		},
		cycles: []float64{100, 100.5, 100.9, 100.2, 101, 300, 301},
	}
	want := []int{2, 1, 3, 0, 4, 5, 6}
	must.Alike(t, indices(ranked(t, a, 0)), want)
}

// The top-k list is a prefix of the full list, for both kinds of order, with many ties.
func TestTopIsAPrefix(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	sizes := []int{16, 32, 64, 128, 256}
	for round := range 300 {
		a := &table{order: arch.Order{Keys: []arch.Key{arch.KeyIntensity}}}
		if round%2 == 0 {
			a.order = arch.Order{Window: 0.05, Keys: []arch.Key{arch.KeyIntensity, arch.KeyLargeTile}}
		}
		for range 1 + rng.IntN(200) {
			a.configs = append(a.configs, tile(sizes[rng.IntN(5)], sizes[rng.IntN(5)], sizes[rng.IntN(5)]))
			cycles := 1000 + float64(rng.IntN(60))
			if rng.IntN(10) == 0 {
				cycles = math.NaN()
			}
			a.cycles = append(a.cycles, cycles)
		}
		a.cycles[0] = 1000
		full := indices(ranked(t, a, 0))
		for _, top := range []int{1, 2, 7, 40, len(full), len(full) + 5} {
			if got := indices(ranked(t, a, top)); !slices.Equal(got, full[:min(top, len(full))]) {
				t.Fatalf("top %d is %v, the full list starts %v", top, got, full[:min(top, len(full))])
			}
		}
		sorted := slices.Clone(full)
		sort.Ints(sorted)
		must.Need(t, len(slices.Compact(sorted)) == len(full), "an entry is missing or doubled in %v", full)
	}
}

func TestCountsAndMapping(t *testing.T) {
	a := &table{
		configs: []gemm.Config{tile(16, 16, 16), tile(32, 16, 16), tile(64, 16, 16)},
		cycles:  []float64{3, 2, math.NaN()},
		static:  []arch.Rejection{{Config: tile(256, 256, 256), Position: 3, Reason: arch.ReasonSharedMemory}},
	}
	r := ranked(t, a, 1)
	must.That(t, r.Feasible == 2 && r.RejectedTotal() == 2 && r.Entries[0].Config.GroupM == 2, "%+v", r)
	a.cycles = []float64{math.NaN(), math.NaN(), math.NaN()}
	problems := []gemm.Problem{gemm.New(0, 1, 1), gemm.New(1, 1, 1)}
	results := must.Get(Rank(context.Background(), a, Request{Problems: problems}))(t)
	must.Refuse(t, results[1].Err, "3 model_rule, 1 shared_memory")
}

// An invalid prediction, or one whose time is infinite or zero, is the fault of the model, or of the user who has
// changed its numbers.
func TestNonsenseTotalsAreRefused(t *testing.T) {
	for _, bad := range []float64{0, -1, math.Inf(1), math.SmallestNonzeroFloat64, math.MaxFloat64} {
		a := &table{configs: []gemm.Config{tile(16, 16, 16)}, cycles: []float64{bad}}
		var r Result
		err := New(a, arch.Space{}).Select(context.Background(), gemm.New(1, 1, 1), &r)
		must.Equal(t, diag.KindOf(err), diag.Plugin, bad, err)
		a.params = hw.Set{{Name: "clock", Tier: hw.Override}, {Name: "num_sms", Tier: hw.Derived}}
		err = New(a, arch.Space{}).Select(context.Background(), gemm.New(1, 1, 1), &r)
		must.Refuse(t, err, "with other values of clock; ")
	}
}

func TestMemoAnswersAsTheSelector(t *testing.T) {
	a := &table{configs: []gemm.Config{tile(16, 16, 16), tile(32, 16, 16)}, cycles: []float64{3, 2}}
	m := NewMemo(New(a, arch.Space{}))
	for range 2 {
		e, err := m.Select(context.Background(), gemm.New(1, 1, 1))
		must.That(t, err == nil && e.Index == 1, "%+v, %v", e, err)
	}
	if _, err := m.Select(context.Background(), gemm.New(0, 1, 1)); diag.KindOf(err) != diag.Input {
		t.Errorf("m = 0: %v", err)
	}
}

// Lists of groups, which take kilobytes and seldom come twice, are answered and not kept.
func TestMemoKeepsNoGroups(t *testing.T) {
	a := &table{configs: []gemm.Config{tile(16, 16, 16), tile(32, 32, 32)}, cycles: []float64{200, 100}}
	m := NewMemo(New(a, arch.Space{}))
	groups := must.Get(gemm.NewGroups(100, 28))(t)
	p := gemm.New(128, 64, 64)
	p.SetGroups(groups)
	if e, err := m.Select(t.Context(), p); err != nil || e.Index != 1 || len(m.picks) != 0 {
		t.Errorf("%+v, %v, with %d picks kept", e, err, len(m.picks))
	}
}

// fastest is mapped, and finds the fastest by itself: the estimates of the others are too low. It counts its calls.
type fastest struct {
	mapped
	window float64
	asked  int
}

func (f *fastest) Describe() *arch.Description {
	return &arch.Description{Arch: "test", Device: "test", Order: arch.Order{Window: f.window}}
}

func (f *fastest) EstimateFastest(
	ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config, top int,
) error {
	f.asked++
	err := f.Estimate(ctx, dst, p, cfgs)
	for i := range dst[:len(dst)-top] {
		dst[i] = arch.Estimate{Cycles: 99}
	}
	return err
}

// A ranking of a few asks an architecture for these alone, if it can, and has the same result. A ranking of all, and
// one that orders candidates with similar totals, estimate all.
func TestFastest(t *testing.T) {
	for _, test := range []struct {
		top    int
		window float64
		asked  int
	}{{1, 0, 1}, {3, 0, 1}, {0, 0, 0}, {3, 0.05, 0}} {
		a := &fastest{window: test.window}
		var got, want Result
		must.Do(t, New(a, arch.Space{}).Rank(t.Context(), gemm.New(64, 64, 64), test.top, &got))
		must.Do(t, New(&a.mapped, arch.Space{}).Rank(t.Context(), gemm.New(64, 64, 64), test.top, &want))
		must.Equal(t, a.asked, test.asked, test.top, test.window)
		for i, e := range got.Entries {
			if e != want.Entries[i] && test.window == 0 {
				t.Errorf("top %d: entry %d is %+v, want %+v", test.top, i, e, want.Entries[i])
			}
		}
	}
}

// mapped is an architecture with ten candidates. The last is the fastest. It counts the calls of Mapping.
type mapped struct {
	arch.Architecture
	calls int
}

func (*mapped) Describe() *arch.Description { return &arch.Description{Arch: "test", Device: "test"} }

func (*mapped) Candidates(context.Context, gemm.Problem, arch.Space) (*arch.Candidates, error) {
	c := &arch.Candidates{}
	for i := range 10 {
		c.Configs = append(c.Configs, gemm.Config{BlockM: 16 * (i + 1), BlockN: 16, BlockK: 16})
	}
	return c, nil
}

func (*mapped) Estimate(_ context.Context, dst []arch.Estimate, _ gemm.Problem, _ []gemm.Config) error {
	for i := range dst {
		dst[i] = arch.Estimate{Cycles: unit.Cycles(100 - i)}
	}
	return nil
}

func (m *mapped) Mapping(context.Context, gemm.Problem, gemm.Config) (arch.Mapping, error) {
	m.calls++
	return arch.Mapping{GroupM: 7}, nil
}

// A ranking maps the requested number of entries, best first, regardless of earlier rankings.
func TestMap(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct{ top, toMap, want int }{
		{0, 0, 10}, {0, 1, 1}, {3, 0, 3}, {3, 2, 2}, {3, 5, 3}, {1, 1, 1},
	} {
		m := &mapped{}
		s := New(m, arch.Space{})
		var result Result
		must.Do(t, s.Rank(ctx, gemm.New(64, 64, 64), 0, &result))
		m.calls, s.Map = 0, c.toMap
		must.Do(t, s.Rank(ctx, gemm.New(64, 64, 64), c.top, &result))
		viaRequest := must.Get(Rank(ctx, m,
			Request{Problems: []gemm.Problem{gemm.New(64, 64, 64)}, Top: c.top, Map: c.toMap}))(t)
		must.Equal(t, m.calls, 2*c.want, c.top, c.toMap, c.want)
		for i, e := range result.Entries {
			want := 0
			if i < c.want {
				want = 7
			}
			must.That(t, e.Config.GroupM == want && e.Mapping.GroupM == want && e.Config.BlockM == 16*(10-i),
				"top %d, map %d: entry %d is %v with mapping %v, want group %d", c.top, c.toMap, i, e.Config, e.Mapping, want)
			must.Equal(t, e, viaRequest[0].Entries[i], i)
		}
	}
}
