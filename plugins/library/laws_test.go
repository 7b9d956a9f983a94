package library_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/library/checked"
	"github.com/origami-gemm/origami/plugins/library/nearby"
	"github.com/origami-gemm/origami/plugins/library/published"
)

// way is a device, a scheme of scales and a type.
type way struct {
	device, scheme string
	dtype          gemm.DType
	wide           bool // the output is fp32
}

// ways predicts the times of shapes, once per way.
type ways struct {
	shapes    []gemm.Problem
	nearby    string              // the option residual.Nearby
	timing    string              // "model" if empty
	models    map[string]*fastest // by device, scheme and timing
	predicted map[way][]float64   // nil for a type that the device lacks
	times     map[way][]*published.Time
}

func newWays(shapes int) *ways {
	w := &ways{
		models: map[string]*fastest{}, predicted: map[way][]float64{}, times: map[way][]*published.Time{},
	}
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
	return w.timed(t, way{device: device, scheme: scheme}, cmp.Or(w.timing, "model"))
}

// timed is the model of a way in a timing.
func (w *ways) timed(t *testing.T, x way, timing string) *fastest {
	t.Helper()
	key := x.device + " " + x.scheme + " " + timing
	if w.models[key] == nil {
		id, of, _ := strings.Cut(x.device, "@")
		options := map[string]string{"scheme": x.scheme, "timing": timing, residual.Nearby: cmp.Or(w.nearby, "all")}
		a := must.Get(open(t, arch.OpenRequest{Arch: id, Device: of, Options: options}))(t)
		w.models[key] = &fastest{Architecture: a}
	}
	return w.models[key]
}

func (w *ways) of(t *testing.T, x way) []float64 {
	t.Helper()
	times, known := w.predicted[x]
	if known {
		return times
	}
	f := w.model(t, x.device, x.scheme)
	if slices.Contains(types(f), x.dtype) {
		for _, p := range w.shapes {
			if p.DType = x.dtype; x.wide {
				p.Out = gemm.FP32
			}
			times = append(times, f.of(t, p))
		}
	}
	w.predicted[x] = times
	return times
}

// holds fails if one way takes longer than another by more than the slack, of any shape, and by more than
// published times of the first show.
func (w *ways) holds(t *testing.T, law string, fast, slow way, most float64) {
	t.Helper()
	a, b := w.of(t, fast), w.of(t, slow)
	if a == nil || b == nil {
		return
	}
	broken, exempt, worst := 0, 0, -1
	for i := range a {
		if a[i] <= most*b[i] {
			continue
		}
		if a[i] <= w.shown(t, fast, slow, &w.shapes[i])*b[i] {
			exempt++
			continue
		}
		if broken++; worst < 0 || a[i]/b[i] > a[worst]/b[worst] {
			worst = i
		}
	}
	if exempt > 0 {
		t.Logf("%s: %s %s %s takes longer than %s %s %s on %d of %d shapes, as published times do", law, fast.device,
			fast.dtype, fast.scheme, slow.device, slow.dtype, slow.scheme, exempt, len(a))
	}
	if broken == 0 {
		return
	}
	p := w.shapes[worst]
	t.Errorf("%s: %s %s %s takes longer than %s %s %s on %d of %d shapes, up to %.2f (%dx%dx%d)", law, fast.device,
		fast.dtype, fast.scheme, slow.device, slow.dtype, slow.scheme, broken, len(a), a[worst]/b[worst], p.M, p.N, p.K)
}

const (
	// around is the factor within which M, N and K of a time are those of a shape.
	around = 4
	// least is how many times have to be around a shape, nearest how many of them count.
	least, nearest = 3, 9
	// exact is the factor by which predictions of these times may be too slow: that of the scores.
	exact = 1.2
	// more is how much farther a law may be broken than by the time that breaks it most: K is up to 4 times as long.
	more = 1.5
)

// shown returns by how much predictions may break a law, since published times of about the sizes of a shape do at the
// median, and are not predicted too slow: by half more than the largest of these. Otherwise it is 0. The times are of
// the fast way, on its device or one of its generation, beside what the slow way is predicted to take for the same
// sizes and timing. A type without times counts as bf16. A library that has no kernels for fewer rows than some takes
// as long for these as for the fewest.
func (w *ways) shown(t *testing.T, fast, slow way, p *gemm.Problem) float64 {
	t.Helper()
	list := w.published(t, fast)
	if len(list) == 0 && fast.device != slow.device {
		fast.dtype, slow.dtype = gemm.BF16, gemm.BF16
		list = w.published(t, fast)
	}
	if len(list) == 0 {
		return 0
	}
	m := max(p.M, slices.MinFunc(list, func(a, b *published.Time) int { return a.M - b.M }).M)
	far := func(x *published.Time) float64 { // the largest ratio of a size
		of := func(a, b int) float64 { return math.Abs(math.Log(float64(a) / float64(b))) }
		return max(of(x.M, m), of(x.N, p.N), of(x.K, p.K))
	}
	var near []*published.Time
	for _, x := range list {
		if (x.M == 1) == (m == 1) && far(x) <= math.Log(around) {
			near = append(near, x)
		}
	}
	slices.SortStableFunc(near, func(a, b *published.Time) int { return cmp.Compare(far(a), far(b)) })
	var breaks, errors []float64
	for _, x := range near[:min(len(near), nearest)] {
		seconds := float64(x.Median)
		timed, other := fast, slow
		timed.device, timed.scheme = x.Device, strings.Replace(x.Scheme, published.NoScheme, published.TensorScheme, 1)
		predicted := w.at(t, x, timed, x.M)
		off := predicted / seconds
		if plain, quantised := strings.CutSuffix(timed.scheme, "+quant"); quantised && fast.scheme != timed.scheme {
			timed.scheme = plain
			seconds -= predicted - w.at(t, x, timed, x.M) // the quantising, as predicted
		}
		if fast.device == slow.device {
			other.device = x.Device
		}
		rows := x.M
		if p.M < m {
			rows = p.M
		}
		if beside := w.at(t, x, other, rows); beside > 0 {
			breaks, errors = append(breaks, seconds/beside), append(errors, off)
		}
	}
	if len(breaks) < least || stats.Median(breaks) <= 1 || stats.Median(errors) >= exact {
		return 0
	}
	return more * slices.Max(breaks)
}

// at is what a way is predicted to take for rows of A, and the sizes and timing of a published time, 0 if it refuses.
func (w *ways) at(t *testing.T, x *published.Time, y way, rows int) float64 {
	t.Helper()
	p := must.Get(x.Problem())(t)
	m := w.timed(t, y, string(x.Timing))
	p.M = rows
	if p.DType = y.dtype; y.wide {
		p.Out = gemm.FP32
	}
	if m.Describe().SupportsTypes(library.Family, &p) != nil {
		return 0
	}
	return m.of(t, p)
}

// published returns times of a way: of its device and others of its generation that have about as much.
func (w *ways) published(t *testing.T, x way) (list []*published.Time) {
	t.Helper()
	if list, known := w.times[x]; known {
		return list
	}
	as := map[gemm.DType]gemm.DType{gemm.FP8E5M2: gemm.FP8, gemm.FP16: gemm.BF16} // of the same kernels
	of := func(p *published.Series) bool {
		scheme := strings.TrimSuffix(p.Scheme, "+quant")
		return (p.DType == x.dtype.String() || p.DType == as[x.dtype].String()) &&
			(scheme == published.NoScheme || p.Scheme == x.scheme || scheme == x.scheme || x.dtype == gemm.FP4 ||
				x.scheme == "row" && scheme == published.TensorScheme)
	}
	near := map[string]bool{}
	all := published.Times()
	for i := range all {
		p := &all[i]
		if p.Device == "" || p.Doubt != "" || p.Release != checked.Current || !of(p.Series) {
			continue
		}
		if _, known := near[p.Device]; !known {
			near[p.Device] = w.near(t, p.Device, x.device)
		}
		if near[p.Device] {
			list = append(list, p)
		}
	}
	w.times[x] = list
	return list
}

// near reports whether two devices are of one generation, and the first has about as many units and as fast a DRAM
// or more.
func (w *ways) near(t *testing.T, device, other string) bool {
	t.Helper()
	a, b := w.model(t, device, "tensor"), w.model(t, other, "tensor")
	bandwidth := func(f *fastest) float64 { return hw.Set(f.Describe().Params).Get("dram_bandwidth") }
	return a.Architecture.(*library.Model).Generation() == b.Architecture.(*library.Model).Generation() &&
		10*a.Describe().Units >= 9*b.Describe().Units && bandwidth(a) >= 0.75*bandwidth(b)
}

// hasMore reports whether a device has at least as much of everything as another: of units that are as fast as well.
func (w *ways) hasMore(t *testing.T, device, other string, dtype gemm.DType) bool {
	t.Helper()
	a, b := w.model(t, device, "tensor").Describe(), w.model(t, other, "tensor").Describe()
	for _, name := range []string{"dram_bandwidth", "tdp"} {
		x, ok := hw.Set(a.Params).Lookup(name)
		y, also := hw.Set(b.Params).Lookup(name)
		if !ok || !also || x.Value < y.Value {
			return false
		}
	}
	unit := func(d *arch.Description) float64 { return float64(d.PeakFor(dtype)) / float64(d.Units) }
	return a.Units >= b.Units && b.PeakFor(dtype) > 0 && unit(a) >= unit(b)
}

// slack is by how much a law may be broken that holds.
const slack = 1.05

// broken is by how much a law may be broken: on AMD's devices as given, on NVIDIA's not at all but for what is named.
func (w *ways) broken(t *testing.T, law string, fast way, amd float64) float64 {
	t.Helper()
	if strings.HasPrefix(fast.device, "gfx") {
		return amd
	}
	kernels := map[gemm.DType]gemm.DType{gemm.FP16: gemm.BF16, gemm.FP8E5M2: gemm.FP8} // of the same numbers
	dtype, same := kernels[fast.dtype]
	if !same {
		dtype = fast.dtype
	}
	generation := w.model(t, fast.device, "tensor").Architecture.(*library.Model).Generation()
	for _, of := range []any{fast.device, generation} {
		if most, is := named[fmt.Sprintf("%s %s %s", law, of, dtype)]; is {
			return most
		}
	}
	return slack
}

// named are the laws that predictions break farther than published times of about the same sizes show, by law,
// generation and type, with the factor.
//
//   - int8 and tf32 are measured on Hopper alone, and of other generations predicted from other types. On
//     Hopper int8 does not split K, and has no tiles in between. With some dozens of tiles and a long K it is
//     predicted up to 1.4 times too slow, and tf32 with a short K 1.25 times.
//   - Hopper's fp8 with one scale is measured without the fast accumulation that the times with the quantising
//     have, and is predicted up to 1.4 times too slow with 130 to 260 rows.
//   - A launch takes 2.6 µs on Hopper and 1.6 on Ada, in published times of both. The smallest products on the
//     former are predicted some per cent too slow, and published times of these do not break the law.
//   - Kernels for fp4 do not split K, as published. Their times have the quantising in them, which is taken out
//     as it is predicted: what is left of small ones is not exact.
//   - Of consumer Blackwell no small product in fp32 was timed. What it costs whatever the type is that of 16 bits.
var named = map[string]float64{
	"fewer scales hopper fp8":                    1.22,
	"half the bytes blackwell fp4":               1.2,
	"half the bytes blackwell-consumer fp4":      1.28,
	"half the bytes hopper bf16":                 1.14, // one row of A, which has a kernel without tiles in fp32
	"half the bytes hopper int8":                 1.71,
	"more of everything blackwell fp8":           1.17, // one row of A, beside an RTX 4090 D; 1.08 beside others
	"more of everything blackwell-consumer fp32": 1.08,
	"more of everything hopper bf16":             1.09,
	"more of everything hopper fp8":              1.21,
	"more of everything hopper int8":             1.46,
	"more of everything hopper tf32":             1.58,
}

// A type of half the bytes, which the device multiplies faster, never takes longer.
func TestHalfTheBytesAreNeverSlower(t *testing.T) {
	w := newWays(200)
	for _, device := range devices(t) {
		for _, c := range []struct {
			fast, slow gemm.DType
			amd        float64
		}{
			{gemm.FP8, gemm.BF16, slack}, {gemm.FP8, gemm.FP16, slack}, {gemm.FP16, gemm.TF32, slack},
			{gemm.FP16, gemm.FP32, slack}, {gemm.TF32, gemm.FP32, 1.5}, {gemm.INT8, gemm.FP16, 6}, {gemm.FP4, gemm.FP8, 11},
		} {
			d := w.model(t, device, "tensor").Describe()
			// Vega's kernels for fp16 split no K, as published times show, and those for fp32 do.
			vega := c.fast == gemm.FP16 && (d.Arch == "gfx900" || d.Arch == "gfx906")
			if d.PeakFor(c.fast) > 1.2*d.PeakFor(c.slow) && !vega {
				slow := way{device: device, scheme: "tensor", dtype: c.slow, wide: c.fast == gemm.INT8} // whose output is int32
				fast := way{device: device, scheme: "tensor", dtype: c.fast}
				w.holds(t, "half the bytes", fast, slow, w.broken(t, "half the bytes", fast, c.amd))
			}
		}
	}
}

// A scheme with fewer scales, or without the quantising, never takes longer. With the quantising it does: that per
// matrix takes two kernels, that per block one.
func TestFewerScalesAreNeverSlower(t *testing.T) {
	w := newWays(200)
	for _, device := range devices(t) {
		for _, c := range []struct {
			dtype      gemm.DType
			fast, slow string
			amd        float64 // at small K
		}{
			{gemm.FP8, "tensor", "tensor+quant", 1.35}, {gemm.FP8, "tensor", "row", slack}, {gemm.FP8, "row", "block128", 1.5},
			{gemm.FP8, "tensor", "block128", 1.5}, {gemm.FP8, "block128", "block128+quant", slack},
			{gemm.FP8, "block128+preshuffle", "block128", 1.4},
			{gemm.FP4, "block16", "block16+quant", slack}, {gemm.FP4, "tensor", "block16", 1.1},
		} {
			if !slices.Contains(types(w.model(t, device, "tensor")), c.dtype) {
				continue
			}
			fast := way{device: device, scheme: c.fast, dtype: c.dtype}
			slow := way{device: device, scheme: c.slow, dtype: c.dtype}
			w.holds(t, "fewer scales", fast, slow, w.broken(t, "fewer scales", fast, c.amd))
		}
	}
}

// A newer device with more of everything never takes longer, in any type that both have. Architectures without 16-bit
// times of their own, whose numbers are chosen, are left out. Published times near a problem correct one architecture
// and not the other.
func TestMoreOfEverythingIsNeverSlower(t *testing.T) {
	w := newWays(200)
	w.nearby = residual.None
	all := slices.DeleteFunc(devices(t), func(device string) bool {
		id, _, _ := strings.Cut(device, "@")
		return slices.Contains([]string{"sm70", "sm75", "gfx900", "gfx906"}, id)
	})
	for i, old := range all {
		for _, newer := range all[i+1:] {
			a, b := w.model(t, old, "tensor").Describe(), w.model(t, newer, "tensor").Describe()
			if a.Vendor != b.Vendor || a.Arch == b.Arch {
				continue
			}
			for _, dtype := range gemm.DTypes() {
				if w.hasMore(t, newer, old, dtype) && (dtype == gemm.BF16 || a.Vendor == "NVIDIA") {
					fast := way{device: newer, scheme: "tensor", dtype: dtype}
					slow := way{device: old, scheme: "tensor", dtype: dtype}
					w.holds(t, "more of everything", fast, slow, w.broken(t, "more of everything", fast, 1.15))
				}
			}
		}
	}
}

// better are pairs of cards with the same die: the first has more of something, and less of nothing.
var better = [][2]string{
	{"sm70@v100", "sm70@v100-pcie"},
	{"sm80@a100", "sm80@a100-sxm-40gb"}, {"sm80@a100", "sm80@a100-pcie-80gb"}, {"sm80@a100", "sm80@a100-pcie-40gb"},
	{"sm80@a100-pcie-80gb", "sm80@a100-pcie-40gb"}, {"sm80@a100-sxm-40gb", "sm80@a100-pcie-40gb"},
	{"sm86@rtx3090", "sm86@rtx3080ti"}, // whose SMs have a lower boost clock than those of the RTX 3080
	{"sm89@rtx4090", "sm89@rtx4090d"}, {"sm89@l40s", "sm89@l40"},
	{"sm90@h200", "sm90@h100"}, {"sm90@gh200", "sm90@h100"}, {"sm90@h100", "sm90@h100-pcie"},
	{"sm90@h20-3e", "sm90@h20"}, {"sm100@gb200", "sm100@b200"}, {"sm103@gb300", "sm103@b300"},
	{"sm103@b300", "sm100@b200"}, {"sm103@gb300", "sm100@gb200"},
	{"sm120@rtx5090", "sm120@rtx5090d-v2"},
	{"gfx90a@mi250x-gcd", "gfx90a@mi210"}, {"gfx942@mi325x", "gfx942@mi300x"}, {"gfx950@mi355x", "gfx950@mi350x"},
}

// A card with the same die and more of something never takes longer, by more than 1 %, unless both have times near the
// problem, in another proportion. An H100 PCIe differs too much from the H100 to have its times.
func TestBetterCardsOfADieAreNeverSlower(t *testing.T) {
	const slack = 1.01
	w := newWays(200)
	for i := range len(w.shapes) / 2 { // and rows that are not whole lines
		p := &w.shapes[i]
		*p = gemm.New(p.M, p.N-2*(i%127), p.K-2*(i%125))
		p.SetTrans(false, true)
	}
	times := func(device string, dtype gemm.DType) bool {
		return slices.ContainsFunc(nearby.Of(device, "tensor", checked.Current), func(p *nearby.Pool) bool {
			return p.Types == nearby.TypesOf(dtype) && p.Has(w.timing, nearby.Least)
		})
	}
	for _, w.timing = range []string{"model", "layers"} {
		for _, pair := range better {
			for _, dtype := range gemm.DTypes() {
				fast := way{device: pair[0], scheme: "tensor", dtype: dtype}
				slow := way{device: pair[1], scheme: "tensor", dtype: dtype}
				if w.nearby = ""; times(pair[0], dtype) && times(pair[1], dtype) || pair[1] == "sm90@h100-pcie" {
					w.nearby = residual.None
				}
				clear(w.models)
				clear(w.predicted)
				w.holds(t, "the same die, "+w.timing, fast, slow, slack)
			}
		}
	}
}
