// Package roofline places kernels under the roofs of a device: the rates of its matrix instructions and FMA, and the
// bandwidths of shared memory, L2, MALL and DRAM.
//
// A kernel of F operations that moves B bytes through a memory has the arithmetic intensity F ÷ B there. Its rate is at
// most that intensity times the bandwidth, for every memory, and at most the rate of the instructions. A kernel has an
// intensity per memory, because each memory keeps bytes from the next: shared memory serves what matrix instructions
// read, SMs ask global memory for less than that, the L2 delivers once what several SMs ask for at the same time, and
// DRAM only what the L2 does not keep.
//
// References: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore
// architectures", Comm. ACM 52 (2009), 65; C. Yang, T. Kurth, S. Williams, "Hierarchical Roofline analysis for GPUs",
// Concurrency and Computation 32 (2020), e5547.
package roofline

import (
	"fmt"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
)

// Level is where bytes are counted, or Compute for operations.
type Level uint8

// The levels, near to far.
const (
	Compute Level = iota
	Shared
	Requested
	L2
	MALL
	DRAM
)

var levelNames = [...]string{"compute", "shared memory", "requested", "L2", "MALL", "DRAM"}

// String returns the name in tables and JSON.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// Ceiling is a limit of a device: operations per second at the level Compute, bytes per second at the others.
type Ceiling struct {
	Name  string
	Level Level
	// Limit is the peak of the data sheet, or the width of the unit times the clock; no kernel can exceed it. Reached is
	// the best of a microbenchmark. Either is 0 if it is unknown.
	Limit, Reached float64
	// Source says where both come from.
	Source string
}

// Unit is the unit of the ceiling.
func (c *Ceiling) Unit() string {
	if c.Level == Compute {
		return "FLOP/s"
	}
	return "B/s"
}

// Roof is the lower of the two: what a kernel can be expected to reach.
func (c *Ceiling) Roof() float64 {
	if c.Reached > 0 && (c.Limit == 0 || c.Reached < c.Limit) {
		return c.Reached
	}
	return c.Limit
}

// Device is a device's ceilings for one type of operands.
type Device struct {
	// ID is "arch@device", Name the product.
	ID, Name string
	DType    gemm.DType
	// Ceilings are in the order of their levels, and of a level the highest first.
	Ceilings []Ceiling
}

// New returns the ceilings of an opened architecture for operands of a type.
func New(a arch.Architecture, t gemm.DType) *Device {
	b := builder{d: a.Describe(), params: a.Describe().Params, dtype: t}
	b.compute()
	b.shared()
	b.memory(a.Hierarchy().Levels())
	out := &Device{ID: b.d.ID(), Name: b.d.DeviceName, DType: t}
	for i := range b.list {
		if b.list[i].Roof() > 0 {
			out.Ceilings = append(out.Ceilings, b.list[i])
		}
	}
	slices.SortStableFunc(out.Ceilings, func(x, y Ceiling) int {
		if x.Level != y.Level {
			return int(x.Level) - int(y.Level)
		}
		if x.Roof() > y.Roof() {
			return -1
		}
		return 1
	})
	return out
}

// Ceiling returns the highest ceiling of a level, nil if none is known.
func (d *Device) Ceiling(l Level) *Ceiling {
	i := slices.IndexFunc(d.Ceilings, func(c Ceiling) bool { return c.Level == l })
	if i < 0 {
		return nil
	}
	return &d.Ceilings[i]
}

// Peak is the highest roof of operations, 0 if none is known.
func (d *Device) Peak() float64 { return d.roof(Compute) }

// Bandwidth is the roof of a memory, 0 if none is known.
func (d *Device) Bandwidth(l Level) float64 { return d.roof(l) }

func (d *Device) roof(l Level) float64 {
	if c := d.Ceiling(l); c != nil {
		return c.Roof()
	}
	return 0
}

// builder collects ceilings.
type builder struct {
	d      *arch.Description
	params hw.Set
	dtype  gemm.DType
	list   []Ceiling
}

// perUnit returns a measured number of one SM or CU as a rate of all, at the clock that it was measured at or, if that
// is unknown, at the device's.
func (b *builder) perUnit(name string) (rate float64, n hw.Number) {
	p, ok := b.params.Lookup(name)
	if !ok {
		return 0, hw.Number{}
	}
	return p.Value * float64(b.d.Units) * b.clock(p), p.Number
}

func (b *builder) clock(p hw.Param) float64 {
	if p.Clock > 0 {
		return float64(p.Clock)
	}
	return float64(b.d.Clock)
}

// compute adds the matrix instructions of the type, and FMA.
func (b *builder) compute() {
	peak, sheet := float64(b.d.PeakFor(b.dtype)), "peak of "+b.d.DeviceName
	if p, ok := b.params.Lookup("peak_" + b.dtype.CostsLike().String()); ok {
		sheet = p.Source
	}
	fma := b.dtype.CostsLike() == gemm.FP32
	for _, instruction := range []string{"wgmma", "mma"} {
		reached, n := b.perUnit(instruction + "_rate_" + b.dtype.CostsLike().String())
		if reached == 0 || fma {
			continue
		}
		// A clock above that of the data sheet's peak is possible until the power limit lowers it.
		limit := max(peak, n.Value*float64(b.d.Units)*float64(b.d.Clock))
		name := map[string]string{"wgmma": "wgmma", "mma": "mma.sync"}[instruction]
		b.list = append(b.list, Ceiling{Name: b.dtype.String() + " " + name, Limit: limit, Reached: reached,
			Source: "limit: " + sheet + "; reached: " + n.Source})
	}
	if len(b.list) == 0 && !fma {
		b.list = append(b.list, Ceiling{Name: b.dtype.String() + " matrix", Limit: peak, Source: sheet})
	}
	limit, source := 0.0, ""
	if p, ok := b.params.Lookup("peak_fp32"); ok {
		limit, source = p.Value, p.Source
	}
	reached, n := b.perUnit("fma_rate")
	if reached > 0 {
		limit, source = max(limit, reached), "limit: "+source+"; reached: "+n.Source
	}
	b.list = append(b.list, Ceiling{Name: "fp32 FMA", Limit: limit, Reached: reached, Source: source})
}

// shared adds shared memory, or LDS.
func (b *builder) shared() {
	reached, n := b.perUnit("shared_bandwidth")
	c := Ceiling{Name: "shared memory", Level: Shared, Reached: reached, Source: n.Source}
	for _, width := range []struct{ constant, name string }{{"shared_width", "shared memory"}, {"lds_width", "LDS"}} {
		i := slices.IndexFunc(b.d.Constants, func(c arch.Constant) bool { return c.Name == width.constant })
		if i >= 0 {
			w := &b.d.Constants[i]
			c.Name, c.Limit = width.name, w.Value*float64(b.d.Units)*float64(b.d.Clock)
			c.Source = w.Source
			if reached > 0 {
				c.Source = "limit: " + w.Source + "; reached: " + n.Source
			}
		}
	}
	// L1: all global loads pass through it.
	l1, n := b.perUnit("l1_bandwidth")
	b.list = append(b.list, c, Ceiling{Name: "L1", Level: Requested, Reached: l1, Source: n.Source})
}

// memory adds what all SMs share: by parameters where the device has them, and otherwise as the model has the level.
func (b *builder) memory(levels []arch.Level) {
	clock := float64(b.d.Clock)
	l2 := Ceiling{Name: "L2", Level: L2}
	if p, ok := b.params.Lookup("l2_perf_ratio"); ok {
		l2.set(p.Value*b.clock(p), p)
	}
	dram := Ceiling{Name: "DRAM", Level: DRAM}
	if p, ok := b.params.Lookup("dram_bandwidth"); ok {
		dram.Limit, dram.Source = p.Value, "limit: "+p.Source
	}
	reached := ""
	for _, name := range []string{"dram_read", "dram_triad", "dram_perf_ratio"} {
		p, ok := b.params.Lookup(name)
		rate := p.Value
		if name == "dram_perf_ratio" {
			rate *= b.clock(p)
		}
		if ok && p.Tier >= hw.Calibrated && rate > dram.Reached {
			dram.Reached, reached = rate, "; reached: "+p.Source
		}
	}
	dram.Source += reached
	for i := range levels {
		l := &levels[i]
		rate := float64(l.Bandwidth.Peak) * clock
		of := "the model's " + l.Name
		switch {
		case l.Bound == arch.BoundL2 && l2.Roof() == 0:
			l2.Limit, l2.Source = rate, of
		case l.Bound == arch.BoundMALL:
			b.list = append(b.list, Ceiling{Name: l.Name, Level: MALL, Limit: rate, Source: of})
		case l.Bound == arch.BoundDRAM:
			dram.Name = l.Name
			if dram.Roof() == 0 {
				dram.Limit, dram.Source = rate, of
			}
		}
	}
	b.list = append(b.list, l2, dram)
}

// set sets the limit or what was reached, by where the number comes from.
func (c *Ceiling) set(rate float64, p hw.Param) {
	c.Source = p.Source
	if p.Method == hw.Microbenchmark || p.Tier == hw.Override {
		c.Reached = rate
	} else {
		c.Limit = rate
	}
}

// Kernel is a kernel under the roofs of a device.
type Kernel struct {
	// Flops are the operations of the problem, without padding. Seconds is the time, Rate the quotient.
	Flops, Seconds, Rate float64
	// Points are the levels where bytes are known, near to far.
	Points []Point
	// Attainable is the lowest roof at the kernel's intensities, and Bound its level.
	Attainable float64
	Bound      Level
}

// Share is the rate ÷ the attainable one.
func (k *Kernel) Share() float64 { return k.Rate / k.Attainable }

// Point is a kernel at one level of memory.
type Point struct {
	Level Level
	// Bytes pass the level. Intensity is operations by byte, Bandwidth bytes by second.
	Bytes, Intensity, Bandwidth float64
	// Counted says that a term of the model has the bytes. Otherwise they are those of whole tiles, or the compulsory
	// ones.
	Counted bool
	// Share is the bandwidth ÷ the roof of the level, 0 if none is known.
	Share float64
	// Above says what the bandwidth is above, if anything.
	Above Above
}

// Above is what a rate is above.
type Above uint8

// A rate above what a microbenchmark reached says that the microbenchmark is not the fastest kernel, or that the bytes
// are counted too high. One above a limit cannot be right.
const (
	Nothing Above = iota
	AboveReached
	AboveLimit
)

var aboveNames = [...]string{"", "reached", "limit"}

// String returns the word in tables and JSON, empty for Nothing.
func (a Above) String() string { return aboveNames[a] }

// rounding is how far a rate may be above a limit and count as at it.
const rounding = 1e-9

// Place puts a kernel that takes some time under the roofs. terms is its row of the model's terms; without one, bytes
// are counted by whole tiles. Of a kernel without a configuration, such as a library's, only the compulsory bytes are
// known.
func (d *Device) Place(m *arch.Description, p gemm.Problem, c gemm.Config, terms []float64, seconds float64) Kernel {
	k := Kernel{Flops: p.Flops(), Seconds: seconds, Rate: p.Flops() / seconds, Attainable: math.Inf(1)}
	if peak := d.Peak(); peak > 0 {
		k.Attainable = peak
	}
	for _, b := range bytesOf(m, p, c, terms) {
		if b.Bytes <= 0 {
			continue
		}
		b.Intensity, b.Bandwidth = k.Flops/b.Bytes, b.Bytes/seconds
		if ceiling := d.Ceiling(b.Level); ceiling != nil {
			roof := ceiling.Roof()
			b.Share, b.Above = b.Bandwidth/roof, ceiling.above(b.Bandwidth)
			if attainable := roof * b.Intensity; attainable < k.Attainable {
				k.Attainable, k.Bound = attainable, b.Level
			}
		}
		k.Points = append(k.Points, b)
	}
	return k
}

// Compute says what the rate of a kernel is above.
func (d *Device) Compute(k *Kernel) Above {
	if c := d.Ceiling(Compute); c != nil {
		return c.above(k.Rate)
	}
	return Nothing
}

func (c *Ceiling) above(rate float64) Above {
	switch {
	case c.Limit > 0 && rate > c.Limit*(1+rounding):
		return AboveLimit
	case c.Reached > 0 && rate > c.Reached*(1+rounding):
		return AboveReached
	}
	return Nothing
}

// bytesOf returns the bytes of each level, near to far.
func bytesOf(m *arch.Description, p gemm.Problem, c gemm.Config, terms []float64) []Point {
	least := Compulsory(p)
	if c.BlockM == 0 { // a kernel of which only the time is known
		return []Point{{Level: DRAM, Bytes: least}}
	}
	out := make([]Point, 0, 4)
	add := func(l Level, name string, otherwise float64) float64 {
		bytes, counted := m.Common(terms, name)
		if !counted {
			bytes = otherwise
		}
		out = append(out, Point{Level: l, Bytes: bytes, Counted: counted})
		return bytes
	}
	add(Shared, arch.CommonSharedTotal, 0)
	requested := add(Requested, arch.CommonRequested, max(tileBytes(p, c), least))
	l2 := add(L2, arch.CommonL2Total, requested)
	add(DRAM, arch.CommonDRAMTotal, min(l2, max(least, stepwise(m, p, c, terms))))
	return out
}

// Compulsory is the bytes that every kernel moves: operands and output once.
func Compulsory(p gemm.Problem) float64 {
	count, rows := p.Products()
	return float64(count) * (float64(p.DType.Bits())/8*(rows*float64(p.K)+float64(p.K)*float64(p.N)) +
		float64(p.Output().Bits())/8*rows*float64(p.N))
}

// tileBytes are the operands of all tiles, each as large as the configuration says, and the output.
func tileBytes(p gemm.Problem, c gemm.Config) float64 {
	count, rows := p.Products()
	tiles := float64(p.TilesM(max(c.BlockM, 1))) * ceilDiv(p.N, c.BlockN)
	return tiles*float64(c.BlockM+c.BlockN)*float64(p.K)*float64(p.DType.Bits())/8 +
		float64(count)*rows*float64(p.N)*float64(p.Output().Bits())/8
}

// stepwise is what DRAM moves by a model that counts it by K step and wave.
func stepwise(m *arch.Description, p gemm.Problem, c gemm.Config, terms []float64) float64 {
	step, ok := m.Common(terms, arch.CommonDRAMTraffic)
	waves, known := m.Common(terms, arch.CommonWaves)
	if !ok || !known {
		return 0
	}
	return step * ceilDiv(p.K, c.BlockK) * math.Ceil(waves)
}

func ceilDiv(size, block int) float64 { return float64((size + block - 1) / max(block, 1)) }
