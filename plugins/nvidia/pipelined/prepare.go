package pipelined

import (
	"cmp"
	"math"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
	stopwatch "github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined/terms"
)

// preparedKernel is what the model knows of a kernel before it knows the split of K and the sizes of the problem.
type preparedKernel struct {
	kernelTerms
	number int // of the kernels of a list
	// variants are without and with masks along K, which are needed if block_k does not divide K.
	variants [2]variantTerms
}

// preparedConfig is what it knows of a configuration beyond the kernel.
type preparedConfig struct {
	reject arch.Reason
	kernel *preparedKernel // in a list
	depth  float64         // of a K step of the CTAs that share a tile
	splits [2]splitTerms   // as preparedKernel.variants
}

// inputs are the terms of a configuration that are set by hand.
type inputs struct {
	kernelInputs
	variantInputs
	splitInputs
}

// prepare fills pc, except for its kernel, and k. If the configuration cannot be used, pc.reject says why, and the
// detail puts it in numbers. in[i] keeps the inputs of
// variants[i].
func (m *Model) prepare(
	pc *preparedConfig, k *preparedKernel, in *[2]inputs, p *gemm.Problem, c *gemm.Config,
) (detail string) {
	*in, *k = [2]inputs{}, preparedKernel{}
	pc.reject, pc.depth, pc.splits = "", 0, [2]splitTerms{}
	f, err := m.family(c)
	if err != nil {
		pc.reject = arch.ReasonModelRule
		return ""
	}
	pc.depth = float64(c.BlockK * c.SplitK)
	operands := kernel.OperandsOf(p).WithWidths(f, p)
	setInputs(&in[0].kernelInputs, p, c)
	loop := f.Loop(m.gpu, operands, *c)
	m.setLoop(&in[0].kernelInputs, loop)
	in[0].resident, in[0].persistent = model.One(f.Traits().Resident), model.One(f.Traits().Persistent)
	setCopies(&in[0].kernelInputs, f.Copies(m.gpu, operands, *c), operands, c)
	in[0].storeBytes = float64(operands.WidthC)
	if loop.StoreBytes > 0 {
		in[0].storeBytes = float64(loop.StoreBytes)
	}
	in[0].apart = max(loop.Apart, 1)
	in[0].reduceLaunches = float64(f.Reduction(*p, *c).Launches)
	in[0].familySlots, in[0].familyLatency = f.slots, f.latency+loop.Latency
	if t, ok := f.timed.Find(operands, c); ok {
		setTiming(&in[0].kernelInputs, &t)
	}
	in[1].kernelInputs = in[0].kernelInputs
	k.groupM = float64(c.GroupM)
	k.compute(&in[0], &m.device)

	needs := f.needs(m.gpu, operands, c)
	for masked := range k.variants {
		r := &needs[masked]
		in[masked].variantInputs = variantInputs{
			registers: float64(r.Registers), spillBytes: float64(r.SpillBytes), sharedBytes: float64(r.SharedMemory),
		}
		k.variants[masked].compute(&in[masked], &m.device, &k.kernelTerms)
	}
	pc.compute(&m.device, k, in, c.SplitK)
	if pc.reject, detail = f.reject(m.gpu, operands, c, needs); pc.reject == "" && operands.Narrow() {
		// What does not fit with the widest accesses is no candidate, whatever the problem.
		widest := kernel.OperandsOf(p)
		pc.reject, detail = f.Check(m.gpu, widest, *c, f.resources(m.gpu, widest, c, true))
	}
	return detail
}

// preparedSplit is a prepared configuration with its split of K and its other inputs.
type preparedSplit struct {
	preparedConfig
	splitK int
	in     [2]inputs
}

// prepareSplit prepares a configuration that differs from another in the split of K alone, and shares its kernel. It
// reports false if they differ in more: the sums of a split are added up by launches that a kernel without one does not
// need, and only kernels without one were timed.
func (m *Model) prepareSplit(pc *preparedConfig, other *preparedSplit, p *gemm.Problem, c *gemm.Config) bool {
	f, err := m.family(c)
	if err != nil || other.reject != "" || min(c.SplitK, other.splitK) <= 1 ||
		float64(f.Reduction(*p, *c).Launches) != other.in[0].reduceLaunches {
		return false
	}
	in := other.in
	pc.kernel, pc.depth = other.kernel, float64(c.BlockK*c.SplitK)
	pc.compute(&m.device, pc.kernel, &in, c.SplitK)
	return true
}

// compute fills splits.
func (pc *preparedConfig) compute(d *device, k *preparedKernel, in *[2]inputs, splitK int) {
	for masked := range pc.splits {
		in[masked].splitK = float64(splitK)
		pc.splits[masked].compute(&in[masked], d, &k.kernelTerms, &k.variants[masked])
	}
}

// needs is what a kernel needs without and with masks along K.
func (f *family) needs(g *gpu.Device, o kernel.Operands, c *gemm.Config) [2]kernel.Resources {
	return [2]kernel.Resources{f.resources(g, o, c, false), f.resources(g, o, c, true)}
}

// reject returns why a kernel that needs this cannot be used, in numbers, or no reason.
func (f *family) reject(
	g *gpu.Device, o kernel.Operands, c *gemm.Config, needs [2]kernel.Resources,
) (reason arch.Reason, detail string) {
	most := needs[0]
	if needs[1].SharedMemory > most.SharedMemory {
		most = needs[1]
	}
	return f.Check(g, o, *c, most)
}

func setInputs(in *kernelInputs, p *gemm.Problem, c *gemm.Config) {
	*in = kernelInputs{
		elementBytes: float64(p.DType.Bits()) / 8,
		outputBytes:  float64(p.Output().Bits()) / 8 * float64(p.Columns()) / float64(p.N), // for each element of A·B
		transA:       model.One(p.TransA()), transB: model.One(p.TransB()),
		blockM: float64(c.BlockM), blockN: float64(c.BlockN), blockK: float64(c.BlockK),
		numWarps: float64(c.NumWarps), numStages: float64(c.NumStages),
	}
}

func (m *Model) setLoop(in *kernelInputs, loop kernel.Loop) {
	in.wgmma, in.loadWaits = model.One(loop.WGMMA), float64(loop.LoadWaits)
	in.conversions = float64(loop.Conversions)
	in.serial, in.interleaved = model.One(loop.Serial), model.One(loop.Interleaved)
	in.wgmmaM, in.wgmmaN = float64(cmp.Or(loop.Rows, gpu.WGMMAM)), float64(loop.Columns)
	in.tensorColumns = float64(loop.TensorMemory)
	in.fma = model.One(loop.Multiplies == gemm.FP32)
	in.rate, in.peak = m.rates[loop.Multiplies].ofFP16, m.rates[loop.Multiplies].peak
	in.instructionK = gpu.StepBytes / float64(loop.Multiplies.Bytes())
	in.warpsM, in.warpsN, in.warpsK = float64(loop.WarpsM), float64(loop.WarpsN), float64(loop.WarpsK)
	in.lateCopies, in.wraps = model.One(loop.LateCopies), model.One(loop.Wraps)
	in.repeatM, in.repeatN = model.One(loop.RepeatM), model.One(loop.RepeatN)
	in.sharers, in.sharersA = float64(max(loop.Sharers, 1)), float64(max(loop.SharersA, 1))
	in.streams = model.One(loop.Streams)
}

// setCopies counts the instructions of the CTA's warps.
func setCopies(in *kernelInputs, copies kernel.Copies, o kernel.Operands, c *gemm.Config) {
	in.asyncA, in.asyncB = model.One(copies.AsyncA), model.One(copies.AsyncB)
	add := func(count int, async, alongK, transposed bool) {
		switch {
		case async:
		case alongK:
			in.syncCopies += float64(count * c.NumWarps)
		default:
			in.crossCopies += float64(count * c.NumWarps)
		}
		if transposed {
			in.transposedCopies += float64(count * c.NumWarps)
		}
	}
	add(copies.CountA, copies.AsyncA, o.AMajor == gemm.MajorK, copies.TransposedA)
	add(copies.CountB, copies.AsyncB, o.BMajor == gemm.MajorK, copies.TransposedB)
}

func setTiming(in *kernelInputs, t *kernel.Timing) {
	in.timed, in.timedCtas = 1, t.CTAs
	in.one2048, in.one6144 = t.One[0], t.One[1]
	in.chip2048, in.chip6144 = t.Chip[0], t.Chip[1]
	in.fullChip2048, in.fullChip6144 = t.Full[0], t.Full[1]
}

// resources is what a kernel needs, as the compiler reports it where that is known, and predicted elsewhere. A report
// of more registers than the device gives a thread, as after an override, is of another device.
func (f *family) resources(g *gpu.Device, o kernel.Operands, c *gemm.Config, masked bool) kernel.Resources {
	if r, ok := f.compiled.Find(o, c, masked); ok && r.Registers <= g.RegisterLimit(32*c.NumWarps) {
		return r
	}
	return f.Resources(g, o, *c, masked)
}

// shape is a problem without its types and layout.
type shape struct {
	sizes
	groups gemm.Groups
	blockM float64 // of groupTiles
}

func (m *Model) shape(p *gemm.Problem) shape {
	count, rows := p.Products()
	s := shape{groups: p.Groups, sizes: sizes{
		m: rows, n: float64(p.N), k: float64(p.K), batch: float64(count),
		misalignedA: misaligned(p, gemm.A), misalignedB: misaligned(p, gemm.B),
	}}
	if m.library != nil {
		s.vendor = m.vendorOf(p)
	}
	bytes := s.batch * ((s.m+s.n)*s.k*float64(p.DType.Bits()) + s.m*s.n*float64(p.Output().Bits())) / 8
	s.evicted = float64(m.clocked.Evicted(bytes)-m.h200.Evicted(bytes)) * float64(m.Description.Clock)
	s.compute(&m.device)
	return s
}

// vendorTime is the least time of a problem by what the vendor's library takes, in cycles.
type vendorTime struct {
	problem gemm.Problem
	cycles  float64
}

// vendorOf returns the least time of a problem. Candidates, the mapping of the pick and its terms are asked about one
// problem after another, so the last time is kept.
func (m *Model) vendorOf(p *gemm.Problem) float64 {
	if last := m.vendor.Load(); last != nil && last.problem == *p {
		return last.cycles
	}
	even := *p // groups as a batch of their average
	count, rows := p.Products()
	even.Groups, even.M, even.Batch = gemm.Groups{}, max(int(math.Round(rows)), 1), max(count, 1)
	least := terms.LibraryLead * m.library(even)
	cycles := float64(m.clocked.Convert(least, &even, stopwatch.Model, stopwatch.Events)) * float64(m.Description.Clock)
	m.vendor.Store(&vendorTime{*p, cycles})
	return cycles
}

// misaligned is the largest offset at which a row of an operand begins in a cache line ÷ the line. An address that is
// aligned to the widest access is that of an allocation, which begins with a line. The stride of a batch is a multiple
// of the leading dimension.
func misaligned(p *gemm.Problem, o gemm.Operand) float64 {
	offsets := uint(p.LD(o)*p.Type(o).Bytes()) | gpu.LineBytes
	if align := p.Align(o); align < gemm.MaxVector {
		offsets |= uint(align)
	}
	return 1 - float64(offsets&-offsets)/gpu.LineBytes
}

// grid fills g. The tiles of groups are counted for each height of a tile, which most neighbours in a list share.
func (s *shape) grid(g *gridTerms, d *device, k *preparedKernel) {
	if s.groups != (gemm.Groups{}) && s.blockM != k.blockM {
		s.blockM = k.blockM
		s.groupTiles = float64(s.groups.Tiles(int(k.blockM)))
	}
	g.compute(d, &s.sizes, &k.kernelTerms)
}

// masked is 1 if the K steps of the CTAs that share a tile do not divide K, else 0.
func (s *sizes) masked(c *preparedConfig) int {
	if steps := s.k / c.depth; steps != math.Trunc(steps) {
		return 1
	}
	return 0
}
