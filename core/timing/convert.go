package timing

import (
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Constants are the numbers of the law that no data sheet has. A model states them for its device, as the constants
// timing_launch, timing_evict and so on of its description.
type Constants struct {
	// Launch is from the event or the profiler's mark before a kernel to its first instruction, and the same behind it.
	// A kernel behind another does not wait for it.
	Launch unit.Seconds
	// Evict is how fast a kernel pushes dirty lines out of the L2, as a multiple of the bandwidth of DRAM.
	Evict float64
	// First is what the first loads wait longer if DRAM answers them.
	First unit.Seconds
	// Kept is the share of the caches that holds operands from one kernel to the next.
	Kept float64
	// Call is what the host needs to launch and to synchronise, besides Events.
	Call unit.Seconds
	// Idle, Matrix and DRAM are shares of the power limit: at rest, and added at the peak of the matrix units and at the
	// bandwidth of DRAM. Rested is how long a board may exceed the limit.
	Idle, Matrix, DRAM float64
	Rested             unit.Seconds
}

// Stated returns the constants that a model states.
func Stated(d *arch.Description) Constants {
	of := func(name string) float64 { return d.Constant("timing_"+name, 0) }
	return Constants{
		Launch: unit.Seconds(of("launch")), Evict: of("evict"), First: unit.Seconds(of("first")), Kept: of("kept"),
		Call: unit.Seconds(of("call")), Idle: of("idle"), Matrix: of("matrix"), DRAM: of("dram"),
		Rested: unit.Seconds(of("rested")),
	}
}

// Device is what the law needs to know of a device.
type Device struct {
	Constants
	// Caches is the capacity of the L2 and of what lies behind it. L2Rate and DRAMRate are the bandwidths that kernels
	// reach, in B/s.
	Caches           unit.Bytes
	L2Rate, DRAMRate float64
	// DRAMPeak is the bandwidth of the data sheet, 0 if it is unknown.
	DRAMPeak float64
	// Peak returns the dense rate of a type in FLOP/s, 0 if it is unknown.
	Peak func(gemm.DType) unit.FlopsPerSecond
}

// New returns a device as an opened model describes it: its caches and the bandwidth of DRAM as levels, that of the L2
// as a ceiling where the description has one.
func New(a arch.Architecture) *Device {
	d := a.Describe()
	device := &Device{Constants: Stated(d), Peak: d.PeakFor}
	for _, l := range a.Hierarchy().Levels() {
		device.Caches += l.Capacity * unit.Bytes(l.Partitions)
		rate := float64(l.Rate()) * float64(d.Clock)
		switch l.Bound {
		case arch.BoundL2:
			device.L2Rate = rate
		case arch.BoundDRAM:
			device.DRAMRate = rate
		default:
		}
	}
	for _, c := range d.Ceilings {
		if c.Level == arch.AtDRAM {
			device.DRAMPeak = c.Limit
		}
		if c.Level == arch.AtL2 && c.Roof() > 0 {
			device.L2Rate = c.Roof()
		}
	}
	return device
}

// Convert returns what a kernel takes in one timing that takes the given time in another.
//
// Model, Warm, Cold, Layers and Layers5 differ in nothing but what of A, B and C goes through DRAM. A time is Launch
// and the fourth root of a sum of fourth powers: of the transfers, and of the rest, which stays. To its base, Events
// adds Launch and the eviction of as many dirty lines as the kernel brings bytes, up to the caches; Alone adds Launch;
// Host adds Call to Events; Sustained adds what the power exceeds its limit by, less of it for a kernel that is long
// enough to be limited in any timing.
// Cold is no more than Events without Launch, whose operands come from DRAM, too.
//
// A time that is shorter than the transfers of its timing converts to the least time of the other. A model
// without constants, or without levels of memory that say that they are L2 and DRAM, has one time for every timing.
func (d *Device) Convert(t unit.Seconds, p *gemm.Problem, from, to Timing) unit.Seconds {
	return d.Converter(p, from, to)(t)
}

// Evicted returns what a kernel that moves so many bytes waits for an L2 full of dirty lines.
func (d *Device) Evicted(bytes float64) unit.Seconds {
	if d.Evict == 0 || d.DRAMRate == 0 {
		return 0
	}
	return unit.Seconds(min(bytes, float64(d.Caches)) / (d.Evict * d.DRAMRate))
}

// Added returns what a timing counts besides the kernel.
func (d *Device) Added(p *gemm.Problem, to Timing) unit.Seconds {
	if d.Constants == (Constants{}) || d.DRAMRate <= 0 {
		return 0
	}
	return d.workOf(p).added(to)
}

// Converter returns what converts the times of kernels for a problem. It is not safe for concurrent use.
func (d *Device) Converter(p *gemm.Problem, from, to Timing) func(unit.Seconds) unit.Seconds {
	if from == to || d.Constants == (Constants{}) || d.DRAMRate <= 0 || d.L2Rate <= 0 {
		return func(t unit.Seconds) unit.Seconds { return t }
	}
	w := d.workOf(p)
	if from == to.Base() {
		return func(t unit.Seconds) unit.Seconds { return w.clocked(t, to) }
	}
	return func(t unit.Seconds) unit.Seconds {
		if from != Model {
			t = w.model(t, from)
		}
		return w.in(to, t)
	}
}

// work is a problem on a device.
type work struct {
	*Device
	a, b, c, flops, peak float64

	// What does not depend on the kernel, once it is known: transfers by timing, and least.
	moved []moved
	floor unit.Seconds
}

// moved is the result of transfers.
type moved struct {
	of            Timing
	seconds, cold float64
}

func (d *Device) workOf(p *gemm.Problem) *work {
	m, n, k, batch := float64(p.M), float64(p.N), float64(p.K), float64(p.Batch)
	element, output := batch*float64(p.DType.Bits())/8, batch*float64(p.Output().Bits())/8
	w := &work{Device: d, a: m * k * element, b: k * n * element, c: m * n * output, flops: 2 * batch * m * n * k}
	if d.Peak != nil {
		w.peak = float64(d.Peak(p.DType))
	}
	return w
}

// transfers are the seconds that the operands and the output take, each byte once, and the share of B that comes from
// DRAM.
func (w *work) transfers(t Timing) (seconds, cold float64) {
	for i := range w.moved {
		if known := &w.moved[i]; known.of == t {
			return known.seconds, known.cold
		}
	}
	seconds, cold = w.move(t)
	w.moved = append(w.moved, moved{t, seconds, cold})
	return seconds, cold
}

func (w *work) move(t Timing) (seconds, cold float64) {
	missed := func(bytes float64) float64 { // a cache that is nearly full keeps a part
		return min(max((bytes/(w.Kept*float64(w.Caches))-0.8)/0.4, 0), 1)
	}
	b, rest := 1.0, missed(w.a+w.c)
	switch t {
	case Warm:
		b = missed(w.b + w.a + w.c)
	case Layers5:
		b = missed(5*w.b + w.a + w.c)
	case Layers:
		b = missed(6*w.b + w.a + w.c)
	case Cold:
		rest = 1
	default:
	}
	moved := b*w.b + rest*(w.a+w.c)
	return moved/w.DRAMRate + (w.a+w.b+w.c-moved)/w.L2Rate, b
}

// least is a hundredth more than the time of Model that the data sheet allows: the bandwidth of DRAM, and the rate of
// the matrix units.
func (w *work) least() unit.Seconds {
	if w.floor == 0 {
		faster := *w
		device := *w.Device
		device.DRAMRate = max(device.DRAMRate, device.DRAMPeak)
		faster.Device = &device
		seconds, _ := faster.move(Model)
		if w.peak > 0 {
			seconds = max(seconds, w.flops/w.peak)
		}
		w.floor = 1.01 * unit.Seconds(seconds)
	}
	return w.floor
}

// below is a time near the least time of a timing for one that is shorter than the least of another. A hundredth keeps
// the order of kernels.
func below(least, t, of unit.Seconds) unit.Seconds { return least * (0.99 + 0.01*t/of) }

// in converts from Model.
func (w *work) in(to Timing, t unit.Seconds) unit.Seconds {
	if of := to.Base(); of != Model {
		most := t + w.Evicted(w.a+w.b+w.c)
		before, cold := w.transfers(Model)
		after, still := w.transfers(of)
		first := unit.Seconds(still-cold) * w.First
		if least := w.Launch + unit.Seconds(before); t <= least {
			also := w.Launch + unit.Seconds(after) + first
			there := below(also, t, least)
			if also <= least { // fewer bytes from DRAM take no longer
				there = min(there, t)
			}
			t = there
		} else {
			t = w.Launch + fourth(float64(t-w.Launch), -before, after) + first
		}
		if of == Cold {
			t = min(t, most)
		}
	}
	return w.clocked(t, to)
}

// fourth is the fourth root of a sum of fourth powers, each with its sign.
func fourth(terms ...float64) unit.Seconds {
	sum := 0.0
	for _, x := range terms {
		sum += math.Copysign(x*x*x*x, x)
	}
	return unit.Seconds(math.Sqrt(math.Sqrt(max(sum, 0))))
}

// added is what a timing adds to its base, however long the kernel takes.
func (w *work) added(to Timing) unit.Seconds {
	switch to {
	case Events:
		return w.Launch + w.Evicted(w.a+w.b+w.c)
	case Alone:
		return w.Launch
	case Host:
		return w.added(Events) + w.Call
	default:
		return 0
	}
}

// clocked converts from the base of a timing.
func (w *work) clocked(t unit.Seconds, to Timing) unit.Seconds {
	switch to {
	case Events, Alone, Host:
		return t + w.added(to)
	case Sustained:
		if w.peak == 0 {
			return t
		}
		moved := w.b + w.c
		power := w.Idle + w.Matrix*min(w.flops/w.peak/float64(t), 1) + w.DRAM*min(moved/w.DRAMRate/float64(t), 1)
		return t * unit.Seconds(1+max(power-1, 0)/(1+float64(t/w.Rested)))
	default:
		return t
	}
}

// model converts to Model: the inverse of in.
func (w *work) model(t unit.Seconds, from Timing) unit.Seconds {
	if from == Sustained { // what the limit adds depends on the time without it
		low, high := unit.Seconds(0), t
		for range 60 {
			if middle := (low + high) / 2; w.clocked(middle, from) < t {
				low = middle
			} else {
				high = middle
			}
		}
		return high
	}
	of := from.Base()
	if of == Model {
		least := w.least()
		if shortest := w.clocked(least, from); t <= shortest {
			return below(least, t, shortest)
		}
		return t - w.added(from)
	}
	before, cold := w.transfers(Model)
	after, still := w.transfers(of)
	t -= w.added(from)
	if least := w.Launch + unit.Seconds(after) + unit.Seconds(still-cold)*w.First; t <= least {
		return below(w.Launch+unit.Seconds(before), t, least)
	}
	m := w.Launch + fourth(float64(t-unit.Seconds(still-cold)*w.First-w.Launch), -after, before)
	if of == Cold {
		m = max(m, t-w.Evicted(w.a+w.b+w.c))
	}
	return m
}
