package sgemm

import (
	"math"
	"slices"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/archtest"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/internal/testing/must"
	generator "github.com/origami-gemm/origami/plugins/nvidia/gemmgen/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	family "github.com/origami-gemm/origami/plugins/nvidia/kernel/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/sgemm/terms"
)

// devices are those of the public ladders, and the one that was measured for this project.
var devices = map[string]struct {
	sm   *gpu.SM
	file string
}{
	"sm86@rtx3060-laptop":   {gpu.SM86, "sm86-rtx3060-laptop"},
	"sm86@a6000":            {gpu.SM86, "sm86-a6000"},
	"sm90@h100":             {gpu.SM90, "sm90-h100-sxm"},
	h200:                    {gpu.SM90, "sm90-h200"},
	"sm120@rtxpro6000-maxq": {gpu.SM120, "sm120-rtxpro6000-maxq"},
}

func open(t testing.TB, device string) *Model {
	t.Helper()
	d := devices[device]
	return New(gputest.Device(t, d.sm, d.file, nil))
}

func square(size int) gemm.Problem {
	p := gemm.New(size, size, size)
	p.DType, p.Out = gemm.FP32, gemm.FP32
	return p
}

func config(t testing.TB, text string) gemm.Config {
	t.Helper()
	base := gemm.Config{GroupM: 1, SplitK: 1, Kernel: Family}
	return must.Get(gemm.ParseConfig(text, base, family.Family{}.Axes()...))(t)
}

func values(t testing.TB, m *Model, p gemm.Problem, c gemm.Config) ladder.Values {
	t.Helper()
	v := ladder.Values{}
	for i, value := range archtest.Terms(t, m, p, c) {
		v[terms.Terms[i].Name] = value
	}
	return v
}

func rung(t testing.TB, name string) gemm.Config {
	t.Helper()
	r, ok := generator.FindRung(name)
	must.Need(t, ok, "no rung %s", name)
	return r.Config
}

// Bytes that threads ask for, counted thread by thread and index by index as docs/ladder.md describes the kernels.
func TestBytesOfEachRung(t *testing.T) {
	const n = 64
	m := open(t, "sm86@a6000")
	direct, staged := 0, 0
	for range n * n { // a thread per element of C
		for range n {
			direct += 2 * 4 // A[row,k] and B[k,column]
		}
		for range n / 32 {
			staged += 2 * 4 // an element of each tile
		}
	}
	for name, want := range map[string]int{
		generator.RungNaive: direct, generator.RungTiled: staged, generator.RungPadded: staged,
		generator.RungDoubleBuffer: staged,
	} {
		v := values(t, m, square(n), rung(t, name))
		got := v["requested_bytes"] * v["steps"] * v["ctas"]
		must.That(t, got == float64(want), "%s asks for %v bytes, %d are counted", name, got, want)
	}
}

func TestIntensities(t *testing.T) {
	m := open(t, "sm86@a6000")
	for name, want := range map[string]float64{generator.RungNaive: 0.25, generator.RungTiled: 32. / 4} {
		got := values(t, m, square(2048), rung(t, name))["intensity_requested"]
		must.That(t, got == want, "%s: %v FLOP/B, want %v", name, got, want)
	}
	for _, c := range []struct {
		text string
		a, b float64
	}{
		{"32x32x16,warps=2,stages=2,thread_m=4,lanes_m=4", 32, 32}, {"64x64x16,warps=4,stages=2,thread_m=4", 64, 64},
		{"128x128x16,warps=8,stages=2", 128, 128}, {"64x128x16,warps=4,stages=2", 64, 128},
	} {
		want := 2 * c.a * c.b / ((c.a + c.b) * 4)
		got := values(t, m, square(2048), config(t, c.text))["intensity_l2"]
		must.That(t, got == want, "%s: %v FLOP/B at the L2, want %v", c.text, got, want)
	}
	for _, n := range []float64{512, 1024, 2048, 4096} {
		got := values(t, m, square(int(n)), rung(t, generator.RungNaive))["intensity_limit"]
		want := n / 6
		must.That(t, math.Abs(got-want) <= 1e-12*want, "%v: at most %v FLOP/B, want %v", n, got, want)
	}
}

// A warp reads a row of a tile without a conflict.
func TestConflictsComeFromAddresses(t *testing.T) {
	m := open(t, "sm86@rtx3060-laptop")
	for _, name := range []string{generator.RungTiled, generator.RungPadded} {
		got := values(t, m, square(64), rung(t, name))["conflict_degree"]
		must.That(t, got == 1, "%s: degree %v, want 1", name, got)
	}
}

// Lanes that read down a column share a bank of the L1 if its rows are a multiple of 32 words apart. If they are a word
// more apart, each lane has one, and four cache lines pass at a time.
func TestBanksOfTheL1(t *testing.T) {
	m, c := open(t, "sm86@a6000"), rung(t, "naive-uncoalesced")
	for size, passes := range map[int]float64{512: 32, 513: 8, 544: 32, 528: 16} {
		v := values(t, m, square(size), c)
		// A warp has a load of a column of A and one of a single element of B for each index along K.
		want := (passes + 1) * v["global_instructions"] / 2
		if v["l1_passes"] != want {
			t.Errorf("rows of %d words: %v passes, want %v", size, v["l1_passes"], want)
		}
	}
}

// A warp issues an FMA in two cycles: four warps alone on an SM do not reach more than half of the peak, however small
// their other costs are. Two CTAs of four warps do.
func TestAWarpAlone(t *testing.T) {
	m, c := open(t, h200), rung(t, "pipelined")
	for n, least := range map[int][2]float64{1024: {0.4, 0.5}, 4096: {0.6, 0.8}} {
		p := square(n)
		v := values(t, m, p, c)
		peak := 2 * v["ctas"] / v["ctas_of_sm"] * 128 // FLOP per cycle of the SMs that have CTAs
		if share := p.Flops() / v["total"] / peak; share < least[0] || share > least[1] {
			t.Errorf("%d: %.2f of the peak of the SMs at work, want %v", n, share, least)
		}
	}
}

// entries are the published rungs of a device and size, with predictions.
func entries(t testing.TB, m *Model, device string, size int) (list []ladder.Entry) {
	t.Helper()
	p, clock := square(size), m.Describe().Clock
	for _, at := range Ladder().Published {
		if at.Device != device || at.Size != size {
			continue
		}
		e := ladder.Entry{Rung: ladder.Rung{Name: at.Rung, Config: at.Config},
			Measured: unit.Seconds(p.Flops() / float64(at.Rate)), Source: at.Source}
		if at.Config != (gemm.Config{}) {
			e.Values = values(t, m, p, at.Config)
			e.Predicted = unit.Cycles(e.Values["total"]).At(clock)
		}
		list = append(list, e)
	}
	must.Need(t, len(list) != 0, "nothing is published of %s at %d", device, size)
	return list
}

// ratio is predicted ÷ measured, 0 if nothing is predicted.
func ratio(e *ladder.Entry) float64 { return float64(e.Predicted / e.Measured) }

func times(list []ladder.Entry) map[string]float64 {
	out := map[string]float64{}
	for i := range list {
		if list[i].Predicted > 0 {
			out[list[i].Rung.Name] = float64(list[i].Predicted)
		}
	}
	return out
}

// The seed's ladder: no number of the model was fitted to its padded, double-buffered and tensor rungs.
func TestOrderOnTheSeedsDevice(t *testing.T) {
	m := open(t, "sm86@rtx3060-laptop")
	for _, size := range []int{2048, 4096} {
		s := times(entries(t, m, "sm86@rtx3060-laptop", size))
		if s["wmma"] >= s["tiled"] || s["tiled"] >= s["naive"] {
			t.Errorf("%d: wmma %v, tiled %v, naive %v", size, s["wmma"], s["tiled"], s["naive"])
		}
		for _, name := range []string{generator.RungPadded, generator.RungDoubleBuffer} {
			if s[name] <= s["tiled"] || math.Abs(s[name]/s["naive"]-1) > 0.1 {
				t.Errorf("%d: %s %v, tiled %v, naive %v", size, name, s[name], s["tiled"], s["naive"])
			}
		}
	}
}

// The ladder of the RTX A6000. Its order is that of the published times, where these differ by more than 5 %.
func TestA6000(t *testing.T) {
	m := open(t, "sm86@a6000")
	list := slices.DeleteFunc(entries(t, m, "sm86@a6000", 4096), func(e ladder.Entry) bool { return e.Predicted == 0 })
	best := unit.Seconds(archtest.Fastest(t, m, square(4096), arch.Space{Kernel: Family}))
	for _, at := range Ladder().Published { // the library's kernel is taken to be the best of the family
		if at.Device == "sm86@a6000" && at.Rung == "library" {
			list = append(list, ladder.Entry{Rung: ladder.Rung{Name: at.Rung}, Predicted: best,
				Measured: unit.Seconds(square(4096).Flops() / float64(at.Rate))})
		}
	}
	must.That(t, len(list) >= 11, "%d rungs", len(list))
	for i := range list {
		a := &list[i]
		r := ratio(a)
		must.That(t, r <= 1.3 && r >= 1/1.3, "%s: predicted ÷ published is %.2f", a.Rung.Name, r)
		for j := range list {
			b := &list[j]
			must.That(t, a.Measured >= b.Measured/1.05 || a.Predicted < b.Predicted,
				"%s is faster than %s, and predicted to be slower", a.Rung.Name, b.Rung.Name)
		}
	}
}

// The gain of tiling on two devices that no number was fitted to.
func TestGainOfTiling(t *testing.T) {
	for _, device := range []string{"sm90@h100", "sm120@rtxpro6000-maxq"} {
		m := open(t, device)
		for _, size := range []int{512, 1024, 2048, 4096, 8192} {
			var predicted, measured [2]float64
			for _, e := range entries(t, m, device, size) {
				for i, name := range []string{generator.RungNaive, generator.RungTiled} {
					if e.Rung.Name == name {
						predicted[i], measured[i] = float64(e.Predicted), float64(e.Measured)
					}
				}
			}
			r := predicted[0] / predicted[1] / (measured[0] / measured[1])
			must.That(t, r >= 1/1.23 && r <= 1.23, "%s, %d: predicted ÷ measured gain of tiling is %.2f", device, size, r)
		}
	}
}

// Three of the seed's claims are false on its own device, by its own times.
func TestVerdicts(t *testing.T) {
	m := open(t, "sm86@rtx3060-laptop")
	for _, size := range []int{2048, 4096} {
		checkVerdicts(t, m, size, entries(t, m, "sm86@rtx3060-laptop", size), "nearly", "false")
	}
}

// checkVerdicts judges the claims by the times of a device. The verdicts on what limits tiled and on what padding gains
// differ between devices. Every verdict has its evidence.
func checkVerdicts(t *testing.T, m *Model, size int, list []ladder.Entry, tiled, padded string) {
	t.Helper()
	l := Ladder()
	var got []string
	for _, j := range l.Judge(list, m.Describe()) {
		got = append(got, j.Rung+" "+j.Text+": "+string(j.Verdict))
		must.That(t, j.Evidence != "", "%d: no evidence for %s", size, j.Text)
	}
	want := []string{
		"naive is limited by DRAM bandwidth: false",
		"naive has an intensity of about 1: false",
		"tiled gains significantly over naive: true",
		"tiled is limited by shared-memory bandwidth: " + tiled,
		"tiled has an intensity of about half its tile's side: false",
		"tiled is sensitive to the tile size: unknown", // the small tile has no time
		"padded gains moderately over tiled: " + padded,
		"double-buffer gains over the rung below: nearly",
		"double-buffer is limited by compute: false",
		"wmma gains much over tiled for large sizes: true",
		"wmma is limited by the conversion of its operands: false",
		"wmma has 8 times the throughput of FP32 units: unknown", // of the device, which is not asked here
	}
	must.That(t, slices.Equal(got, want), "%d:\n%q\nwant\n%q", size, got, want)
}

// A padded column read gains from padding where there is a conflict: padding wins or loses by the addresses alone.
func TestPaddingCanGain(t *testing.T) {
	m := open(t, "sm86@a6000")
	// With rows of A along K and 16 lanes along M, lanes read 64 words apart: the same bank.
	const text = "128x64x64,warps=4,stages=1,staging=registers,thread_m=4,lanes_m=16,shared_a=k,read_width=1"
	plain, padded := values(t, m, square(2048), config(t, text)), values(t, m, square(2048), config(t, text+",pad=1"))
	if plain["conflict_degree"] < 8 || padded["conflict_degree"] >= plain["conflict_degree"] ||
		padded["total"] >= plain["total"] {
		t.Errorf("degrees %v and %v, cycles %v and %v", plain["conflict_degree"], padded["conflict_degree"], plain["total"],
			padded["total"])
	}
}

// No term is larger than the least times allow.
func TestTimesArePossible(t *testing.T) {
	for device := range devices {
		m := open(t, device)
		for _, r := range Ladder().Rungs {
			for _, size := range []int{64, 512, 4096} {
				v := values(t, m, square(size), r.Config)
				if v["total"] < v["dram_floor"] || v["total"] < v["compute_floor"] || v["intensity_dram"] > v["intensity_limit"] {
					t.Errorf("%s %s %d: %v", device, r.Name, size, v)
				}
			}
		}
	}
}

// Tensor cores multiply fragments of 16x16x16 alone. The model refuses what the generator refuses, and no more.
func TestTensorCoresNeedWholeFragments(t *testing.T) {
	m, c := open(t, "sm86@a6000"), rung(t, generator.RungWMMA)
	for _, test := range []struct {
		m, n, k int
		want    arch.Reason
	}{
		{512, 512, 512, ""}, {16, 16, 16, ""}, {256, 640, 384, ""}, {15, 16, 16, generator.ReasonGuard},
		{16, 17, 16, generator.ReasonGuard}, {512, 512, 520, generator.ReasonGuard},
	} {
		p := gemm.New(test.m, test.n, test.k)
		p.DType, p.Out = gemm.FP32, gemm.FP32
		if e := archtest.Estimates(t, m, p, c); e[0].Reject != test.want {
			t.Errorf("%s: %q, want %q", p, e[0].Reject, test.want)
		}
		space := arch.Space{Kernel: Family, BlockM: []int{16}, BlockN: []int{16}, BlockK: []int{16}, NumWarps: []int{1},
			NumStages: []int{1}, SplitK: []int{1}, Axes: []arch.AxisValues{{Name: "math", Values: []string{"wmma"}},
				{Name: "staging", Values: []string{"none"}}, {Name: "thread_m", Values: []string{"8"}},
				{Name: "lanes_m", Values: []string{"4"}}, {Name: "pad", Values: []string{"0"}}}}
		list := must.Get(m.Candidates(t.Context(), p, space))(t)
		if len(list.Configs)+len(list.Rejected) != 1 || len(list.Rejected) == 1 && list.Rejected[0].Reason != test.want {
			t.Errorf("%s: %d candidates, rejected: %v; want %q", p, len(list.Configs), list.Rejected, test.want)
		}
	}
}
