package arch

import (
	"context"
	"math"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Whole returns an architecture that also answers for problems with nested indices, a beta other than 0 or an epilogue,
// of which models know nothing. It asks about the matrices (gemm.Problem.Flat) and adds the Besides. The terms are
// the matrices' terms. If no problem is such, it returns a itself.
//
// A family with kernels for nested indices says so in its description.
func Whole(a Architecture, problems ...gemm.Problem) Architecture {
	if _, is := a.(*whole); is { // it adds the Besides already
		return a
	}
	for i := range problems {
		if problems[i].BeyondProduct() {
			return &whole{a}
		}
	}
	return a
}

type whole struct{ Architecture }

// Candidates implements Architecture.
func (w *whole) Candidates(ctx context.Context, p gemm.Problem, s Space) (*Candidates, error) {
	return w.Architecture.Candidates(ctx, p.Flat(), s)
}

// Estimate implements Architecture.
func (w *whole) Estimate(ctx context.Context, dst []Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if p.Nest != (gemm.Nest{}) {
		d, checked := w.Describe(), ""
		for i := range cfgs {
			if kernel := cfgs[i].Kernel; i == 0 || kernel != checked {
				if err := d.supportsNests(kernel); err != nil {
					return err
				}
				checked = kernel
			}
		}
	}
	if err := w.Architecture.Estimate(ctx, dst, p.Flat(), cfgs); err != nil {
		return err
	}
	count := w.counter(&p)
	for i := range dst {
		if dst[i].Reject == "" {
			dst[i].Cycles += count.of(&cfgs[i]).Total()
		}
	}
	return nil
}

// Terms implements Architecture.
func (w *whole) Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	return w.Architecture.Terms(ctx, dst, p.Flat(), cfgs)
}

// Mapping implements Architecture.
func (w *whole) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (Mapping, error) {
	return w.Architecture.Mapping(ctx, p.Flat(), c)
}

// Besides is the time that a kernel takes besides that for the matrices. The parts are added: nothing says that they
// overlap with each other or with the rest. Each follows from constants besides_… that the model states, and is 0
// without them.
type Besides struct {
	// Addresses is for the instructions that find elements: reads of offsets, and additions of 64 bits. Nested loops have
	// no other cost: there is one loop, over a table of offsets.
	//
	//	blocks·(block_m + block_n)·block_k · lookup ÷ active
	//
	// over the blocks along K of all tiles, with the cycles that a unit needs more for an element (besides_lookup, or
	// besides_lookup_4 for one of 4 bytes), and the units that have a tile.
	Addresses unit.Cycles
	// Lines is for what the accesses of a warp touch besides its elements. Of each tensor, sectors is how many of
	// besides_sector bytes its besides_lanes lanes touch, on average over the fastest dimension, and dense how many they
	// would touch side by side.
	//
	//	Σ bytes·(sectors ÷ dense − 1) ÷ bandwidth of the L2
	//
	// with the bytes of A and B that all tiles read, and the bytes of C.
	Lines unit.Cycles
	// Gaps is for the sectors that DRAM delivers with gaps in them: min(span, elements · sector) − elements, in bytes of
	// each tensor, ÷ bandwidth of DRAM.
	Gaps unit.Cycles
	// Beta is for reading C or R: besides_reads times its bytes ÷ bandwidth of DRAM.
	Beta unit.Cycles
	// Scales is for reading scales of each row and column: besides_reads times their bytes ÷ bandwidth of DRAM.
	Scales unit.Cycles
	// Pass is for the kernels behind this one that apply the activation: besides_passes times
	//
	//	(bytes of A·B + bytes of C) ÷ bandwidth of DRAM
	Pass unit.Cycles
	// Epilogue is for the scales, the bias and the activation of the elements of C, by the unit that has the most of them:
	//
	//	⌈tiles ÷ units⌉·block_m·block_n · cycles of an element
	//
	// with the cycles besides_relu, besides_gelu or the like. A gate is applied to half of the elements, with besides_gate
	// more. Bias and scales add besides_bias and besides_scales.
	Epilogue unit.Cycles
}

// Total returns the sum.
func (b Besides) Total() unit.Cycles {
	return b.Addresses + b.Lines + b.Gaps + b.Beta + b.Scales + b.Pass + b.Epilogue
}

// BesidesPart is one of the times.
type BesidesPart struct {
	Name, Doc string
	Cycles    unit.Cycles
}

// Parts lists the times.
func (b Besides) Parts() []BesidesPart {
	return []BesidesPart{
		{"addresses", "instructions that find elements: reads of offsets and additions",
			b.Addresses},
		{"lines", "sectors that the accesses of a warp touch besides its elements, from the L2", b.Lines},
		{"gaps", "sectors with gaps between the elements, from DRAM", b.Gaps},
		{"beta", "reading C or R from DRAM", b.Beta},
		{"scales", "reading scales of each row and column from DRAM", b.Scales},
		{"pass", "the kernel behind this one for an activation: reading A·B and writing C", b.Pass},
		{"epilogue", "scales, bias and activation, by the unit with the most tiles", b.Epilogue},
	}
}

// BesidesOf returns what a problem costs besides its matrices.
func BesidesOf(a Architecture, p *gemm.Problem, c *gemm.Config) Besides {
	return (&whole{a}).counter(p).of(c)
}

// mostSampled bounds the values of a dimension that are looked at.
const mostSampled = 1 << 12

// counter counts what one problem costs besides its matrices.
type counter struct {
	d        *Description
	p        *gemm.Problem
	units    float64
	l2, dram unit.BytesPerCycle
	// touched is sectors ÷ dense − 1 of each tensor.
	touched [3]float64
	fixed   Besides // what does not depend on the configuration
	element float64 // cycles of the epilogue of an element
	lookup  float64 // cycles of finding an element
}

func (w *whole) counter(p *gemm.Problem) *counter {
	d := w.Describe()
	c := &counter{d: d, p: p, units: float64(max(1, d.Units))}
	if levels := w.Hierarchy().Levels(); len(levels) > 0 {
		c.l2, c.dram = levels[0].Rate(), levels[len(levels)-1].Rate()
	}
	elements := [3]float64{float64(p.M) * float64(p.K), float64(p.K) * float64(p.N), float64(p.M) * float64(p.Columns())}
	size := func(o gemm.Operand) float64 { return float64(p.Type(o).Bytes()) }
	reads := c.cost("reads")
	if p.Beta != 0 || p.Epilogue.Residual {
		c.fixed.Beta = per(reads*elements[gemm.C]*float64(p.Batch)*size(gemm.C), c.dram)
	}
	if p.Epilogue.Scales {
		c.fixed.Scales = per(reads*float64(p.M+p.N)*float64(gemm.FP32.Bytes()), c.dram)
	}
	if p.Epilogue.Activation != gemm.Identity {
		product := float64(p.M) * float64(p.N)
		c.fixed.Pass = per(c.cost("passes")*(product+elements[gemm.C])*float64(p.Batch)*size(gemm.C), c.dram)
	}
	c.element = c.epilogue()
	if p.Nest == (gemm.Nest{}) {
		return c
	}
	fastest := [3]gemm.Dimension{gemm.DimK, gemm.DimK, gemm.DimN}
	if p.TransA() {
		fastest[gemm.A] = gemm.DimM
	}
	if !p.TransB() {
		fastest[gemm.B] = gemm.DimN
	}
	if c.lookup = c.cost("lookup"); p.DType.Bytes() == 4 {
		c.lookup = c.cost("lookup_4")
	}
	sector, lanes := int(c.cost("sector")), int(c.cost("lanes"))
	if sector <= 0 || lanes <= 0 {
		return c
	}
	for o := gemm.A; o <= gemm.C; o++ {
		c.touched[o] = touched(p, fastest[o], o, sector, lanes)
		all := elements[o] * float64(p.Batch)
		// Operands may share elements, so the span can be less than the elements.
		gap := min(float64(p.Nest.Span(o))*size(o), all*float64(sector)) - all*size(o)
		c.fixed.Gaps += per(max(0, gap), c.dram)
	}
	return c
}

// of adds what depends on the configuration.
func (c *counter) of(cfg *gemm.Config) Besides {
	b, p := c.fixed, c.p
	if p.Nest == (gemm.Nest{}) && p.Epilogue == (gemm.Epilogue{}) {
		return b
	}
	up := func(size, block int) float64 { return float64((size + block - 1) / max(block, 1)) }
	tiles := up(p.M, cfg.BlockM) * up(p.N, cfg.BlockN) * float64(p.Batch)
	m, n, k := float64(cfg.BlockM), float64(cfg.BlockN), float64(cfg.BlockK)
	b.Epilogue = unit.Cycles(math.Ceil(tiles/c.units) * m * n * c.element)
	if p.Nest == (gemm.Nest{}) {
		return b
	}
	blocks := tiles * up(p.K, cfg.BlockK) // of all tiles; splits share them
	active := min(c.units, tiles*float64(max(1, cfg.SplitK)))
	b.Addresses = unit.Cycles(blocks * (m + n) * k * c.lookup / active)
	in, out := float64(p.DType.Bytes()), float64(p.Output().Bytes())
	b.Lines = per(blocks*m*k*in*c.touched[gemm.A]+blocks*k*n*in*c.touched[gemm.B]+
		float64(p.M)*float64(p.N)*float64(p.Batch)*out*c.touched[gemm.C], c.l2)
	return b
}

// cost returns a constant of the model, 0 if it does not state it.
func (c *counter) cost(name string) float64 { return c.d.Constant("besides_"+name, 0) }

// epilogue returns the cycles of the epilogue of an element.
func (c *counter) epilogue() (cycles float64) {
	e := c.p.Epilogue
	if e.Activation != gemm.Identity {
		cycles = c.cost(e.Activation.Single().String())
	}
	if e.Activation.Gated() {
		cycles = (cycles + c.cost("gate")) / 2 // for half of the elements
	}
	if e.Bias {
		cycles += c.cost("bias")
	}
	if e.Scales {
		cycles += c.cost("scales")
	}
	return cycles
}

// per divides bytes by a bandwidth. Where none is known there is no cost.
func per(bytes float64, b unit.BytesPerCycle) unit.Cycles {
	if b <= 0 {
		return 0
	}
	return unit.Cycles(bytes / float64(b))
}

// touched returns how many sectors the lanes of a warp touch in a tensor along a dimension, divided by how many they
// would touch if the elements were side by side, − 1.
func touched(p *gemm.Problem, d gemm.Dimension, o gemm.Operand, sector, lanes int) float64 {
	size := p.Type(o).Bytes()
	var sectors, dense float64
	seen := map[int]bool{}
	lane := 0
	for at := range p.Nest.Walk(d, o) {
		if lane == mostSampled {
			break
		}
		if lane%lanes == 0 {
			sectors += float64(len(seen))
			clear(seen)
			dense += float64(lanes*size) / float64(sector)
		}
		seen[at*size/sector] = true
		lane++
	}
	sectors += float64(len(seen))
	if rest := lane % lanes; rest != 0 { // the last warp has fewer lanes
		dense -= float64((lanes-rest)*size) / float64(sector)
	}
	return max(0, sectors/max(dense, 1)-1)
}
