package wgmma

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// Spec is everything that the text of a kernel depends on, and the number of SMs to launch it on.
type Spec struct {
	// DType is the element type of A and B: FP16, BF16, FP8 or FP8E5M2. Out is the type of C: FP16, BF16 or FP32. Sums are
	// FP32.
	DType, Out gemm.DType
	// AMajor and BMajor say along which dimension A and B are contiguous. C is row-major.
	AMajor, BMajor gemm.Major
	// Addressable says that tensor maps can describe A and B: addresses and distances of rows are multiples of 16 bytes.
	Addressable bool
	// Adds says that C is added to, because beta is not zero.
	Adds bool
	// TilesC says that the copy engine stores C: a tensor map can describe it, its rows end at multiples of 16 bytes,
	// its elements have 16 bits, and a tile has 64 columns of C or more, of Cᵀ a multiple of them.
	TilesC bool
	// PairsC says that two neighbours of C, the first at an even column, can be stored at once. A thread of a kernel that
	// multiplies Cᵀ has none.
	PairsC bool
	// Epilogue is what is done to C before it is stored.
	Epilogue gemm.Epilogue
	// Config is the configuration. GroupM and AxisSkew do not change the text, and of SplitK without a tree only whether
	// it is above one does.
	Config gemm.Config
	// Processors is the number of SMs, 0 if unknown. It does not change the text.
	Processors int
}

var _ gemmgen.Program = Spec{}

// SpecFor returns the specification that computes a call with results of type out.
func SpecFor(call gemmgen.Call, out gemm.DType, c gemm.Config) Spec {
	p := call.Problem
	a, b, vectorC := call.Vectors(out)
	_, _, alignC := call.Alignment(out)
	return Spec{
		DType: p.DType, Out: out, AMajor: p.AMajor, BMajor: p.BMajor, Addressable: min(a, b) >= mapAlign,
		Adds:   call.Beta != 0,
		TilesC: Tiles(alignC, out, p.Epilogue, c),
		PairsC: Pairs(vectorC, out, c), Epilogue: p.Epilogue, Config: c,
	}
}

// Tiles reports whether the copy engine can store C, whose rows begin and end at multiples of so many bytes: where a
// row ends within 16 bytes, the engine overwrites what follows (observed on an H200). The four warps that have
// multiplied Cᵀ store together, in boxes that share nothing, which they cannot where each adds up the parts of K by
// itself.
func Tiles(alignC int, out gemm.DType, e gemm.Epilogue, c gemm.Config) bool {
	columns := columnsOfC(e, c)
	fits := columns >= storeN && columns%(mapAlign/out.Bytes()) == 0
	if Turned(c) {
		fits = columns%storeN == 0 && c.SplitK < 2 && !Streams(c)
	}
	return alignC >= mapAlign && out.Bytes() == 2 && fits
}

// columnsOfC returns the columns of C that a tile has.
func columnsOfC(e gemm.Epilogue, c gemm.Config) int {
	if e.Activation.Gated() {
		return c.BlockN / 2
	}
	return c.BlockN
}

// Pairs reports whether a thread stores two neighbours of C at once. The address and the rows of C are aligned to so
// many bytes.
func Pairs(vectorC int, out gemm.DType, c gemm.Config) bool {
	return vectorC >= 2*out.Bytes() && !Turned(c)
}

// mapAlign is what addresses and strides of a tensor map must be multiples of. Source: CUDA driver API,
// cuTensorMapEncodeTiled.
const mapAlign = 16

// Key implements gemmgen.Program.
func (s Spec) Key() any { return s.key() }

// key returns the specification without what the text does not depend on.
func (s Spec) key() Spec {
	s.Config.GroupM, s.Config.Kernel, s.Processors = 0, Name, 0
	if Leaves(s.Config) == 1 {
		s.Config.SplitK = min(s.Config.SplitK, 2)
	}
	if !Skewed(s.Config) {
		s.Config.Axes, _ = s.Config.Axes.With(AxisSkew, "") // it only becomes shorter
	}
	s.PairsC = s.PairsC && !s.TilesC
	return s
}

// geometry is how a CTA's work is laid out over warpgroups, registers and shared memory.
type geometry struct {
	// turned says that the warpgroups multiply Cᵀ. columns are the columns of a multiplication.
	turned  bool
	columns int
	// consumers are the warpgroups that multiply. tiles is how many tiles of 64×columns each of them has, sums the
	// registers for these.
	consumers, tiles, sums int
	threads                int
	// cluster is the CTAs per cluster. clusterM of them share the copies of B, clusterN the copies of A.
	cluster, clusterM, clusterN int
	// slabs is how many rows of 128 bytes make a block's indices along K, for operands that are contiguous along K.
	slabs int
	// aBytes and bBytes are the operand tiles of one stage, stageBytes both. The barriers lie behind the stages.
	aBytes, bBytes, stageBytes, barriers, sharedBytes int
	// parts are the registers for the products of a block along K, which are added to the sums in fp32. It is 0 where the
	// tensor cores add them.
	parts int
	// inRegisters are the groups of four sums of a thread that wait in registers in the tree over the leaves of K,
	// inShared those that wait in shared memory, and inMemory those that wait in the workspace. In shared memory the first
	// staged have the place of what is staged of C, and the others begin at waiting.
	inRegisters, inShared, inMemory, staged, waiting int
	// registers are those of a thread that multiplies, all of them.
	registers int
	// blockC is the columns of C that a tile has, tilesC how many of the tiles are left of a warpgroup that multiplies Cᵀ:
	// a gate and what it is multiplied with lie blockC apart. loads is how many elements of R or C a thread loads before
	// it adds one.
	blockC, tilesC, loads int
	// staging is where the warps that multiply put what the copy engine stores, each two buffers. If they multiply Cᵀ, the
	// buffers are the buffers of a warpgroup.
	staging int
}

const (
	warpgroup = 128
	// rowBytes is a row of an operand tile in shared memory: the width of the swizzle.
	rowBytes = 128
	// tileM is the rows of a multiplication, stepBytes its indices along K.
	tileM, stepBytes = 64, 32
	// swizzleBytes is the period of the swizzle, to which operand tiles are aligned.
	swizzleBytes = 1024
	swizzleRows  = swizzleBytes / rowBytes
	barrierBytes = 8
	// A warp stores 16 rows of 64 columns at once.
	storeM, storeN = 16, 64
	storeBytes     = storeM * rowBytes
	// A warpgroup that has multiplied Cᵀ stores 32 rows of 64 columns of C at once.
	turnedM     = 32
	turnedBytes = turnedM * rowBytes
)

// Turned reports whether the warpgroups multiply Cᵀ = Bᵀ·Aᵀ, so that the 64 rows of an instruction lie along N: where
// block_m is not a multiple of 64.
func Turned(c gemm.Config) bool { return c.BlockM%tileM != 0 }

// rows returns the rows of the tile that the warpgroups share.
func rows(c gemm.Config) int {
	if Turned(c) {
		return c.BlockN
	}
	return c.BlockM
}

// Columns returns the columns of a multiplication, which has 64 rows.
func Columns(c gemm.Config) int {
	if Turned(c) {
		return c.BlockM
	}
	return c.BlockN
}

// registerSplit is how many registers a thread has with several consumers: at the start all have as many, then the
// producer gives up most of its own to the consumers.
type registerSplit struct{ start, producer, consumer int }

// registerSplits: two consumers, 128·40 + 256·232 = 384·168; three consumers, 128·32 + 384·160 = 512·128.
var registerSplits = map[int]registerSplit{2: {168, 40, 232}, 3: {128, 32, 160}}

const (
	// otherRegisters is an allowance for addresses, descriptors, counters and predicates.
	otherRegisters = 36
	// activationRegisters is what an activation with an exponential needs, where no other registers are free.
	activationRegisters = 8
	// A thread loads so many elements of R or C before it adds one, according to its free registers.
	leastLoads, mostLoads = 4, 32
	// instructionRegisters are those that a multiplication needs besides its sums. Whatever the consumers have later, the
	// assembler wants them within the registers that a thread has at the start (observed with ptxas 13.0).
	instructionRegisters = 26
)

// Consumers is how many warpgroups multiply; another one copies.
func Consumers(numWarps int) int { return numWarps/4 - 1 }

// Cluster returns the CTAs of a cluster of a configuration along M and along N, zeros if it has another value, both
// axes, or an axis of another family.
func Cluster(c gemm.Config) (alongM, alongN int) {
	alongM, alongN = 1, 1
	for name, value := range c.Axes.All() {
		switch {
		case name == AxisCluster && slices.Contains(clusters, value):
			m, n, both := strings.Cut(value, "x")
			alongM, _ = strconv.Atoi(m)
			if both {
				alongN, _ = strconv.Atoi(n)
			}
		case name == AxisClusterN && slices.Contains(clustersN, value) && (value == "1" || alongM == 1):
			if value != "1" {
				alongN, _ = strconv.Atoi(value)
			}
		case name == AxisStreamK && slices.Contains(streams, value), name == AxisSkew && slices.Contains(skews, value),
			name == AxisPromote && slices.Contains(promotions, value), name == AxisTree && slices.Contains(trees, value):
		default:
			return 0, 0
		}
	}
	return alongM, alongN
}

// Streams reports whether the CTAs share the tiles behind the last full wave along K.
func Streams(c gemm.Config) bool {
	on, _ := c.Axes.Get(AxisStreamK)
	return on == streams[1]
}

// Skewed reports whether tiles in a single row or column begin at different places along K.
func Skewed(c gemm.Config) bool {
	value, given := c.Axes.Get(AxisSkew)
	return (!given || value == skews[1]) && Leaves(c) == 1
}

// Leaves returns in how many equal parts K is summed before these sums are added in a binary tree.
func Leaves(c gemm.Config) int {
	value, _ := c.Axes.Get(AxisTree)
	n, _ := strconv.Atoi(value)
	return max(n, 1)
}

// Promotes reports whether the sums of fp8 are added in fp32 after each block along K.
func Promotes(c gemm.Config) bool {
	on, _ := c.Axes.Get(AxisPromote)
	return on == promotions[1]
}

// layout lays out the work of a CTA. If the configuration does not belong to the family, the reason says why.
func (s *Spec) layout() (g geometry, reason arch.Reason, detail string) {
	c := &s.Config
	if reason, detail = s.belongs(); reason != "" {
		return g, reason, detail
	}
	g.turned, g.columns = Turned(*c), Columns(*c)
	g.blockC = columnsOfC(s.Epilogue, *c)
	g.consumers = Consumers(c.NumWarps)
	g.tiles = rows(*c) / tileM / g.consumers
	g.tilesC = g.tiles * g.blockC / c.BlockN
	g.sums = g.tiles * g.columns / 2
	if Promotes(*c) {
		g.parts = g.sums
	}
	registers := target.RegistersPerThread
	if split, several := registerSplits[g.consumers]; several {
		registers = split.consumer
	}
	g.registers = registers
	g.loads = min(max(registers-g.sums-otherRegisters-activationRegisters, leastLoads), mostLoads)
	g.threads = 32 * c.NumWarps
	g.clusterM, g.clusterN = Cluster(s.Config)
	g.cluster = g.clusterM * g.clusterN
	g.slabs = c.BlockK * s.DType.Bytes() / rowBytes
	g.aBytes = c.BlockM * rowBytes * g.slabs
	if s.AMajor == gemm.MajorM {
		g.aBytes = slices64(c.BlockM) * c.BlockK * rowBytes
	}
	g.bBytes = c.BlockN * rowBytes * g.slabs
	if s.BMajor == gemm.MajorN {
		g.bBytes = slices64(c.BlockN) * c.BlockK * rowBytes
	}
	g.stageBytes = g.aBytes + g.bBytes
	g.staging = c.NumStages * g.stageBytes
	g.barriers = g.staging
	switch {
	case s.TilesC && g.turned:
		g.barriers += 2 * turnedBytes * g.consumers
	case s.TilesC:
		g.barriers += 2 * storeBytes * 4 * g.consumers
	}
	g.waiting = g.barriers + 2*barrierBytes*c.NumStages
	g.staged = (g.barriers - g.staging) / (fourBytes * g.consumers)
	g.places(s.levels())
	g.sharedBytes = g.waiting + max(0, g.inShared-g.staged)*fourBytes*g.consumers
	return g, "", ""
}

// operandTypes are the types of A and B, as PTX names them.
var operandTypes = map[gemm.DType]string{
	gemm.FP16: "f16", gemm.BF16: "bf16", gemm.FP8: "e4m3", gemm.FP8E5M2: "e5m2",
}

// slices64 is how many slices of 64 cover n.
func slices64(n int) int { return (n + 63) / 64 }

// belongs returns why the types or the configuration are outside the family, or no reason if they are inside.
func (s *Spec) belongs() (reason arch.Reason, detail string) {
	c := &s.Config
	alongM, alongN := Cluster(*c)
	switch {
	case operandTypes[s.DType] == "":
		return arch.ReasonAtomShape, fmt.Sprintf("the family multiplies fp16, bf16 and fp8, not %s", s.DType)
	case s.DType.Bytes() == 1 && (s.AMajor != gemm.MajorK || s.BMajor != gemm.MajorK):
		return arch.ReasonAtomShape, "wgmma multiplies fp8 only if A and B are contiguous along K"
	case s.Out != gemm.FP16 && s.Out != gemm.BF16 && s.Out != gemm.FP32:
		return arch.ReasonAtomShape, fmt.Sprintf("the epilogue writes fp16, bf16 or fp32, not %s", s.Out)
	case !isBlock(c.BlockM), !isBlock(c.BlockN), !slices.Contains(blocksK, c.BlockK),
		Turned(*c) && c.BlockN%tileM != 0, c.BlockK*s.DType.Bytes() < rowBytes:
		return arch.ReasonAtomShape, fmt.Sprintf("tile %dx%dx%d of %s: block_m and block_n are multiples of 8 up to 256, "+
			"one of them of 64, and block_k is 64 or 128, for fp8 128", c.BlockM, c.BlockN, c.BlockK, s.DType)
	case s.Adds && (s.Epilogue.Residual || s.Epilogue.Activation.Gated()):
		return arch.ReasonModelRule, fmt.Sprintf("C is added before the activation, which %s leaves no place for", s.Epilogue)
	case Promotes(*c) && s.DType.Bytes() != 1:
		return arch.ReasonModelRule, fmt.Sprintf("%s is for fp8: of %s, the sums are fp32", AxisPromote, s.DType)
	case !slices.Contains(warps, c.NumWarps):
		return arch.ReasonWarps, fmt.Sprintf("%d warps: the family has 8, 12 or 16, of which 4 only copy", c.NumWarps)
	case rows(*c)/tileM%Consumers(c.NumWarps) != 0:
		return arch.ReasonWarps, fmt.Sprintf("%d warps that multiply cannot share %d rows: each 4 have a multiple of %d",
			c.NumWarps-4, rows(*c), tileM)
	case s.Epilogue.Activation.Gated() && alongM > 2:
		return arch.ReasonModelRule, fmt.Sprintf("with %s, one or two CTAs along M copy the two halves of B, not %d",
			s.Epilogue, alongM)
	case s.Epilogue.Activation.Gated() && s.BMajor != gemm.MajorK:
		return arch.ReasonModelRule, fmt.Sprintf("%s needs a B that is contiguous along K", s.Epilogue)
	case s.Epilogue.Activation.Gated() && c.BlockN%s.gateStep() != 0:
		return arch.ReasonAtomShape, fmt.Sprintf("block_n %d is no multiple of %d, as %s needs it with this block_m and "+
			"these warps", c.BlockN, s.gateStep(), s.Epilogue)
	case c.NumStages < leastStages || c.NumStages > mostStages:
		return gemmgen.ReasonStages, fmt.Sprintf("%d stages: the family has %d to %d", c.NumStages, leastStages, mostStages)
	case alongM == 0:
		return arch.ReasonModelRule, fmt.Sprintf("the family has the axes %s, of %s, or %s, of 1, 2 or 4, %s, of %s, and "+
			"%s, %s and %s, of 0 or 1: not %s", AxisCluster, strings.Join(clusters, ", "), AxisClusterN, AxisTree,
			strings.Join(trees, ", "), AxisStreamK, AxisSkew, AxisPromote, c.Axes)
	case alongM*alongN > 2 && c.NumStages < leastStagesOfCluster:
		return gemmgen.ReasonStages, fmt.Sprintf("%d stages: a cluster of %dx%d CTAs has at least %d", c.NumStages, alongM,
			alongN, leastStagesOfCluster)
	case Streams(s.Config) && c.SplitK > 1:
		return arch.ReasonModelRule, "stream_k splits K by itself: split_k has to be 1"
	case Leaves(*c) > 1 && (Streams(*c) || Leaves(*c)%max(c.SplitK, 1) != 0):
		return arch.ReasonModelRule, fmt.Sprintf("%d CTAs cannot share %d leaves of K: split_k divides %s, and stream_k is 0",
			c.SplitK, Leaves(*c), AxisTree)
	case s.BMajor == gemm.MajorK && c.BlockN%(alongM*swizzleRows) != 0:
		return arch.ReasonModelRule, fmt.Sprintf("block_n %d is no multiple of %d, which a cluster of %d along M needs "+
			"where B is contiguous along K", c.BlockN, alongM*swizzleRows, alongM)
	case s.AMajor == gemm.MajorK && c.BlockM%(alongN*swizzleRows) != 0:
		return arch.ReasonModelRule, fmt.Sprintf("block_m %d is no multiple of %d, which a cluster of %d along N needs "+
			"where A is contiguous along K", c.BlockM, alongN*swizzleRows, alongN)
	case !s.Addressable:
		return ReasonTensorMap, "TMA copies A and B only if their addresses and the distances of their rows are " +
			"multiples of 16 bytes"
	}
	return "", ""
}

// gateStep returns what block_n is a multiple of with a gated activation: a thread has a gate and what it is multiplied
// with, in groups of 8 columns or, of Cᵀ, in tiles of 64 rows.
func (s *Spec) gateStep() int {
	if Turned(s.Config) {
		return 2 * tileM * Consumers(s.Config.NumWarps)
	}
	return 16
}

func isBlock(n int) bool { return n >= blockStep && n <= mostBlock && n%blockStep == 0 }

// ReasonTensorMap rejects calls whose matrices no tensor map can describe.
const ReasonTensorMap arch.Reason = "tensor_map"

// Resources is what a kernel of the family needs, known before it is compiled.
type Resources struct {
	Threads int
	// Registers are what the threads that multiply may use, on average over the CTA.
	Registers    int
	SharedMemory unit.Bytes
	// Consumers are the warpgroups that multiply, Tiles the tiles of 64 rows of each.
	Consumers, Tiles int
}

// Resources returns what a kernel needs on any device, or why the configuration does not belong to the family.
func (s *Spec) Resources() (r Resources, reason arch.Reason, detail string) {
	g, reason, detail := s.layout()
	if reason != "" {
		return r, reason, detail
	}
	r = Resources{
		Threads: g.threads, Registers: min(g.sums+4*g.inRegisters+g.parts+otherRegisters, target.RegistersPerThread),
		SharedMemory: unit.Bytes(g.sharedBytes),
		Consumers:    g.consumers, Tiles: g.tiles,
	}
	if g.consumers > 1 {
		r.Registers = registerSplits[g.consumers].start
	}
	return r, "", ""
}

// Check returns why a configuration does not belong to the family or exceeds the limits of a device, or no reason.
func (s *Spec) Check(limits gemmgen.Limits) (reason arch.Reason, detail string) {
	g, reason, detail := s.layout()
	if reason != "" {
		return reason, detail
	}
	if need := (Family{}).Target(); limits.Target != (target.Target{}) && !limits.Target.Covers(need) {
		return arch.ReasonAtomShape, fmt.Sprintf("wgmma needs %s, the device has %s", need, limits.Target)
	}
	available := limits.Registers(g.threads)
	if split := registerSplits[g.consumers]; g.consumers > 1 && available >= split.start {
		available = min(split.consumer, limits.RegistersPerThread)
	}
	other := otherRegisters
	if a := s.Epilogue.Activation; g.consumers == 1 && a >= gemm.QuickGELU {
		other += activationRegisters
	}
	if need := g.columns/2 + instructionRegisters; need > limits.Registers(g.threads) {
		return arch.ReasonRegisters, fmt.Sprintf(
			"a multiplication of 64x%d needs %d registers per thread, of %d threads each has %d",
			g.columns, need, g.threads, limits.Registers(g.threads))
	}
	if need := g.sums + g.parts + other; need > available {
		return arch.ReasonRegisters, fmt.Sprintf(
			"%d tiles of 64x%d per warpgroup need about %d registers per thread, %d available",
			g.tiles, g.columns, need, available)
	}
	return gemmgen.CheckShared(limits.SharedMemory, unit.Bytes(g.sharedBytes))
}

// name is the kernel's entry point: every field of the specification's key.
func (s Spec) name() string {
	c := s.Config
	alongM, alongN := Cluster(c)
	name := fmt.Sprintf(Name+"_%dx%dx%d_w%d_s%d_c%dx%d_%s_%s_%c%c", c.BlockM, c.BlockN, c.BlockK, c.NumWarps,
		c.NumStages, alongM, alongN, s.DType, s.Out, s.AMajor, s.BMajor)
	switch {
	case s.TilesC:
		name += "_tiles"
	case s.PairsC:
		name += "_pairs"
	}
	if s.Adds {
		name += "_add"
	}
	if c.SplitK > 1 {
		name += "_split"
	}
	if Streams(s.Config) {
		name += "_stream"
	}
	if Promotes(c) {
		name += "_promote"
	}
	if Leaves(c) > 1 {
		name += fmt.Sprintf("_tree%dx%d", c.SplitK, Leaves(c)/c.SplitK)
	}
	return name + gemmgen.EpilogueSuffix(s.Epilogue)
}
