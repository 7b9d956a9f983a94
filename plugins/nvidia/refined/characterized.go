package refined

import (
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// timedKernel is one kernel of a timing pass, in cycles: its K loop at three paces, and what it takes beside. The times
// stand in for what the model computes of a K step on the chip, which is the rung characterized. What comes from DRAM,
// how CTAs fill waves, launch and power stay the model's.
type timedKernel struct {
	ctas  float64 // that fit on an SM
	fixed float64 // prologue and epilogue of a CTA alone
	// one is a CTA alone on the chip, chip one on every SM, full as many on every SM as fit.
	one, chip, full pace
}

// pace is what a K step takes: within the first kernel.ShortK of K, where the pipeline fills and operands are near, and beyond.
type pace struct{ short, long float64 }

// timedLoop returns the cycles of a K loop at a pace. Beyond the steps that are loaded ahead from the start, one that comes
// first to operands in DRAM waits for them as long as the loads that run ahead do not cover.
func (d *device) timedLoop(p pace, k *preparedKernel, steps float64) float64 {
	first := min(steps, kernel.ShortK/k.blockK)
	exposed := max(0, d.touchLatency/k.stepsAhead-p.long)
	return float64(first*p.short) + float64((steps-first)*p.long) + float64(max(0, steps-k.stepsAhead)*d.firstTouchShare*exposed)
}

// timedLoops fills what the three paces make of the problem's K. More CTAs are never faster.
func (d *device) timedLoops(t *timing, k *preparedKernel) {
	t.oneLoop = d.timedLoop(k.timed.one, k, t.steps)
	t.chipLoop = max(t.oneLoop, d.timedLoop(k.timed.chip, k, t.steps))
	t.fullLoop = max(t.chipLoop, d.timedLoop(k.timed.full, k, t.steps))
}

// timedWave puts the times of the pass in the place of the model's: between one CTA and one on every SM by the SMs at work,
// between that and a full chip by the CTAs of an SM.
func (d *device) timedWave(w *wave, k *preparedKernel, t *timing) {
	from, to, share := t.oneLoop, t.chipLoop, w.active/d.sms
	if w.ctas > 1 {
		from, to, share = t.chipLoop, t.fullLoop, min(1, (w.ctas-1)/max(k.timed.ctas-1, 1))
	}
	w.loop = from + float64((to-from)*share)
	w.fill, w.epilogue = k.timed.fixed, 0
}

// timedKernel makes paces of the times that a kernel took.
func (d *device) timedKernel(blockK float64, t *kernel.Timing) timedKernel {
	one, chip, full := d.timedCycles(t.One), d.timedCycles(t.Chip), d.timedCycles(t.Full)
	first, last := kernel.ShortK/blockK, (kernel.LongK-kernel.ShortK)/blockK
	k := timedKernel{ctas: t.CTAs}
	k.fixed = max(one[0]-float64((one[1]-one[0])/(kernel.LongK-kernel.ShortK)*kernel.ShortK), d.timedLeastSeconds*d.clock)
	of := func(times [2]float64) pace {
		return pace{short: max(0, times[0]-k.fixed) / first, long: max(0, times[1]-times[0]) / last}
	}
	k.one, k.chip, k.full = of(one), of(chip), of(full)
	return k
}

// timedCycles takes the launch off the times of the pass.
func (d *device) timedCycles(times [2]float64) [2]float64 {
	for i := range times {
		times[i] = float64(times[i]*d.clock) - float64(d.timedLaunchSeconds*d.clock)
	}
	return times
}
