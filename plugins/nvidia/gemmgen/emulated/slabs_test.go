package emulated

import (
	"encoding/binary"
	"regexp"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/probe"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx"
)

// As many CTAs as there are slabs read every byte of the data set once, and the next one begins again
// at the first slab.
func TestSlabs(t *testing.T) {
	const slabs, in, counters = 3, 1 << 40, 1 << 20
	// The emulator has no clock, so that the stopwatch is left out.
	stopwatch := regexp.MustCompile(`(?m)^.*(%clock64|%globaltimer|sub\.s64|mov\.b64|red\.global).*\n`)
	for _, generate := range []func(target.Target) (*ptx.Kernel, error){probe.Slabs, probe.CachedSlabs} {
		k := must.Get(generate(target.Target{CC: 80}))(t)
		params := binary.LittleEndian.AppendUint64(nil, in)
		params = binary.LittleEndian.AppendUint64(params, counters)
		params = binary.LittleEndian.AppendUint32(params, slabs)
		reads := make([]int, slabs*probe.SlabBytes/8) // by load
		first := make([]bool, len(reads))             // by the first CTA
		l := Launch{Text: stopwatch.ReplaceAllString(k.Text, ""), Params: params, Grid: [3]int{slabs + 1, 1, 1},
			Threads: probe.StreamThreads,
			Trace: func(cta [3]int, _, _ int, _, space string, address uint64, _ int) {
				if space != "global" || address < in {
					return
				}
				at := (address - in) / 8
				switch cta[0] {
				case 0:
					first[at] = true
				case slabs:
					must.Need(t, first[at], "%s: CTA %d reads %#x, and the first does not", k.Name, slabs, address-in)
					return
				}
				reads[at]++
			}}
		m := Memory{in: make([]byte, slabs*probe.SlabBytes), counters: make([]byte, 8*probe.Counters)}
		must.Do(t, Run(l, m))
		for at, n := range reads {
			must.Need(t, n == 1, "%s reads %d times what is at %#x", k.Name, n, 8*at)
		}
	}
}
