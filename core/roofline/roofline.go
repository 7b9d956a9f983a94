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
	"cmp"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
)

// Level is where bytes are counted, or Compute for operations.
type Level = arch.Place

// The levels, near to far.
const (
	Compute   = arch.AtCompute
	Shared    = arch.AtShared
	Requested = arch.AtRequested
	L2        = arch.AtL2
	MALL      = arch.AtMALL
	DRAM      = arch.AtDRAM
)

// Ceiling is a limit of a device.
type Ceiling = arch.Ceiling

// Device is a device's ceilings for one type of operands.
type Device struct {
	DType gemm.DType
	// Ceilings are in the order of their levels, and of a level the highest first.
	Ceilings []Ceiling
	// DataSheet is the peak rate of the type by the data sheet, in FLOP/s, 0 if it is unknown.
	DataSheet float64
}

// New returns the ceilings of an opened architecture for operands of a type.
func New(a arch.Architecture, t gemm.DType) *Device {
	d := a.Describe()
	out := &Device{DType: t, DataSheet: float64(d.PeakFor(t))}
	for _, c := range slices.Concat(compute(d, t), near(d), memory(d, a.Hierarchy().Levels())) {
		if c.Roof() > 0 {
			out.Ceilings = append(out.Ceilings, c)
		}
	}
	slices.SortStableFunc(out.Ceilings, func(x, y Ceiling) int {
		if x.Level != y.Level {
			return int(x.Level) - int(y.Level)
		}
		return cmp.Compare(y.Roof(), x.Roof())
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

// Ridge is the FLOP per byte from which on a memory no longer limits a kernel: the data sheet's peak ÷ the limit of its
// bandwidth, or ÷ what was reached where no limit is known. It is 0 for a rate of operations, and if no peak is known.
func (d *Device) Ridge(c *Ceiling) float64 {
	bandwidth := c.Limit
	if bandwidth == 0 {
		bandwidth = c.Reached
	}
	if c.Level == Compute || bandwidth == 0 {
		return 0
	}
	return d.DataSheet / bandwidth
}

// compute are the rates of the matrix instructions of a type, and of FMA.
func compute(d *arch.Description, t gemm.DType) []Ceiling {
	like := t.CostsLike()
	list := instructions(d, like, t)
	if like == gemm.FP32 {
		return list
	}
	return append(list, instructions(d, gemm.FP32, gemm.FP32)...)
}

// instructions are the ceilings of the instructions of an element type, for operands of a type that costs the same.
func instructions(d *arch.Description, like, t gemm.DType) (list []Ceiling) {
	for _, c := range d.Ceilings {
		if c.Level == Compute && c.DType == like {
			c.Name, c.DType = t.String()+" "+c.Name, 0
			list = append(list, c)
		}
	}
	if len(list) > 0 {
		return list
	}
	p, ok := hw.Set(d.Params).Lookup("peak_" + like.String())
	if like == gemm.FP32 {
		return []Ceiling{{Name: "fp32 FMA", Limit: p.Value, Source: p.Source}}
	}
	if !ok {
		p.Source = "peak of " + d.DeviceName
	}
	return []Ceiling{{Name: t.String() + " matrix", Limit: float64(d.PeakFor(t)), Source: p.Source}}
}

// near are the memories of an SM or CU.
func near(d *arch.Description) (list []Ceiling) {
	for _, c := range d.Ceilings {
		if c.Level == Shared || c.Level == Requested {
			list = append(list, c)
		}
	}
	return list
}

// memory is what all SMs or CUs share: as the plugin states it, and otherwise as the model has the level.
func memory(d *arch.Description, levels []arch.Level) (list []Ceiling) {
	l2, dram := Ceiling{Name: "L2", Level: L2}, Ceiling{Name: "DRAM", Level: DRAM}
	for _, c := range d.Ceilings {
		switch c.Level {
		case L2:
			l2 = c
		case DRAM:
			dram = c
		case MALL:
			list = append(list, c)
		default:
		}
	}
	stated := len(list) > 0
	for i := range levels {
		l := &levels[i]
		rate := float64(l.Rate()) * float64(d.Clock)
		of := "the model's " + l.Name
		switch {
		case l.Bound == arch.BoundL2 && l2.Roof() == 0:
			l2.Limit, l2.Source = rate, of
		case l.Bound == arch.BoundMALL && l.Capacity > 0 && !stated:
			list = append(list, Ceiling{Name: l.Name, Level: MALL, Limit: rate, Source: of})
		case l.Bound == arch.BoundDRAM:
			dram.Name = l.Name
			if dram.Roof() > 0 {
				break
			}
			dram.Limit, dram.Source = rate, of
			if l.DataSheet > 0 {
				p, _ := hw.Set(d.Params).Lookup(l.Names.DataSheet)
				dram.Limit, dram.Source = float64(l.DataSheet), "limit: "+p.Source
			}
		}
	}
	return append(list, l2, dram)
}

// Kernel is a kernel under the roofs of a device. Its rate is of the operations of the problem, without padding. Levels
// are the memories whose bytes are known, near to far.
type Kernel struct {
	// its time, and its rate
	Seconds float64 `json:"seconds" unit:"s"`
	Rate    float64 `json:"flop_per_second" unit:"FLOP/s"`
	// the rate that the lowest roof allows, and the share reached
	Attainable float64 `json:"attainable_flop_per_second"`
	Share      float64 `json:"of_attainable" unit:"fraction"`
	// the level of the lowest roof
	Bound Level `json:"bound"`
	// the number of the instructions that it exceeds, so that one of both is wrong
	Above Above `json:"above,omitempty"`
	// the kernel at each memory
	Levels []Point `json:"levels"`
}

// Point is a kernel at one memory. Bytes that the model does not count are the bytes of whole tiles, or the compulsory
// bytes.
type Point struct {
	// the memory
	Level Level `json:"level"`
	// the bytes that pass it
	Bytes float64 `json:"bytes"`
	// whether the model counted the bytes
	Counted bool `json:"counted_by_model"`
	// operations by byte, and bytes by second
	Intensity float64 `json:"flop_per_byte"`
	Bandwidth float64 `json:"bytes_per_second"`
	// the bandwidth ÷ its roof
	Share digits.Number `json:"of_roof"`
	// the number that the bandwidth exceeds, so that one of both is wrong
	Above Above `json:"above,omitempty"`
}

// Above is what a rate is above.
type Above string

// A rate above what a microbenchmark reached says that the microbenchmark is not the fastest kernel, or that the bytes
// are counted too high. One above a limit cannot be right.
const (
	Nothing      Above = ""
	AboveReached Above = "reached"
	AboveLimit   Above = "limit"
)

// rounding is how far a rate may be above a limit and count as at it.
const rounding = 1e-9

// Place puts a kernel that takes some time under the roofs. terms is its row of the model's terms; without one, bytes
// are counted by whole tiles. Of a kernel without a configuration, such as a library's, only the compulsory bytes are
// known.
func (d *Device) Place(m *arch.Description, p gemm.Problem, c gemm.Config, terms []float64, seconds float64) Kernel {
	flops := p.Flops()
	k := Kernel{Seconds: seconds, Rate: flops / seconds, Attainable: math.Inf(1)}
	if c := d.Ceiling(Compute); c != nil {
		k.Attainable, k.Above = c.Roof(), above(c, k.Rate)
	}
	for _, b := range bytesOf(m, p, c, terms) {
		if b.Bytes <= 0 {
			continue
		}
		b.Intensity, b.Bandwidth, b.Share = flops/b.Bytes, b.Bytes/seconds, digits.Number(math.NaN())
		if ceiling := d.Ceiling(b.Level); ceiling != nil {
			roof := ceiling.Roof()
			b.Share, b.Above = digits.Number(b.Bandwidth/roof), above(ceiling, b.Bandwidth)
			if attainable := roof * b.Intensity; attainable < k.Attainable {
				k.Attainable, k.Bound = attainable, b.Level
			}
		}
		k.Levels = append(k.Levels, b)
	}
	k.Share = k.Rate / k.Attainable
	return k
}

func above(c *Ceiling, rate float64) Above {
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
