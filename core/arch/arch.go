// Package arch defines what an architecture model is: the interfaces Architecture and MemoryHierarchy, and the data
// that crosses them. The same interfaces are implemented by a model in process and by a client of a plugin, with
// bit-equal results.
package arch

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// Architecture is one GPU architecture on one device under one model. Implementations are immutable after they are
// opened and safe for concurrent use. Given the same arguments every method returns the same bits.
//
// Errors are *diag.Error values of kind Input (the problem cannot be modelled, and why) or Plugin (a remote
// architecture could not answer).
type Architecture interface {
	// Describe returns the architecture's identity, resolved hardware numbers, term schema and ordering. The result is
	// shared: callers must not change it.
	Describe() *Description

	// Hierarchy returns the memory levels.
	Hierarchy() MemoryHierarchy

	// Candidates lists the configurations of a space for a problem's types and layout, in the model's candidate order,
	// and the rejected ones with the reason. It depends on the problem's DType, AMajor and BMajor, not on its sizes;
	// what a size rules out is reported by Estimate. The result may be shared: callers must not change it.
	Candidates(ctx context.Context, p gemm.Problem, s Space) (*Candidates, error)

	// Estimate fills dst[i] for cfgs[i]; dst must be as long as cfgs. Each estimate depends on its own configuration
	// only, not on its neighbours or their order. An infeasible configuration gets a reason and no number.
	Estimate(ctx context.Context, dst []Estimate, p gemm.Problem, cfgs []gemm.Config) error

	// Terms fills dst with one row per configuration, of one value per Description.Terms in that order, row after row;
	// dst must have len(cfgs)·len(Terms) elements. Infeasible configurations are evaluated too, with whatever the
	// formulas give; a total that the model itself rejects is RejectedTotal.
	Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error

	// Mapping is phase two of the selection: the launch order for a configuration.
	Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (Mapping, error)
}

// MemoryHierarchy is the ordered list of memory levels, near to far (L2 → DRAM; L2 → MALL → HBM).
type MemoryHierarchy interface {
	// Levels describes the levels, near to far. The result is shared: callers must not change it.
	Levels() []Level
}

// Level is one level of the memory hierarchy.
type Level struct {
	Name string // "L2", "MALL", "DRAM", "HBM"
	// Capacity is zero for the last level, which holds everything.
	Capacity unit.Bytes
	// Latency is the fixed cost that the model adds to a transfer from this level.
	Latency unit.Cycles
	// Partitions is the number of equal, separate caches that the level is split into: 1 if the whole die shares it,
	// the number of XCDs if each has its own.
	Partitions int
	// Bandwidth is what the level delivers as a function of the number of active SMs or CUs.
	Bandwidth Bandwidth
	// Bound is what limits a kernel that waits for this level.
	Bound Bound
}

// Bandwidth is peak bandwidth times a fraction that depends on how many of the device's units are active.
type Bandwidth struct {
	Peak unit.BytesPerCycle
	// Units is the number of SMs or CUs of the device.
	Units int
	// Linear says that the fraction is active/Units. Otherwise it is min((C0·a² + C1·a) + C2, 1), and 1 when a > Units.
	Linear     bool
	C0, C1, C2 float64
}

// Fraction returns the share of Peak that `active` units reach.
func (b Bandwidth) Fraction(active int) float64 {
	a := float64(active)
	if b.Linear {
		return a / float64(b.Units)
	}
	if active > b.Units {
		return 1
	}
	// The conversions keep Go from fusing a product into the addition, so that every platform rounds alike.
	return min(float64(float64(b.C0*a*a)+float64(b.C1*a))+b.C2, 1)
}

// At returns Peak · Fraction(active).
func (b Bandwidth) At(active int) unit.BytesPerCycle {
	return unit.BytesPerCycle(float64(b.Peak) * b.Fraction(active))
}

// Bound names the resource that limits a kernel.
type Bound uint8

// The bounds.
const (
	BoundUnknown Bound = iota
	BoundCompute
	BoundL2
	BoundMALL
	BoundDRAM
	BoundLatency
)

var boundNames = [...]string{"unknown", "compute", "l2", "mall", "dram", "latency"}

// String returns the bound's name in JSON and on the terminal.
func (b Bound) String() string {
	if int(b) < len(boundNames) {
		return boundNames[b]
	}
	return boundNames[BoundUnknown]
}

// Estimate is a prediction for one configuration.
type Estimate struct {
	// Cycles is the predicted total, always finite and positive when Reject is empty, zero otherwise.
	Cycles unit.Cycles
	// Bound says what limits it.
	Bound Bound
	// Reject is empty for a feasible configuration.
	Reject Reason
}

// RejectedTotal stands in Terms for the total of a configuration that the model rejects by one of its own rules.
const RejectedTotal = math.MaxFloat64

// Reason is a short snake_case name for why a configuration cannot be used. Plugins may add their own.
type Reason string

// The reasons that the built-in models give.
const (
	ReasonSharedMemory Reason = "shared_memory" // the operand tiles do not fit
	ReasonRegisters    Reason = "registers"     // the accumulators do not fit
	ReasonAtomShape    Reason = "atom_shape"    // the tile is no multiple of the matrix instruction
	ReasonWarps        Reason = "warps"         // the warps cannot share the tile
	ReasonModelRule    Reason = "model_rule"    // a rule of the model drops it for this problem
)

// Space says which configurations to consider. Empty axes mean the model's own.
type Space struct {
	// Kernel is the kernel family; empty means Description.Kernels[0].
	Kernel                                              string
	BlockM, BlockN, BlockK, NumWarps, NumStages, SplitK []int
}

// maxSpace bounds the size of a space, so that a request cannot exhaust the memory.
const maxSpace = 1 << 20

// Enumerate lists every configuration of the space, with the axes that it leaves empty taken from defaults: block_m
// slowest, then block_n, block_k, num_warps, num_stages and split_k. A number that no configuration can have, or a space
// of more than a million configurations, is an error of kind diag.Input.
func (s Space) Enumerate(defaults Space) ([]gemm.Config, error) {
	type axis struct {
		values []int
		set    func(*gemm.Config, int)
	}
	own := func(values, fallback []int) []int {
		if len(values) > 0 {
			return values
		}
		return fallback
	}
	axes := []axis{
		{own(s.BlockM, defaults.BlockM), func(c *gemm.Config, v int) { c.BlockM = v }},
		{own(s.BlockN, defaults.BlockN), func(c *gemm.Config, v int) { c.BlockN = v }},
		{own(s.BlockK, defaults.BlockK), func(c *gemm.Config, v int) { c.BlockK = v }},
		{own(s.NumWarps, defaults.NumWarps), func(c *gemm.Config, v int) { c.NumWarps = v }},
		{own(s.NumStages, defaults.NumStages), func(c *gemm.Config, v int) { c.NumStages = v }},
		{own(s.SplitK, defaults.SplitK), func(c *gemm.Config, v int) { c.SplitK = v }},
	}
	total := 1
	for _, a := range axes {
		if total *= len(a.values); total > maxSpace {
			return nil, diag.Inputf("the configuration space has more than %d configurations", maxSpace).Do("shorten an axis")
		}
	}
	configs := make([]gemm.Config, total)
	for i := range configs {
		configs[i].Kernel = defaults.Kernel
		rest := i
		for j := len(axes) - 1; j >= 0; j-- {
			values := axes[j].values
			axes[j].set(&configs[i], values[rest%len(values)])
			rest /= len(values)
		}
		if err := configs[i].Validate(); err != nil {
			return nil, err
		}
	}
	return configs, nil
}

// Candidates is a candidate list.
type Candidates struct {
	// Configs are the usable configurations in the model's order.
	Configs []gemm.Config
	// Rejected are the others, by ascending Position.
	Rejected []Rejection
}

// Rejection is a configuration that cannot be used, and why.
type Rejection struct {
	Config gemm.Config
	// Position is its place in the whole enumeration, usable and rejected together.
	Position int
	Reason   Reason
	// Detail says it in numbers, as "needs 131072 B of shared memory, 101376 B available".
	Detail string
}

// Mapping is a launch order: which output tile each CTA computes.
type Mapping struct {
	// GroupM is GROUP_SIZE_M (AMD: WGM).
	GroupM int
	// XCDs is the number of dies that consecutive workgroups are dealt to (AMD: XCC), 0 where the die is monolithic.
	XCDs int
	// Chunk is the number of consecutive workgroups that one die gets at a time, 0 for the default.
	Chunk int
}

// Rung says how much the model knows about the device and the kernels, low to high.
type Rung string

// The ladder of knowledge.
const (
	RungSpec          Rung = "spec"          // data sheet
	RungCalibrated    Rung = "calibrated"    // microbenchmarks of the device
	RungCompiled      Rung = "compiled"      // registers, spills, shared memory as the compiler reports them
	RungCharacterized Rung = "characterized" // one short timing pass over the kernel family
)

// Rungs lists the ladder of knowledge, low to high.
func Rungs() []Rung { return []Rung{RungSpec, RungCalibrated, RungCompiled, RungCharacterized} }

// Description is everything about an opened architecture that does not depend on a problem.
type Description struct {
	Arch, Vendor       string
	Device, DeviceName string
	// Aliases are other names of this architecture and device.
	Aliases []string
	// Model is the model that was opened, Models what there is, best first.
	Model  string
	Models []string
	// Kernels are the kernel families that the model predicts, default first.
	Kernels []string
	Rung    Rung

	// UnitName is what the vendor calls a compute unit ("SM", "CU"); Units is how many there are, Partitions how many
	// dies (XCDs) they are spread over.
	UnitName   string
	Units      int
	Partitions int
	// Clock converts cycles to seconds; ClockRung says what that number stands on.
	Clock     unit.Hertz
	ClockRung Rung
	// SharedMemory is what one CTA (workgroup) may use. RegisterFile is per SM or CU in 32-bit registers,
	// RegistersPerThread the cap.
	SharedMemory       unit.Bytes
	RegisterFile       int
	RegistersPerThread int
	// Peak is the data sheet's dense matrix rate per type. A type that the model takes has an entry in Atoms.
	Peak []PeakRate
	// Atoms are the matrix instructions that the model uses by default, one per type it takes.
	Atoms []Atom
	// Params are the resolved hardware numbers.
	Params []hw.Param
	// Constants are the model's own empirical numbers, which no device file sets.
	Constants []Constant
	// Terms is the schema of the rows that Terms fills.
	Terms []Term
	Order Order
	// Options are the model's options with the values in force.
	Options []OptionValue
	// Uncertainty says per kernel family how far predicted times are from measured ones, where that is known.
	Uncertainty []Uncertainty
	// Monotone are the dimensions in which more work, by whole blocks, is never predicted to take less time. For K that is
	// expected of every model, declared or not, but of one that declares DimNone.
	Monotone []Dim
}

// Dim is a dimension of a problem.
type Dim uint8

// The dimensions.
const (
	DimM Dim = iota + 1
	DimN
	DimK
	DimNone // none of them, see Description.Monotone
)

var dimNames = [...]string{DimM: "m", DimN: "n", DimK: "k", DimNone: "none"}

// String returns the dimension's name in formulas.
func (d Dim) String() string {
	if d >= DimM && int(d) < len(dimNames) {
		return dimNames[d]
	}
	return fmt.Sprintf("dim(%d)", uint8(d))
}

// PeakRate is a device's dense peak for one element type.
type PeakRate struct {
	DType gemm.DType
	Rate  unit.FlopsPerSecond
}

// Atom is the matrix instruction used for one element type.
type Atom struct {
	DType   gemm.DType
	M, N, K int
	// Latency is the cost of one instruction as the model counts it; PerUnit is how many an SM or CU runs at once.
	Latency unit.Cycles
	PerUnit int
}

// PeakFor returns the peak rate for a type, 0 if none is known.
func (d *Description) PeakFor(t gemm.DType) unit.FlopsPerSecond {
	for _, p := range d.Peak {
		if p.DType == t {
			return p.Rate
		}
	}
	return 0
}

// Atom returns the matrix instruction for a type, nil if the model does not take the type.
func (d *Description) Atom(t gemm.DType) *Atom {
	for i := range d.Atoms {
		if d.Atoms[i].DType == t {
			return &d.Atoms[i]
		}
	}
	return nil
}

// ID returns "arch@device".
func (d *Description) ID() string { return d.Arch + "@" + d.Device }

// Kernel checks the name of a kernel family against what the model predicts; empty means the first.
func (d *Description) Kernel(name string) (string, error) {
	if name == "" && len(d.Kernels) > 0 {
		return d.Kernels[0], nil
	}
	if !slices.Contains(d.Kernels, name) {
		err := diag.Inputf("the %s model of %s does not predict the kernel family %q", d.Model, d.ID(), name)
		return "", err.Do("use one of %s", strings.Join(d.Kernels, ", "))
	}
	return name, nil
}

// Constant is an empirical number of the model.
type Constant struct {
	Name   string
	Value  float64
	Unit   string
	Doc    string
	Source string
}

// Term is one column of a model's breakdown.
type Term struct {
	// Name is the column name, snake_case.
	Name string
	// Unit is the value's unit: "cycles", "B", "B/cycle", "1".
	Unit string
	// Formula says how the value is computed, in Go expression syntax over names of other terms, parameters, constants,
	// the problem (m, n, k, batch, element_bytes, output_bytes; trans_a, trans_b are 1 or 0), its matrix instruction (atom_m,
	// atom_n, atom_k, atom_cycles, atoms_per_unit) and the configuration (block_m, …). The functions are cdiv, min, max,
	// floor, ceil, sqrt, mod, pow and when(condition, then, else). A formula that starts with "rule:" is prose.
	Formula string
	// Doc says what it is; Source where the formula comes from.
	Doc    string
	Source string
	// Kind says how the term relates to the total.
	Kind TermKind
	// Common is the name that comparisons give this quantity, whatever a model calls it (see the Common… constants);
	// empty means Name.
	Common string
}

// CommonName returns the name under which models are compared.
func (t *Term) CommonName() string {
	if t.Common != "" {
		return t.Common
	}
	return t.Name
}

// The quantities that models have in common under different names.
const (
	CommonTilesM       = "tiles_m"       // output tiles along M
	CommonTilesN       = "tiles_n"       // output tiles along N
	CommonActiveUnits  = "active_units"  // SMs or CUs at work
	CommonWaves        = "waves"         // rounds of tiles over the device
	CommonL2Hit        = "l2_hit_rate"   // share of the loads that the L2 serves
	CommonMALLHit      = "mall_hit_rate" // share of what misses the L2 that the MALL serves
	CommonLoadPerUnit  = "load_per_unit" // bytes that one SM or CU loads per K step
	CommonL2Traffic    = "l2_traffic"    // bytes per K step, over all SMs or CUs
	CommonDRAMTraffic  = "dram_traffic"  // bytes per K step
	CommonDRAMFraction = "dram_fraction" // share of the DRAM bandwidth in reach
	CommonUtilization  = "utilization"   // useful share of the padded work
	CommonPenalty      = "padding_factor"
	CommonComputeStep  = "compute_step" // matrix instructions of one K step
	CommonL2Step       = "l2_step"      // L2 transfer of one K step
	CommonMALLStep     = "mall_step"    // MALL transfer of one K step
	CommonDRAMStep     = "dram_step"    // DRAM or HBM transfer of one K step, with its latency
	CommonMemoryStep   = "memory_step"  // memory side of one K step
	CommonKStep        = "k_step"       // one steady-state K step
	CommonWave         = "wave"         // one round of tiles
	CommonTotal        = "total"
)

// TermKind says how a term relates to the total.
type TermKind uint8

// The kinds of terms.
const (
	// KindIntermediate is a value on the way.
	KindIntermediate TermKind = iota
	// KindStep is a latency of one K step at one resource; the largest of the steps is what the loop waits for.
	KindStep
	// KindShare is a part of the total: the shares add up to it.
	KindShare
	// KindTotal is the total itself.
	KindTotal
)

// Order declares how candidates are ranked: by predicted total, and among near-equal ones by Keys.
//
// With Window 0 each run of bit-equal totals is a group. With a positive Window the only group is the leading one: the
// entries from the best on, up to the first whose |total − best| / max(|best|, 1e-9) is not below Window. Inside a group
// Keys apply in turn: a stable sort by the first key, then the leading entries that the first key does not tell apart
// are sorted by the second, and so on. What no key decides stays in order of total, then of candidates.
type Order struct {
	Window float64
	Keys   []Key
}

// Key is a tie-break.
type Key uint8

// The tie-breaks.
const (
	// KeyIntensity prefers the higher arithmetic intensity. As a leading key two values within IntensityTolerance are
	// equal.
	KeyIntensity Key = iota + 1
	// KeyLargeTile prefers the larger block_m, then block_n, then block_k.
	KeyLargeTile
)

// IntensityTolerance is how far two arithmetic intensities may be apart to count as equal when the next key is asked
// (AMD Origami).
const IntensityTolerance = 1e-6
