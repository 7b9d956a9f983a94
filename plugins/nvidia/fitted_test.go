//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package nvidia_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/nvidia/fusedmoe"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined"
	"github.com/origami-gemm/origami/plugins/nvidia/sgemm"
)

// A model declares the data sets of its quantities and of its intervals, on every device, and no other.
func TestFitted(t *testing.T) {
	p := nvtest.Provider(t)
	for _, a := range p.Manifest().Archs {
		for _, d := range a.Devices {
			for _, model := range a.Models {
				opened := nvtest.Open(t, arch.OpenRequest{Arch: a.ID, Device: d.ID, Model: model})
				var want []string
				if m, ok := opened.(*pipelined.Model); ok {
					for _, q := range m.Quantities() {
						want = append(want, strings.Split(q.DataSet, ", ")...)
					}
				}
				if _, ok := opened.(*sgemm.Model); ok {
					want = append(want, sgemm.DataSet)
				}
				if k := opened.Describe().Kernels; slices.Contains(k, library.Family) || slices.Contains(k, fusedmoe.Family) {
					continue // fitted to published times, which plugins do not contain
				}
				for _, u := range opened.Describe().Uncertainty {
					// Nothing was fitted to sets with one kernel per problem, which tell no spread among candidates.
					if set := u.Checked.DataSet; u.Checked.TimedType == "" && !alone[set] {
						want = append(want, set)
					}
				}
				slices.Sort(want)
				want = slices.DeleteFunc(slices.Compact(want), func(name string) bool {
					folder, _, _ := strings.Cut(name, "/")
					return name == "" || folder != name && slices.Contains(want, folder)
				})
				var got []string
				for _, f := range opened.Describe().Fitted {
					if !slices.Contains(got, f.DataSet) {
						got = append(got, f.DataSet)
					}
					must.That(t, len(f.Problems) != 0, "%s: %s has no problems", d.ID, f.DataSet)
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("the %s model of %s is fitted to %q, want %q", model, d.ID, got, want)
				}
			}
		}
	}
}

// alone are the data sets with one kernel per problem.
var alone = map[string]bool{
	"h100/triton": true, "h100/wgmma": true, "rtx4090-triton-published": true, "rtx3090-triton-published": true,
}

// The sweep that the model was fitted to is in-sample, and sizes that were kept out are not.
func TestInSampleSizes(t *testing.T) {
	a := nvtest.Open(t, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	for _, problem := range sweep(t).Problems {
		must.That(t, a.Describe().InSample(problem, "triton"), "%s is not in-sample", problem)
	}
	unseen := readSet(t, "h200-triton-other")
	for _, problem := range unseen.Problems() {
		must.That(t, !a.Describe().InSample(problem, unseen.Kernel), "%s is in-sample", problem)
	}
}
