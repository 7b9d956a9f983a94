package device

import (
	"strings"

	"github.com/origami-gemm/origami/core/hw"
)

// Scale says what follows from an override, as plugins/nvidia/gpu does: the numbers of a device that differs from a
// known one (like) in the given parameters. A compute unit does the same per cycle, and memory the same per second.
//
// AMD's library derives its bandwidths per cycle from a clock, so that less of a clock would be more bandwidth.
func Scale(name string, known, like hw.Set) (hw.Number, bool) {
	was, ok := like.Lookup(name)
	if !ok {
		return hw.Number{}, false
	}
	n := hw.Number{Value: was.Value, Unit: was.Unit, Method: hw.Formula}
	ratio := func(of string) float64 {
		now, known := known.Lookup(of)
		before, ok := like.Lookup(of)
		if !known || !ok {
			return 1
		}
		return now.Value / before.Value
	}
	if strings.HasPrefix(name, "peak_") {
		n.Value *= ratio("num_cus") * ratio("clock")
		n.Source = "by num_cus * clock: the rate of one CU per cycle is the architecture's"
		return n, true
	}
	switch name {
	case "mem1_perf_ratio":
		n.Value *= min(ratio("num_cus"), ratio("l2_bytes")*ratio("num_xcds"))
		n.Source = "by the smaller of num_cus and l2_bytes * num_xcds: neither a CU nor a slice of L2 moves more per cycle"
	case "mem2_perf_ratio":
		n.Value *= ratio("memory_clock") / ratio("clock")
		n.Source = "by memory_clock / clock: the MALL has a clock of its own"
	case "mem3_perf_ratio":
		memory := ratio("memory_clock")
		if changed := ratio("dram_bandwidth"); changed != 1 {
			memory = changed
		}
		n.Value *= memory / ratio("clock")
		n.Source = "by dram_bandwidth (or else memory_clock) / clock: HBM delivers the same per second"
	case "dram_bandwidth":
		n.Value *= ratio("memory_clock")
		n.Source = "by memory_clock: HBM delivers the same per cycle"
	default:
		return hw.Number{}, false
	}
	return n, true
}
