// Package nvtest opens the plugin's models for tests that use them as a program does.
package nvtest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

var provider = sync.OnceValues(nvidia.Provider)

// Provider returns the plugin.
func Provider(t testing.TB) arch.Provider {
	t.Helper()
	return must.Get(provider())(t)
}

// Open opens a model. Recorded times do not correct it, which are of the data sets that tests hold it to.
func Open(t testing.TB, r arch.OpenRequest) arch.Architecture {
	t.Helper()
	a := must.Get(Provider(t).Open(context.Background(), r))(t)
	corrects := func(o arch.OptionValue) bool { return o == arch.OptionValue{Key: residual.Nearby, Value: "all"} }
	if d := a.Describe(); r.Options == nil && d.Model != library.Name && slices.ContainsFunc(d.Options, corrects) {
		r.Options = map[string]string{residual.Nearby: residual.None}
		return Open(t, r)
	}
	return a
}

// Devices are requests for a model over a kernel family on every device of configs/ that has both.
func Devices(t testing.TB, model, kernel string) []arch.OpenRequest {
	t.Helper()
	var all []arch.OpenRequest
	for _, a := range Provider(t).Manifest().Archs {
		if !a.Has(model) || !slices.Contains(a.Kernels, kernel) {
			continue
		}
		for _, d := range a.Devices {
			all = append(all, arch.OpenRequest{Arch: a.ID, Device: d.ID, Model: model, Kernel: kernel})
		}
	}
	if len(all) == 0 {
		t.Fatalf("no device has the model %s over %s", model, kernel)
	}
	return all
}

// RandomProblem mixes small, large, skinny and ragged sizes, types, layouts and batches.
func RandomProblem(rng *rand.Rand) gemm.Problem {
	size := func() int { return 1 + int(math.Exp2(rng.Float64()*17)) - rng.IntN(2) }
	p := gemm.New(max(size(), 1), max(size(), 1), max(size(), 1))
	if rng.IntN(4) == 0 {
		p.Batch = 1 + rng.IntN(64)
	}
	if rng.IntN(2) == 0 {
		p.DType = gemm.BF16
	}
	p.SetTrans(rng.IntN(2) == 0, rng.IntN(2) == 0)
	return p
}

// TotalColumn is the position of the total among the terms of a model.
func TotalColumn(a arch.Architecture) int {
	for i, term := range a.Describe().Terms {
		if term.Kind == arch.KindTotal {
			return i
		}
	}
	return -1
}

// Candidates lists the candidates of a space for a common problem.
func Candidates(t testing.TB, a arch.Architecture, s arch.Space) *arch.Candidates {
	t.Helper()
	return must.Get(a.Candidates(context.Background(), gemm.New(4096, 4096, 4096), s))(t)
}

// Param returns a hardware parameter of an opened device.
func Param(t testing.TB, a arch.Architecture, name string) hw.Param {
	t.Helper()
	p, ok := hw.Set(a.Describe().Params).Lookup(name)
	if !ok {
		t.Fatalf("%s has no %s", a.Describe().ID(), name)
	}
	return p
}
