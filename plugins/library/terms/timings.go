package terms

import "github.com/origami-gemm/origami/core/timing"

// Timings returns the constants of the stopwatches on devices of a generation. Only Hopper's were measured as a whole.
// Those of the others are Hopper's where nothing else is known, which is an assumption.
func Timings(g Generation) timing.Constants {
	c := timing.Reference()
	if g == Hopper {
		return c
	}
	c.Measured, c.Source = nil, "assumed, as on an H200: "+c.Source
	switch g {
	case Blackwell:
		c.Launch, c.Measured = 3.1e-6, []timing.Timing{timing.Alone}
		c.Source = "launch: XLA's times of a B200 less those of CUDA graphs of the same 39 products in bf16, which differ " +
			"by as much for all sizes (on an H100 by 2.4 µs, as between events on an H200); the others " + c.Source
	case CDNA2:
		c.Call = 23.6e-6
		c.Source = "call: with launch, the 26 µs by which hipBLASLt's recorded times of an MI210 exceed all others; no " +
			"second source has it, so it corrects its own list and is no evidence; the others " + c.Source
	default:
	}
	return c
}
