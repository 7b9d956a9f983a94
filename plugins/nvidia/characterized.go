package nvidia

import (
	"math"
	"strconv"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/plugins/nvidia/records"
)

// timedTable is what a timing pass over the kernels of triton found, each by itself and for no problem in particular. It is
// the rung characterized: the times stand in for what the model computes of a K step on the chip. What comes from DRAM, how
// CTAs fill waves, launch and power stay the model's.
type timedTable map[timedKey]timedKernel

type timedKey struct {
	compiledKey
	transB bool
}

// timedKernel is one kernel of the pass, in cycles: its K loop at three paces, and what it takes beside.
type timedKernel struct {
	ctas  float64 // that fit on an SM
	fixed float64 // prologue and epilogue of a CTA alone
	// one is a CTA alone on the chip, chip one on every SM, full as many on every SM as fit.
	one, chip, full pace
}

// pace is what a K step takes: within the first timedK of K, where the pipeline fills and operands are near, and beyond.
type pace struct{ short, long float64 }

// The lengths of K of the pass.
const (
	timedK     = 2048
	timedLongK = 6144
)

// timedLoop returns the cycles of a K loop at a pace. Beyond the steps that are loaded ahead from the start, one that comes
// first to operands in DRAM waits for them as long as the loads that run ahead do not cover.
func (d *device) timedLoop(p pace, k *kernel, steps float64) float64 {
	first := min(steps, timedK/k.blockK)
	exposed := max(0, d.touchLatency/k.stepsAhead-p.long)
	return float64(first*p.short) + float64((steps-first)*p.long) + float64(max(0, steps-k.stepsAhead)*d.firstTouchShare*exposed)
}

// timedLoops fills what the three paces make of the problem's K. More CTAs are never faster.
func (d *device) timedLoops(t *timing, k *kernel) {
	t.oneLoop = d.timedLoop(k.timed.one, k, t.steps)
	t.chipLoop = max(t.oneLoop, d.timedLoop(k.timed.chip, k, t.steps))
	t.fullLoop = max(t.chipLoop, d.timedLoop(k.timed.full, k, t.steps))
}

// timedWave puts the times of the pass in the place of the model's: between one CTA and one on every SM by the SMs at work,
// between that and a full chip by the CTAs of an SM.
func (d *device) timedWave(w *wave, k *kernel, t *timing) {
	from, to, share := t.oneLoop, t.chipLoop, w.active/d.sms
	if w.ctas > 1 {
		from, to, share = t.chipLoop, t.fullLoop, min(1, (w.ctas-1)/max(k.timed.ctas-1, 1))
	}
	w.loop = from + float64((to-from)*share)
	w.fill, w.epilogue = k.timed.fixed, 0
}

// timedFile is what plugins/nvidia/records/triton_characterize.py writes.
var timedFile = kernelFile{
	place: "the characterization", remedy: "give what triton_characterize.py writes",
	columns: []string{"bm", "bn", "bk", "stages", "warps", "trans_b", "ctas", "one_2048", "one_6144", "chip_2048", "chip_6144", "full_2048", "full_6144"},
}

// timedIntegers is how many of its columns are numbers of the kernel; the others are microseconds.
const timedIntegers = 7

// readTimed reads the times of a pass.
func (d *device) readTimed(data []byte) (timedTable, error) {
	out := timedTable{}
	err := timedFile.each(data, func(row *kernelRow) error {
		var v [13]float64
		for i, name := range timedFile.columns {
			var err error
			v[i], err = strconv.ParseFloat(row.text(name), 64)
			whole := i >= timedIntegers || v[i] == math.Trunc(v[i]) && v[i] <= 1<<14
			positive := v[i] > 0 || name == "trans_b" && v[i] == 0
			if err != nil || !positive || !whole || math.IsInf(v[i], 0) {
				return row.fault(name).Do("%s", timedFile.remedy)
			}
		}
		key := timedKey{compiledKey{blockM: int16(v[0]), blockN: int16(v[1]), blockK: int16(v[2]), stages: int16(v[3]), warps: int16(v[4])}, v[5] == 1}
		out[key] = d.timedKernel(v[2], v[6], [6]float64(v[timedIntegers:]))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, diag.Inputf("no kernels").At("%s", timedFile.place).Do("%s", timedFile.remedy)
	}
	return out, nil
}

// timedKernel makes paces of the microseconds that a kernel took, for the two lengths of K at each of the three.
func (d *device) timedKernel(blockK, ctas float64, times [6]float64) timedKernel {
	for i := range times {
		times[i] = float64(times[i]*1e-6*d.clock) - d.timedLaunchSeconds*d.clock
	}
	first, last := timedK/blockK, (timedLongK-timedK)/blockK
	k := timedKernel{ctas: ctas}
	k.fixed = max(times[0]-(times[1]-times[0])/(timedLongK-timedK)*timedK, d.timedLeastSeconds*d.clock)
	for i, p := range []*pace{&k.one, &k.chip, &k.full} {
		p.short = max(0, times[2*i]-k.fixed) / first
		p.long = max(0, times[2*i+1]-times[2*i]) / last
	}
	return k
}

// find returns what the pass found of a kernel. Masked loads were not timed: they count as the others.
func (t timedTable) find(p *gemm.Problem, c *gemm.Config) (timedKernel, bool) {
	if t == nil || c.Kernel == KernelMMA || p.TransA() || c.SplitK != 1 {
		return timedKernel{}, false
	}
	k, ok := t[timedKey{compiledKey{int16(c.BlockM), int16(c.BlockN), int16(c.BlockK), int16(c.NumStages), int16(c.NumWarps), false}, p.TransB()}]
	return k, ok
}

// timedFor returns the timing pass for an opened device: the caller's file, or what is shipped for the H200, nil if there is
// none or the rung does not have it.
func (d *device) timedFor(params hw.Set, id string, rung arch.Rung, file []byte) (timedTable, error) {
	switch {
	case rung != "" && rung != arch.RungCharacterized:
		if file != nil {
			return nil, diag.Inputf("rung %s knows no characterization", rung).Do("leave the characterization out, or use the rung %s", arch.RungCharacterized)
		}
		return nil, nil
	case file != nil:
		return d.readTimed(file)
	case id == "h200" && d.target == 90 && bandwidthsMeasured(params):
		return d.readTimed(records.TritonH200Timed)
	}
	return nil, nil
}
