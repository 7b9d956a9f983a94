//go:build !race

package amdref_test

import (
	"fmt"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/plugins/amd-ref/kernel"
)

// recorded is what was recorded for one size: the kernel that was chosen, and its speed.
type recorded struct {
	Arch string
	CUs  int
	// Set is the library that the row is from: stream-k, rocblas, hipblaslt, vega or vega-archive.
	Set     string
	Layout  string // NN, NT, TN, TT as BLAS has them
	Problem gemm.Problem
	Config  gemm.Config
	// Speed is in FLOP/s if the unit is known, else as a share of the peak at a clock that was not recorded.
	Speed float64
	Known bool
}

// Key names the rows that share a clock.
func (r *recorded) Key() string {
	return fmt.Sprintf("%s %d %s %s", r.Arch, r.CUs, r.Set, r.Problem.DType)
}

// flops are the operations of a problem.
func flops(p gemm.Problem) float64 {
	return 2 * float64(p.M) * float64(p.N) * float64(p.K) * float64(p.Batch)
}

// mi300xCUs, mi300xClock are of the peak that the stream-K files give their speeds in, whatever the number of CUs.
const (
	mi300xCUs   = 304
	mi300xClock = 2.1e9
)

// rates are peaks in FLOP per cycle and CU.
var rates = map[string]float64{
	"gfx900 fp32": 128, "gfx90a fp16": 1024, "gfx90a bf16": 1024, "gfx90a fp32": 256,
	"gfx942 fp16": 2048, "gfx942 bf16": 2048, "gfx942 fp8": 4096, "gfx942 fp32": 256,
}

// readRecorded reads the recorded choices and speeds of AMD's libraries. Those of kernels that the family cannot write,
// and of sizes beyond a problem's limits, are left out.
func readRecorded(t testing.TB) (rows []recorded) {
	t.Helper()
	for _, line := range csvtest.Named(t, "data/tuned.csv.gz") {
		if row, ok := recordedRow(t, line); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

func recordedRow(t testing.TB, line map[string]string) (recorded, bool) {
	t.Helper()
	number := func(name string) int { return csvtest.Int(t, line, name) }
	r := recorded{
		Arch: line["arch"], CUs: number("cus"), Set: line["set"], Layout: line["layout"],
		Problem: gemm.New(number("m"), number("n"), number("k")),
		Config: gemm.Config{
			Kernel: kernel.Name, BlockM: number("mt0"), BlockN: number("mt1"), BlockK: number("depthu"),
			NumWarps: number("waves"), NumStages: 1, SplitK: number("split"),
			GroupM: max(1, abs(number("mapping"))),
		},
	}
	dtype := line["dtype"]
	for _, t := range gemm.DTypes() {
		if t.String() == dtype {
			r.Problem.DType = t
		}
	}
	r.Problem.Batch = number("batch")
	r.Problem.SetTrans(r.Layout[0] == 'N', r.Layout[1] == 'N')
	if line["mi"] == "" && number("lds") >= 2*(r.Config.BlockM+r.Config.BlockN)*r.Config.BlockK*4 {
		r.Config.NumStages = 2
	}
	for _, axis := range []struct{ name, column string }{
		{kernel.StreamK.Name, "stream_k"}, {kernel.LocalSplit.Name, "local_split"},
	} {
		if r.Config.SetAxis(kernel.Axes, axis.name, line[axis.column]) != nil {
			return r, false
		}
	}
	value, rate := csvtest.Float(t, line, "value"), rates[r.Arch+" "+dtype]
	switch line["unit"] {
	case "gflops":
		r.Speed, r.Known = value*1e9, true
	case "pct_mi300x":
		r.Speed, r.Known = value/100*rate*mi300xCUs*mi300xClock, true
	default:
		r.Speed = value / 100
	}
	return r, rate > 0 && r.Problem.Validate() == nil
}

func abs(v int) int {
	if v < 0 {
		return -v
	}
	return v
}

// Request opens the model on the device of a row, of the release that the row is of.
func (r *recorded) Request() arch.OpenRequest {
	request := arch.OpenRequest{Arch: r.Arch, Kernel: kernel.Name}
	if r.Arch == "gfx942" || r.Arch == "gfx90a" {
		request.Options = map[string]string{"release": "early"}
	}
	switch {
	case r.Arch == "gfx90a" && r.CUs == 110:
		request.Device = "mi250x-gcd"
	case r.Arch == "gfx942" && r.CUs == 80:
		request.Device = "mi308x"
	case r.Arch == "gfx942" && r.CUs != mi300xCUs:
		request.Overrides = map[string]hw.OverrideValue{
			"num_cus": {Value: float64(r.CUs)}, "num_xcds": {Value: float64(r.CUs / 38)},
		}
	}
	return request
}

// Seconds returns the recorded time. Without a known unit, the clock is that of the peak, in Hz.
func (r *recorded) Seconds(clock float64) float64 {
	speed := r.Speed
	if !r.Known {
		speed *= rates[r.Arch+" "+r.Problem.DType.String()] * float64(r.CUs) * clock
	}
	return flops(r.Problem) / speed
}
