package library_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/plugins/library"
)

// way is a device, a scheme of scales and a type.
type way struct {
	device, scheme string
	dtype          gemm.DType
}

// ways predicts the times of shapes, once per way.
type ways struct {
	shapes []gemm.Problem
	models map[string]*fastest // by device and scheme
	times  map[way][]float64   // nil for a type that the device lacks
}

func newWays(shapes int) *ways {
	w := &ways{models: map[string]*fastest{}, times: map[way][]float64{}}
	rng := rand.New(rand.NewPCG(7, 8))
	size := func(most float64) int { return 256 * int(math.Exp(rng.Float64()*math.Log(most))) }
	for range shapes {
		p := gemm.New(int(math.Exp(rng.Float64()*9)), size(112), size(112))
		p.SetTrans(false, true)
		w.shapes = append(w.shapes, p)
	}
	return w
}

func (w *ways) model(t *testing.T, device, scheme string) *fastest {
	t.Helper()
	key := device + " " + scheme
	if w.models[key] == nil {
		id, of, _ := strings.Cut(device, "@")
		a, err := open(t, arch.OpenRequest{Arch: id, Device: of, Options: map[string]string{"scheme": scheme}})
		if err != nil {
			t.Fatal(err)
		}
		w.models[key] = &fastest{Architecture: a}
	}
	return w.models[key]
}

func (w *ways) of(t *testing.T, x way) []float64 {
	t.Helper()
	times, known := w.times[x]
	if known {
		return times
	}
	f := w.model(t, x.device, x.scheme)
	if slices.Contains(types(f), x.dtype) {
		for _, p := range w.shapes {
			p.DType = x.dtype
			times = append(times, f.of(t, p))
		}
	}
	w.times[x] = times
	return times
}

// holds fails if one way takes longer than another by more than 5 % of any shape, unless the pair is exempt.
func (w *ways) holds(t *testing.T, law string, fast, slow way, exempt string) {
	t.Helper()
	a, b := w.of(t, fast), w.of(t, slow)
	if a == nil || b == nil {
		return
	}
	broken, most, worst := 0, 1.05, 0
	for i := range a {
		if ratio := a[i] / b[i]; ratio > 1.05 {
			if broken++; ratio > most {
				most, worst = ratio, i
			}
		}
	}
	if broken == 0 {
		return
	}
	p := w.shapes[worst]
	text := fmt.Sprintf("%s: %s %s %s takes longer than %s %s %s on %d of %d shapes, up to %.2f (%dx%dx%d)", law, fast.device,
		fast.dtype, fast.scheme, slow.device, slow.dtype, slow.scheme, broken, len(a), most, p.M, p.N, p.K)
	if exempt != "" {
		t.Logf("%s; exempt: %s", text, exempt)
		return
	}
	t.Error(text)
}

// lawful is a few hundred shapes with ORIGAMI_TEST_ALL=1, else fewer.
func lawful() *ways {
	if os.Getenv("ORIGAMI_TEST_ALL") == "1" {
		return newWays(300)
	}
	return newWays(40)
}

// devices are those that have the family, arch@device.
func devices(t *testing.T) (list []string) {
	t.Helper()
	for _, b := range builtins.Plugins {
		p, err := b.Provider()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range p.Manifest().Archs {
			if slices.Contains(a.Kernels, library.Family) {
				for _, d := range a.Devices {
					list = append(list, a.ID+"@"+d.ID)
				}
			}
		}
	}
	return list
}

// A type of half the bytes, which the device multiplies faster, never takes longer.
func TestHalfTheBytesAreNeverSlower(t *testing.T) {
	w := lawful()
	for _, device := range devices(t) {
		for _, pair := range [][2]gemm.DType{
			{gemm.FP8, gemm.BF16}, {gemm.FP8, gemm.FP16}, {gemm.INT8, gemm.FP16}, {gemm.FP4, gemm.FP8}, {gemm.FP16, gemm.TF32},
			{gemm.FP16, gemm.FP32}, {gemm.TF32, gemm.FP32},
		} {
			d := w.model(t, device, "tensor").Describe()
			if d.PeakFor(pair[0]) > 1.2*d.PeakFor(pair[1]) {
				w.holds(t, "half the bytes", way{device, "tensor", pair[0]}, way{device, "tensor", pair[1]}, "")
			}
		}
	}
}

// A scheme with fewer scales, or without the quantising, never takes longer.
func TestFewerScalesAreNeverSlower(t *testing.T) {
	w := lawful()
	for _, device := range devices(t) {
		for _, pair := range [][2]string{
			{"tensor", "tensor+quant"}, {"tensor", "row"}, {"row", "block128"}, {"tensor", "block128"},
			{"block128", "block128+quant"}, {"tensor+quant", "block128+quant"}, {"block128+preshuffle", "block128"},
		} {
			w.holds(t, "fewer scales", way{device, pair[0], gemm.FP8}, way{device, pair[1], gemm.FP8}, "")
		}
		w.holds(t, "fewer scales", way{device, "block16", gemm.FP4}, way{device, "block16+quant", gemm.FP4}, "")
		w.holds(t, "fewer scales", way{device, "tensor", gemm.FP4}, way{device, "block16", gemm.FP4}, "")
	}
}

// A newer device with more of everything never takes longer.
func TestMoreOfEverythingIsNeverSlower(t *testing.T) {
	w := lawful()
	all := devices(t)
	for i, old := range all {
		for _, newer := range all[i+1:] {
			a, b := w.model(t, old, "tensor").Describe(), w.model(t, newer, "tensor").Describe()
			if a.Vendor != b.Vendor || a.Arch == b.Arch {
				continue
			}
			more := func(name string) bool {
				x, ok := hw.Set(a.Params).Lookup(name)
				y, also := hw.Set(b.Params).Lookup(name)
				return ok && also && y.Value >= x.Value
			}
			if !more("dram_bandwidth") || !more("tdp") || b.Units < a.Units {
				continue
			}
			for _, dtype := range []gemm.DType{gemm.FP16, gemm.BF16, gemm.FP8, gemm.INT8, gemm.FP32, gemm.TF32, gemm.FP4} {
				if a.PeakFor(dtype) > 0 && b.PeakFor(dtype) >= a.PeakFor(dtype) {
					w.holds(t, "more of everything", way{newer, "tensor", dtype}, way{old, "tensor", dtype}, "")
				}
			}
		}
	}
}
