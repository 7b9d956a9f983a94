//go:build !race

package amdref_test

import (
	"flag"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/must"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
)

var (
	show   = flag.Bool("show", false, "print the tables of docs/model-tensile.md")
	update = flag.Bool("update", false, "write what the model says of its errors")
)

// agreement counts how often a model chooses as AMD's tuning did.
type agreement struct {
	sizes int
	// same: the same tile, either way round. area: its area is within a factor of 2.
	same, area int
	// split: the library splits K. both: so does the model. either: one of them does and the other does not.
	split, both, either int
}

func (a *agreement) add(recorded, chosen *gemm.Config) {
	a.sizes++
	direct := recorded.BlockM == chosen.BlockM && recorded.BlockN == chosen.BlockN
	if direct || recorded.BlockM == chosen.BlockN && recorded.BlockN == chosen.BlockM {
		a.same++
	}
	if r := float64(recorded.BlockM*recorded.BlockN) / float64(chosen.BlockM*chosen.BlockN); r <= 2 && r >= 0.5 {
		a.area++
	}
	library, model := recorded.SplitK > 1, chosen.SplitK > 1
	if library {
		a.split++
	}
	if library && model {
		a.both++
	}
	if library != model {
		a.either++
	}
}

func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

// student is a model that chooses: among its own candidates, or among the kernels that the library has.
type student struct {
	model arch.Architecture
	own   *selector.Selector
	// kernels are those that the library chose for some size of the data, as the model names them.
	kernels []gemm.Config
}

func (s *student) chooseOwn(t *testing.T, p gemm.Problem) gemm.Config {
	var result selector.Result
	must.Do(t, s.own.Select(t.Context(), p, &result))
	return result.Entries[0].Config
}

func (s *student) chooseLibrary(t *testing.T, p gemm.Problem) gemm.Config {
	return s.kernels[fastest(t, s.model, p, s.kernels)]
}

// fastest is the place of the kernel of a list that a model predicts to be the fastest.
func fastest(t *testing.T, a arch.Architecture, p gemm.Problem, kernels []gemm.Config) int {
	t.Helper()
	times := archtest.Seconds(t, a, p, kernels...)
	best := slices.Index(times, slices.Min(times))
	if math.IsInf(times[best], 1) {
		t.Fatalf("%s takes none of the kernels for %s", a.Describe().Model, p)
	}
	return best
}

// newStudent opens a model for the device of a row. Its own candidates are with stream-K, or all without, as the
// library's are.
func newStudent(t *testing.T, provider arch.Provider, model string, r *recorded, kernels []gemm.Config) *student {
	t.Helper()
	request := r.Request()
	if model != "refined" {
		request.Model, request.Kernel, request.Options = model, "", nil
	}
	a := must.Get(provider.Open(t.Context(), request))(t)
	var space arch.Space
	if model == "refined" {
		streamK := "0"
		if r.Set == "stream-k" {
			streamK = "1"
		}
		space.Axes = []arch.AxisValues{{Name: kernel.StreamK.Name, Values: []string{streamK}}}
	}
	s := &student{model: a, own: selector.New(a, space)}
	for _, c := range kernels {
		if c.Kernel = a.Describe().Kernels[0]; c.Kernel != kernel.Name {
			c.Axes = gemm.Axes{} // the reference knows no axes
		}
		s.kernels = append(s.kernels, c)
	}
	return s
}

// kernelsOf returns the kernels of each key, with the default work-group mapping.
func kernelsOf(rows []recorded) map[string][]gemm.Config {
	kernels := map[string][]gemm.Config{}
	for i := range rows {
		key, c := rows[i].Key(), rows[i].Config
		if c.GroupM = 8; !slices.Contains(kernels[key], c) {
			kernels[key] = append(kernels[key], c)
		}
	}
	return kernels
}

// choices scores models on one row in so many of those that count, by class, model and the kernels to choose from.
func choices(t *testing.T, every int, counts func(*recorded) bool) map[string]*agreement {
	t.Helper()
	rows := readRecorded(t)
	provider := must.Get(amdref.Provider())(t)
	kernels, students, scores, seen := kernelsOf(rows), map[string]*student{}, map[string]*agreement{}, map[string]int{}
	for i := range rows {
		r := &rows[i]
		if seen[r.Key()]++; seen[r.Key()]%every != 0 || !counts(r) {
			continue
		}
		for _, model := range []string{"refined", "reference"} {
			if model == "reference" && r.Arch == "gfx900" {
				continue // it has no FMA
			}
			s := students[r.Key()+model]
			if s == nil {
				s = newStudent(t, provider, model, r, kernels[r.Key()])
				students[r.Key()+model] = s
			}
			for from, choose := range map[string]func(*testing.T, gemm.Problem) gemm.Config{
				"own": s.chooseOwn, "library's": s.chooseLibrary,
			} {
				chosen := choose(t, r.Problem)
				for _, class := range classes(r) {
					key := class + " | " + from + " | " + model
					if scores[key] == nil {
						scores[key] = &agreement{}
					}
					scores[key].add(&r.Config, &chosen)
				}
			}
		}
	}
	return scores
}

// classes are the lines of the table that a row counts in.
func classes(r *recorded) []string {
	list := []string{r.Arch + " " + strings.TrimSuffix(r.Set, "-archive")}
	if r.Problem.K >= 8*max(r.Problem.M, r.Problem.N) && r.Set != "stream-k" {
		list = append(list, r.Arch+" large K")
	}
	return list
}

// The refined model chooses as AMD's tuning did about as often as the reference or more often, and splits K where the
// library does. With -show, the scores are of all rows, as docs/model-tensile.md has them.
func TestChoices(t *testing.T) {
	every := 8
	if *show {
		every = 1
	}
	onFullChips := func(r *recorded) bool {
		return r.Problem.Batch == 1 && (r.Arch != "gfx942" || r.CUs == 304)
	}
	scores := choices(t, every, onFullChips)
	for _, key := range slices.Sorted(maps.Keys(scores)) {
		a := scores[key]
		t.Logf("| %s | %d | %.0f %% | %.0f %% | %d of %d, %d |", key, a.sizes, 100*share(a.same, a.sizes),
			100*share(a.area, a.sizes), a.both, a.split, a.either)
	}
	for class, floor := range map[string]struct{ same, area float64 }{
		"gfx942 stream-k": {0.45, 0.8}, "gfx942 rocblas": {0.33, 0.78}, "gfx90a rocblas": {0.15, 0.52},
		"gfx900 vega": {0.15, 0.65},
	} {
		a := scores[class+" | own | refined"]
		must.That(t, share(a.same, a.sizes) >= floor.same && share(a.area, a.sizes) >= floor.area,
			"%s: the same tile at %d of %d sizes, a similar one at %d", class, a.same, a.sizes, a.area)
	}
	for _, class := range []string{"gfx942 large K", "gfx90a large K"} {
		if a := scores[class+" | own | refined"]; share(a.both, a.split) < 0.5 {
			t.Errorf("%s: the model splits %d of the %d sizes that the library does", class, a.both, a.split)
		}
	}
}
