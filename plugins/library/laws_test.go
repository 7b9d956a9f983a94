package library_test

import (
	"math"
	"math/rand/v2"
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

// holds fails if one way takes longer than another by more than a factor, of any shape.
func (w *ways) holds(t *testing.T, law string, fast, slow way, most float64) {
	t.Helper()
	a, b := w.of(t, fast), w.of(t, slow)
	if a == nil || b == nil {
		return
	}
	broken, worst := 0, 0
	for i := range a {
		if a[i] > most*b[i] {
			broken++
		}
		if a[i]/b[i] > a[worst]/b[worst] {
			worst = i
		}
	}
	if broken == 0 {
		return
	}
	p := w.shapes[worst]
	t.Errorf("%s: %s %s %s takes longer than %s %s %s on %d of %d shapes, up to %.2f (%dx%dx%d)", law, fast.device,
		fast.dtype, fast.scheme, slow.device, slow.dtype, slow.scheme, broken, len(a), a[worst]/b[worst], p.M, p.N, p.K)
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

// slack is by how much a law may be broken that holds.
const slack = 1.05

// A type of half the bytes, which the device multiplies faster, never takes longer. That is broken, by at most these
// factors, where times were measured that break it or a type has other kernels: cuBLAS and TensorRT-LLM split K for
// neither int8 nor fp4, and Vega's fp16 kernels take longer per K step than those of fp32.
func TestHalfTheBytesAreNeverSlower(t *testing.T) {
	w := newWays(200)
	for _, device := range devices(t) {
		for _, c := range []struct {
			fast, slow gemm.DType
			most       float64
		}{
			{gemm.FP8, gemm.BF16, slack}, {gemm.FP8, gemm.FP16, slack}, {gemm.FP16, gemm.TF32, slack},
			{gemm.FP16, gemm.FP32, 2}, {gemm.TF32, gemm.FP32, 1.5}, {gemm.INT8, gemm.FP16, 6}, {gemm.FP4, gemm.FP8, 11},
		} {
			d := w.model(t, device, "tensor").Describe()
			if d.PeakFor(c.fast) > 1.2*d.PeakFor(c.slow) {
				w.holds(t, "half the bytes", way{device, "tensor", c.fast}, way{device, "tensor", c.slow}, c.most)
			}
		}
	}
}

// A scheme with fewer scales, or without the quantising, never takes longer. It does by at most these factors where
// kernels for blocks were measured to be faster: on AMD's at small K, on others in the power limit's reach.
// TensorRT-LLM's quantising per matrix takes two kernels, that per block one.
func TestFewerScalesAreNeverSlower(t *testing.T) {
	w := newWays(200)
	for _, device := range devices(t) {
		for _, c := range []struct {
			dtype      gemm.DType
			fast, slow string
			most       float64
		}{
			{gemm.FP8, "tensor", "tensor+quant", 1.35}, {gemm.FP8, "tensor", "row", slack}, {gemm.FP8, "row", "block128", 1.5},
			{gemm.FP8, "tensor", "block128", 1.5}, {gemm.FP8, "block128", "block128+quant", slack},
			{gemm.FP8, "tensor+quant", "block128+quant", 3}, {gemm.FP8, "block128+preshuffle", "block128", 1.4},
			{gemm.FP4, "block16", "block16+quant", slack}, {gemm.FP4, "tensor", "block16", 1.1},
		} {
			w.holds(t, "fewer scales", way{device, c.fast, c.dtype}, way{device, c.slow, c.dtype}, c.most)
		}
	}
}

// A newer device with more of everything never takes longer in 16 bits. Architectures without 16-bit times of their
// own, whose numbers are chosen, are left out.
func TestMoreOfEverythingIsNeverSlower(t *testing.T) {
	w := newWays(200)
	all := slices.DeleteFunc(devices(t), func(device string) bool {
		id, _, _ := strings.Cut(device, "@")
		return slices.Contains([]string{"sm70", "sm75", "gfx900", "gfx906"}, id)
	})
	for i, old := range all {
		for _, newer := range all[i+1:] {
			a, b := w.model(t, old, "tensor").Describe(), w.model(t, newer, "tensor").Describe()
			more := func(name string) bool {
				x, ok := hw.Set(a.Params).Lookup(name)
				y, also := hw.Set(b.Params).Lookup(name)
				return ok && also && y.Value >= x.Value
			}
			if a.Vendor == b.Vendor && a.Arch != b.Arch && more("dram_bandwidth") && more("tdp") && b.Units >= a.Units &&
				b.PeakFor(gemm.BF16) >= a.PeakFor(gemm.BF16) {
				w.holds(t, "more of everything", way{newer, "tensor", gemm.BF16}, way{old, "tensor", gemm.BF16}, 1.15)
			}
		}
	}
}
