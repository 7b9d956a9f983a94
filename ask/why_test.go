package ask

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/score"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

// A device of 100 SMs at 1 GHz, 1000 TFLOP/s and 4 TB/s.
func whyOf(p gemm.Problem, block int, e arch.Estimate, terms map[string]float64) string {
	d := &arch.Description{
		Units: 100, UnitName: "SM", Clock: 1e9,
		Peak: []arch.PeakRate{{DType: gemm.FP16, Rate: 1e15}, {DType: gemm.INT8, Rate: 2e15}},
	}
	entry := Entry{
		Config:   gemm.Config{BlockM: block, BlockN: block, BlockK: 64, NumWarps: 4, NumStages: 2, SplitK: 1},
		Estimate: e,
	}
	for name, v := range terms {
		d.Terms = append(d.Terms, arch.Term{Name: name, Common: name})
		entry.Terms = append(entry.Terms, v)
	}
	return (&Ranking{Arch: d, Problem: p, DRAMPeak: 4e12}).Why(&entry)
}

func TestWhy(t *testing.T) {
	square, decode := gemm.New(4096, 4096, 4096), gemm.New(1, 8192, 8192)
	integers := square
	integers.DType = gemm.INT8
	known := map[string]float64{arch.CommonCTAsPerUnit: 2, arch.CommonWaves: 5.12, arch.CommonDRAMTotal: 2e8}
	cycles := func(us float64, b arch.Bound) arch.Estimate {
		return arch.Estimate{Cycles: unit.Cycles(us * 1e3), Bound: b}
	}
	for _, c := range []struct{ got, want string }{
		{
			whyOf(square, 128, cycles(200, arch.BoundCompute), known),
			"compute-bound: 687 TFLOP/s, 68.7 % of the fp16 peak (1.00 PFLOP/s); 25.0 % of DRAM's 4.00 TB/s; " +
				"5.12 waves of 2 CTAs per SM; 1365 FLOP/B",
		},
		{ // no terms: the operands and the output once, and tiles by SMs
			whyOf(square, 128, cycles(200, arch.BoundL2), nil),
			"L2-bound: 687 TFLOP/s, 68.7 % of the fp16 peak (1.00 PFLOP/s); 12.6 % of DRAM's 4.00 TB/s; 10.2 waves; " +
				"1365 FLOP/B",
		},
		{
			whyOf(integers, 128, cycles(100, arch.BoundCompute), nil),
			"compute-bound: 1.37 POPS, 68.7 % of the int8 peak (2.00); 25.2 % of DRAM's 4.00 TB/s; 10.2 waves; 1365 OPS/B",
		},
		{ // a part of the operands is in a cache
			whyOf(decode, 16, cycles(40, arch.BoundDRAM), map[string]float64{arch.CommonDRAMTotal: 64e6}),
			"DRAM-bound: 1.60 TB/s, 40.0 % of DRAM's 4.00 TB/s; 3.36 TFLOP/s, 0.336 % of the fp16 peak (1.00 PFLOP/s); " +
				"5.12 waves; 1 FLOP/B; 93.8 % padding",
		},
		{ // far from the roof that the model names
			whyOf(decode, 16, cycles(400, arch.BoundDRAM), nil),
			"waits for DRAM: 336 GB/s, 8.39 % of DRAM's 4.00 TB/s; 336 GFLOP/s, 0.034 % of the fp16 peak (1.00 PFLOP/s); " +
				"5.12 waves; 1 FLOP/B; 93.8 % padding",
		},
		{
			whyOf(square, 128, cycles(2000, arch.BoundCompute), nil),
			"waits for arithmetic: 68.7 TFLOP/s, 6.87 % of the fp16 peak (1.00 PFLOP/s); 1.26 % of DRAM's 4.00 TB/s; " +
				"10.2 waves; 1365 FLOP/B",
		},
		{whyOf(square, 128, arch.Estimate{Reject: arch.ReasonRegisters}, nil), ""},
	} {
		must.Equal(t, c.got, c.want)
	}
}

// A number that JSON cannot hold is an error in one line, wherever it is.
func TestEncodeRefusesNumbers(t *testing.T) {
	type predicted struct {
		TFLOPS float64 `json:"tflops"`
	}
	for _, v := range []any{predicted{math.Inf(1)}, map[string]any{"summary": Fields{{"worst", math.NaN()}}}} {
		line, err := Encode(v)
		must.That(t, diag.KindOf(err) == diag.Plugin && line == nil, "%s", line)
		must.Fail(t, err, "which is no result; see whether an override is out of range")
	}
}

// A panic of one function is told to whoever waits, when all are done, with the place where it was.
func TestGroup(t *testing.T) {
	var g Group
	var done [3]bool
	for i := range done {
		g.Go(func() {
			done[i] = true
			if i == 1 {
				panic("a fault")
			}
		})
	}
	defer func() {
		fault := fmt.Sprint(recover())
		must.That(t, strings.HasPrefix(fault, "a fault\n") && strings.Contains(fault, "why_test.go"), "%v", fault)
		must.Equal(t, done, [3]bool{true, true, true})
	}()
	g.Wait()
	t.Error("the panic is lost")
}

// The margins of the H100 on products that neither they nor the times near the problems are of, with today's
// predictions: cuBLAS's time ÷ the time of what is taken, as measured, at the geometric mean and at worst, and the
// worst without margins (docs/decisions/python-and-serving.md).
func TestMarginsReplayed(t *testing.T) {
	providers := models.Providers([]arch.Provider{must.Get(nvidia.Provider())(t)})
	open := func(kernel string) arch.Architecture {
		target := models.Target{Arch: "sm90", Device: "h100", Kernel: kernel, Timing: timing.Model}
		return must.Get(target.Open(t.Context(), providers))(t)
	}
	ours, library := open("wgmma"), open("library")
	for _, set := range []struct {
		file                 string
		products             int
		mean, worst, without float64
	}{{"layers-since.json", 236, 1.025, 0.96, 0.93}, {"drawn-since.json", 126, 0.999, 0.91, 0.9}} {
		var list []struct {
			M, N, K      int
			DType, Pick  string
			Ours, CuBLAS float64
		}
		text := must.Get(os.ReadFile("../experiments/layers-on-h100/" + set.file))(t)
		if err := json.Unmarshal(text, &list); err != nil || len(list) != set.products {
			t.Fatal(len(list), err)
		}
		mean, worst, without := 0., 1., 1.
		for _, x := range list {
			p := gemm.New(x.M, x.N, x.K)
			p.DType = must.Get(gemm.ParseDType(x.DType))(t)
			p.SetTrans(false, true)
			d := ours.Describe()
			c := must.Get(gemm.ParseConfig(x.Pick, gemm.Config{Kernel: "wgmma"}, d.Axes("wgmma")...))(t)
			var e [1]arch.Estimate
			must.Do(t, ours.Estimate(t.Context(), e[:], p, []gemm.Config{c}))
			rows, _, err := score.Fastest(t.Context(), library, "library", []gemm.Problem{p})
			must.Do(t, err)
			time := e[0].Cycles.At(d.Clock)
			if time < rows[0].Predicted {
				without = min(without, x.CuBLAS/x.Ours)
			}
			if time < rows[0].Predicted*margin(d, &p) {
				mean += math.Log(x.CuBLAS/x.Ours) / float64(len(list))
				worst = min(worst, x.CuBLAS/x.Ours)
			}
		}
		mean = math.Exp(mean)
		must.Hold(t, mean >= set.mean && worst >= set.worst && without <= set.without,
			"%s: %.4f, at worst %.3f, without margins %.3f; want %+v", set.file, mean, worst, without, set)
	}
}
