package gpu

import (
	"math"
	"strings"

	"github.com/origami-gemm/origami/core/hw"
)

// Scale gives a GPU without a device file the parameters that its driver does not report, from the default device of
// its architecture (like). Parameters that the architecture fixes are copied. Parameters of the memory stay the same
// in bytes and seconds, whatever the SM clock. An SM gets no more from the L2, and a byte of L2 delivers no more,
// than on that device. docs/model-tritonblas.md has the formulas.
func Scale(name string, known, like hw.Set) (hw.Number, bool) {
	was, ok := like.Lookup(name)
	if !ok {
		return hw.Number{}, false // an optional parameter that the architecture lacks
	}
	n := hw.Number{Value: was.Value, Unit: was.Unit, Method: hw.Formula}
	ratio := func(of string) float64 { return known.Get(of) / like.Get(of) }
	if strings.HasPrefix(name, "peak_") {
		n.Value *= ratio("num_sms") * ratio("clock")
		n.Source = "by num_sms * clock: the rate of one SM per cycle is the architecture's"
		return n, true
	}
	switch name {
	case "shared_memory_bytes", "register_file", "registers_per_thread", "tensor_cores_per_sm", "dies":
		n.Method, n.Source = hw.Assumed, "the same throughout the architecture"
	case "dram_ecc":
		n.Method, n.Source = hw.Assumed, "as on the architecture's default device"
	case "clock_loaded":
		n.Value *= ratio("clock")
		n.Source = "by clock: under load, it exceeds the boost clock by the same share"
	case "mma_latency":
		n.Method, n.Source = hw.Assumed, "a property of the architecture's SM"
	case "l2_perf_ratio":
		n.Value *= min(ratio("num_sms"), ratio("l2_bytes"))
		n.Source = "by the smaller of num_sms and l2_bytes: neither an SM nor an L2 slice moves more per cycle"
	case "dram_perf_ratio":
		n.Value *= ratio("dram_bandwidth") / ratio("clock")
		n.Source = "by dram_bandwidth / clock: the same share of the peak is reached"
	case "dram_bw_coeff":
		n.Value = math.Min(1, n.Value/(ratio("dram_perf_ratio")*ratio("clock")))
		n.Source = "by 1 / (dram_perf_ratio * clock): one SM draws the same bytes per second " +
			"(Little's law: bytes in flight / latency)"
	case "hbm_latency_penalty":
		n.Value *= ratio("clock")
		n.Source = "by clock: DRAM takes the same time"
	default:
		return hw.Number{}, false // only the driver has it
	}
	return n, true
}
