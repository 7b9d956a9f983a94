// Package arch defines what an architecture model is: the interfaces Architecture and MemoryHierarchy, and the data
// that crosses them. The same interfaces are implemented by a model in process and by a client of a plugin, with
// bit-equal results.
package arch

import (
	"context"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
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
	// and the rejected ones with the reason. It depends on the problem's types, AMajor and BMajor, and on whether it has
	// groups, not on its sizes, leading dimensions and alignments: Estimate reports what they rule out. The result may
	// be shared: callers must not change it.
	Candidates(ctx context.Context, p gemm.Problem, s Space) (*Candidates, error)

	// Estimate fills dst[i] for cfgs[i]; dst must be as long as cfgs. Each estimate depends on its own configuration
	// only, not on its neighbours or their order. An infeasible configuration gets a reason and no number.
	Estimate(ctx context.Context, dst []Estimate, p gemm.Problem, cfgs []gemm.Config) error

	// Terms fills dst with one row per configuration. A row has one value per element of Description.Terms, in that
	// order; dst must have len(cfgs)·len(Terms) elements. Infeasible configurations get the values that the formulas
	// give; a total that the model itself rejects is RejectedTotal.
	Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error

	// Mapping is phase two of the selection: the launch order for a configuration.
	Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (Mapping, error)
}

// FastestEstimator is an Architecture that finds the fastest of many configurations without estimating all.
type FastestEstimator interface {
	// EstimateFastest is Estimate for the top fastest configurations, and for those that are as fast as the last of
	// these. Others may have any number above the estimates of the fastest, and no Bound. Infeasible configurations get
	// their reason.
	EstimateFastest(ctx context.Context, dst []Estimate, p gemm.Problem, cfgs []gemm.Config, top int) error
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
	BoundL1
	BoundSharedMemory
	BoundIssue // of loads or of other instructions
)

var boundNames = [...]string{"unknown", "compute", "l2", "mall", "dram", "latency", "l1", "shared_memory", "issue"}

// NumBounds is how many bounds there are.
const NumBounds = len(boundNames)

// String returns the bound's name in JSON and on the terminal.
func (b Bound) String() string {
	if int(b) < len(boundNames) {
		return boundNames[b]
	}
	return boundNames[BoundUnknown]
}

// MarshalText writes the name.
func (b Bound) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (b *Bound) UnmarshalText(text []byte) error {
	i := slices.Index(boundNames[:], string(text))
	if i < 0 {
		return diag.Inputf("unknown bound %q", text)
	}
	*b = Bound(i)
	return nil
}

// Estimate is a prediction for one configuration.
type Estimate struct {
	// Cycles is the predicted total, always finite and positive when Reject is empty, zero otherwise.
	Cycles unit.Cycles
	// Bound says what limits it.
	Bound Bound
	// Spread is the standard deviation of log(measured ÷ predicted) that measured times near the problem leave, where
	// they say more of it than the error of the model does. Else it is 0.
	Spread float32
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

// Order declares how candidates are ranked: by predicted total, and among near-equal ones by Keys.
//
// With Window 0 each run of bit-equal totals is a group. With a positive Window the only group is the leading one: the
// entries from the best one up to the first whose |total − best| / max(|best|, 1e-9) is not below Window. Inside a
// group Keys apply in turn: the first key sorts the group, stably; the second sorts the leading entries that are equal
// under the first; and so on. Entries that no key separates stay in order of total, then of candidates.
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
