package amdref_test

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	amdref "github.com/origami-gemm/origami/plugins/amd-ref"
	"github.com/origami-gemm/origami/plugins/amd-ref/internal/tuned"
)

var show = flag.Bool("show", false, "print how often the models choose as AMD's tuning did")

// agreement counts how often a model chooses as AMD's tuning did.
type agreement struct {
	sizes int
	// same: the same tile, either way round. area: its area within a factor of 2. split: both split K, or neither does.
	same, area, split                     int
	librarySplits, modelSplits, bothSplit int
	behind                                []float64 // the model's time of the recorded kernel ÷ that of its own choice
}

func (a *agreement) add(recorded, chosen gemm.Config) {
	a.sizes++
	direct := recorded.BlockM == chosen.BlockM && recorded.BlockN == chosen.BlockN
	turned := recorded.BlockM == chosen.BlockN && recorded.BlockN == chosen.BlockM
	if direct || turned {
		a.same++
	}
	ratio := float64(recorded.BlockM*recorded.BlockN) / float64(chosen.BlockM*chosen.BlockN)
	if ratio <= 2 && ratio >= 0.5 {
		a.area++
	}
	if (recorded.SplitK > 1) == (chosen.SplitK > 1) {
		a.split++
	}
	if recorded.SplitK > 1 {
		a.librarySplits++
		if chosen.SplitK > 1 {
			a.bothSplit++
		}
	}
	if chosen.SplitK > 1 {
		a.modelSplits++
	}
}

func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

func (a *agreement) String() string {
	s := fmt.Sprintf("%5d sizes, same tile %.2f, area within 2x %.2f, split agrees %.2f (lib %d, model %d, both %d)", a.sizes,
		share(a.same, a.sizes), share(a.area, a.sizes), share(a.split, a.sizes), a.librarySplits, a.modelSplits, a.bothSplit)
	if len(a.behind) > 0 {
		slices.Sort(a.behind)
		s += fmt.Sprintf(", recorded kernel p50 %.3f p90 %.3f of the model's best", a.behind[len(a.behind)/2], a.behind[len(a.behind)*9/10])
	}
	return s
}

func TestChoices(t *testing.T) {
	rows, err := tuned.Read("data")
	if err != nil {
		t.Fatal(err)
	}
	provider, err := amdref.Provider()
	if err != nil {
		t.Fatal(err)
	}
	type opened struct {
		a arch.Architecture
		s *selector.Selector
	}
	models := map[string]opened{}
	scores := map[string]*agreement{}
	var keys []string
	perKey := map[string]int{}
	for _, r := range rows {
		key := r.Key()
		if perKey[key]++; perKey[key]%5 != 0 {
			continue
		}
		for _, model := range []string{"refined", "reference"} {
			if model == "reference" && r.Arch == "gfx900" {
				continue
			}
			key := key + " " + model
			m, ok := models[key]
			if !ok {
				request := r.Request()
				if model == "reference" {
					request.Kernel, request.Model = "", model
				}
				a, err := provider.Open(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				m = opened{a, selector.New(a, arch.Space{})}
				models[key], scores[key] = m, &agreement{}
				keys = append(keys, key)
			}
			var result selector.Result
			if err := m.s.Select(t.Context(), r.Problem, &result); err != nil {
				t.Fatal(err)
			}
			chosen := result.Entries[0].Config
			scores[key].add(r.Config, chosen)
			if model == "refined" {
				var e [2]arch.Estimate
				if err := m.a.Estimate(t.Context(), e[:], r.Problem, []gemm.Config{r.Config, chosen}); err != nil {
					t.Fatal(err)
				}
				if e[0].Reject == "" {
					scores[key].behind = append(scores[key].behind, float64(e[0].Cycles/e[1].Cycles))
				}
				if *show && perKey[key[:len(key)-8]]%50 == 0 {
					fmt.Println(key, r.Layout, r.Problem.M, r.Problem.N, r.Problem.K, r.Problem.Batch, "rec", r.Config, "pick", chosen, fmt.Sprintf("%.2f", math.Max(0, float64(e[0].Cycles/e[1].Cycles))))
				}
			}
		}
	}
	for _, key := range keys {
		fmt.Printf("%-40s %s\n", key, scores[key])
	}
}
