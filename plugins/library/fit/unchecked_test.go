//go:build !race

package fit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/library/published"
	"github.com/origami-gemm/origami/plugins/library/terms"
)

var updateUnchecked = flag.Bool("update-unchecked", false, "write plugins/library/checked/unchecked.jsonl")

const uncheckedFile = "../checked/unchecked.jsonl"

// uncheckedSample is the number of times of a series from which the widths of unchecked predictions are found. Few are
// enough: generations differ, not shapes.
const uncheckedSample = 60

// enough generations of a vendor in a type say something of another one. Of fewer, a single one decides.
const enough = 6

// The shipped widths of predictions for devices of which no times are known are those that the generations with times
// have if each is predicted without its own fitted values, as a generation without times is: those of the vendor in the
// type, where they are enough.
func TestUnchecked(t *testing.T) {
	fitted := terms.Fitted()
	var groups []score.Group
	for _, g := range terms.Generations() {
		values := map[string]float64{}
		others := maps.Clone(fitted)
		maps.DeleteFunc(others, func(key string, _ map[string]float64) bool {
			return key == string(g) || strings.HasPrefix(key, string(g)+" ")
		})
		for i := range terms.Quantities {
			q := &terms.Quantities[i]
			values[q.Name], _ = q.In(others, terms.Variant{Generation: g})
		}
		sample := read(t, g, func(x *published.Time) bool {
			fitted := x.DType == "fp32" && slices.Contains(lanes[1:], g) // with those of another generation
			return !doubtful(x) && !fitted
		}, uncheckedSample)
		byType := map[string]*score.Group{}
		must.Do(t, sample.Errors(t.Context(), values, func(x *published.Time, e float64) {
			p, err := x.Problem()
			if err != nil {
				return
			}
			vendor, dtype := "NVIDIA", p.DType.CostsLike()
			if strings.HasPrefix(x.Device, "gfx") {
				vendor = "AMD"
			}
			if dtype.Bits() == 16 {
				dtype = gemm.FP16
			}
			kind := vendor + " " + dtype.String()
			if byType[kind] == nil {
				byType[kind] = &score.Group{Name: string(g), Part: kind}
			}
			of := byType[kind]
			of.Rows = append(of.Rows, score.Row{
				Problem: p, Predicted: unit.Seconds(float64(x.Median) * math.Exp(e)), Measured: x.Median,
			})
		}))
		for _, kind := range slices.Sorted(maps.Keys(byType)) {
			groups = append(groups, *byType[kind])
		}
	}
	f := score.LeaveGroupsOut(groups)
	for _, left := range f.Left {
		t.Logf("%-20s %-5s %5d times, %3.0f %% held, median error %.0f %%", left.Name, left.Part, left.Times,
			100*left.Held, 100*left.Error)
	}
	t.Logf("widening %.3f, %.1f %% held, median high ÷ low %.2f", f.Widening, 100*f.Held, f.Width)
	must.That(t, f.Held >= 0.8, "%.1f %% of the times of a generation that is left out are held, want 80 %%", 100*f.Held)
	parts := map[string][]score.Group{"": groups}
	for _, g := range groups {
		parts[g.Part] = append(parts[g.Part], g)
	}
	var text []byte
	for _, part := range slices.Backward(slices.Sorted(maps.Keys(parts))) { // the one of all comes last
		list := parts[part]
		if len(list) < enough {
			continue
		}
		vendor, _, _ := strings.Cut(part, " ")
		u := arch.Uncertainty{
			Level: score.Level, Evidence: arch.EvidenceUnchecked, Ranges: score.GroupRanges(list, f.Widening),
			Checked: arch.Checked{Layouts: layoutsOf(part, list)},
			Source: fmt.Sprintf("published times of %d generations, each predicted without its own fitted values; of those "+
				"left out the ranges hold %.0f %%", generationsOf(list), 100*f.Held),
		}
		line := must.Get(json.Marshal(struct {
			Vendor      string           `json:"vendor"`
			Uncertainty arch.Uncertainty `json:"uncertainty"`
		}{vendor, u}))(t)
		text = append(append(text, line...), '\n')
	}
	if *updateUnchecked {
		must.Do(t, os.WriteFile(uncheckedFile, text, 0o644))
	}
	shipped, err := os.ReadFile(uncheckedFile)
	must.That(t, err == nil && bytes.Equal(shipped, text),
		"%s is not what the fitted values give (%v): make checked", uncheckedFile, err)
}

// layoutsOf are the types of a part, none of all times.
func layoutsOf(part string, list []score.Group) (layouts []arch.Layout) {
	for i := range list {
		for j := range list[i].Rows {
			l := arch.Layout{Types: list[i].Rows[j].Problem.Types(), BMajor: gemm.MajorK}
			if part != "" && !slices.Contains(layouts, l) {
				layouts = append(layouts, l)
			}
		}
	}
	return layouts
}

// generationsOf counts the generations of groups.
func generationsOf(list []score.Group) int {
	names := map[string]bool{}
	for i := range list {
		names[list[i].Name] = true
	}
	return len(names)
}
