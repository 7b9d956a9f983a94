//go:build cuda

package cuda

import (
	"errors"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// Between runs a multiple of the L2's size is written, at least smallestFlush.
const (
	flushMultiple = 4
	smallestFlush = unit.Bytes(64 << 20)
)

// dropL2 enqueues a write that replaces the contents of the L2.
func (d *device) dropL2() error {
	if err := d.flush.reserve(max(flushMultiple*unit.Bytes(d.attributes["l2_bytes"]), smallestFlush)); err != nil {
		return err
	}
	return cu.MemsetD8Async(d.flush.at, 0xA5, int64(d.flush.bytes), d.stream)
}

// timed runs once and returns how long that took on the device. The work enqueued before it keeps the device busy
// until the host has enqueued everything: the flush of the L2, or, for a warm L2, a run that fills it and a delay.
// Holding the stream back from the host instead could deadlock: loading a kernel waits for the stream, and the host
// for the load.
func (d *device) timed(run func() error, warm bool) (s exec.Sample, err error) {
	before := d.dropL2
	if warm {
		before = func() error { return errors.Join(run(), d.delay()) }
	}
	return d.between(before, run)
}

// between runs once behind something else, and returns how long the run took on the device.
func (d *device) between(before, run func() error) (s exec.Sample, err error) {
	begin, end := func() error { return d.begin.Record(d.stream) }, func() error { return d.end.Record(d.stream) }
	for _, step := range []func() error{before, begin, run, end} {
		if err := step(); err != nil {
			return s, err
		}
	}
	s.Clock = d.state.clock() // while it runs
	if err := d.end.Synchronize(); err != nil {
		return s, err
	}
	ms, err := d.begin.Elapsed(d.end)
	s.Time = unit.Seconds(ms / 1e3)
	return s, err
}

// delayText is a kernel that ends after 30 µs. The host needs less to enqueue a launch and two events: 3.6 µs each,
// measured on the host of an H200.
const delayText = `.version 7.0
.target sm_75
.address_size 64
.visible .entry delay()
{
	.reg .b64 %now, %end;
	.reg .pred %more;
	mov.u64 %end, %globaltimer;
	add.u64 %end, %end, 30000;
again:
	mov.u64 %now, %globaltimer;
	setp.lt.u64 %more, %now, %end;
	@%more bra again;
	ret;
}
`

// delay enqueues a pause.
func (d *device) delay() error {
	if d.delaying == (loaded{}) {
		var err error
		if d.delaying, err = loadFunction(delayText, "delay"); err != nil {
			return err
		}
	}
	return start(d.stream, d.delaying.function, gemmgen.Launch{GridX: 1, GridY: 1, GridZ: 1, Threads: 1})
}
