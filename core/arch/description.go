package arch

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// Description is everything about an opened architecture that does not depend on a problem.
type Description struct {
	Arch, Vendor       string
	Device, DeviceName string
	// Aliases are other names of this architecture and device.
	Aliases []string
	// Model is the model that was opened, ModelClass its class, empty if it has none. Models lists the models of the
	// architecture, best first.
	Model      string
	ModelClass ModelClass
	Models     []string
	// Kernels are the kernel families that the opened model predicts, default first. Other models of the architecture may
	// predict others: see OpenRequest.Kernel.
	Kernels []string
	// Families describes the kernel families that declare named axes.
	Families []Family
	Rung     Rung
	// RungReason is why a lower rung is used than the model has for this device, as a clause. It is empty on the highest.
	RungReason string
	// RanksOnly: totals order configurations; they are not times.
	RanksOnly bool
	// Timing says what predicted times are of, as core/timing names it: what starts and stops the clock, and what the
	// caches hold. It is empty if the model does not state it.
	Timing string
	// Conversion leads from the model's own timing to Timing. It is nil if they are one, as in every plugin: the host
	// converts.
	Conversion *Conversion

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
	// Ceilings are the roofs of the device that the plugin knows: of its instructions and of its memories. Where it gives
	// none of a level, the roofline takes the data sheet's peak, or the bandwidth of the model's memory level.
	Ceilings []Ceiling
	// Params are the resolved hardware numbers.
	Params []hw.Param
	// Unused are the names of the Params that no prediction depends on: no candidate list, rejection, time or launch
	// order. It is empty if the model does not state it.
	Unused []string
	// Constants are the empirical numbers of the model, which no device file sets.
	Constants []Constant
	// Terms is the schema of the rows that Terms fills.
	Terms []Term
	Order Order
	// Options are the model's options with the values in force.
	Options []OptionValue
	// Uncertainty says, for a kernel family and a kind of problem, how far predicted times are from measured ones. A
	// family may lack it, or have several.
	Uncertainty []Uncertainty
	// Fitted are the data sets that numbers of the model were fitted to. Scores on their problems are in-sample.
	Fitted []Fitted
	// Monotone are the dimensions along which a larger problem, by whole blocks, is never predicted to take less time.
	// Every model must keep that for K, declared or not, unless it declares DimNone.
	Monotone []Dim
}

// Conversion leads the times of an opened model from Description.Timing to the model's own timing. Added is what
// Description.Timing counts besides the kernel.
type Conversion struct {
	Own   func(unit.Seconds, gemm.Problem) unit.Seconds
	Added func(gemm.Problem) unit.Seconds
}

// Own returns the time in the model's own timing that is t in d.Timing.
func (d *Description) Own(t unit.Seconds, p gemm.Problem) unit.Seconds {
	if d.Conversion == nil {
		return t
	}
	return d.Conversion.Own(t, p)
}

// Fitted is a data set that numbers of a model were fitted to. Without Problems, they are too many to list: then nobody
// can say which scores are in-sample.
type Fitted struct {
	DataSet string
	// Kernel is the kernel family that the numbers are of, empty for numbers of all families.
	Kernel   string
	Problems []gemm.Problem
}

// Concerns reports whether the numbers enter predictions of a kernel family.
func (f *Fitted) Concerns(kernel string) bool { return f.Kernel == "" || f.Kernel == kernel }

// InSample reports whether numbers that enter predictions of a kernel family were fitted to measurements of a problem.
func (d *Description) InSample(p gemm.Problem, kernel string) bool {
	p = p.Canonical()
	return slices.ContainsFunc(d.Fitted, func(f Fitted) bool {
		return f.Concerns(kernel) && slices.Contains(f.Problems, p)
	})
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
	DType gemm.DType          `json:"dtype"`            // the type of A and B
	Rate  unit.FlopsPerSecond `json:"flops_per_second"` // the rate
}

// PeakRates are the rates among parameters: "peak_fp16" is the rate of fp16 in FLOP/s.
func PeakRates(params hw.Set) (list []PeakRate) {
	for _, t := range gemm.DTypes() {
		if p, ok := params.Lookup("peak_" + t.String()); ok && p.Unit == "FLOP/s" && p.Value > 0 {
			list = append(list, PeakRate{DType: t, Rate: unit.FlopsPerSecond(p.Value)})
		}
	}
	return list
}

// WithPeaks adds a parameter that device files may have for the rate of each type without one. Types that cost the same
// share a rate.
func WithPeaks(specs []hw.Spec) []hw.Spec {
	for _, t := range gemm.DTypes() {
		name := "peak_" + t.String()
		if t.CostsLike() == t && !slices.ContainsFunc(specs, func(s hw.Spec) bool { return s.Name == name }) {
			specs = append(specs, hw.Spec{
				Name: name, Unit: "FLOP/s", Optional: true, Doc: "dense matrix rate, " + t.String(),
			})
		}
	}
	return specs
}

// Atom is the matrix instruction used for one element type.
type Atom struct {
	DType gemm.DType `json:"dtype"` // the type of A and B, and the sizes of the product
	M     int        `json:"m"`
	N     int        `json:"n"`
	K     int        `json:"k"`
	// cost of an instruction in the model, and how many an SM or CU runs at once
	Latency unit.Cycles `json:"latency_cycles"`
	PerUnit int         `json:"per_unit"`
}

// PeakFor returns the peak rate for a type, or for that which costs the same. It is 0 if none is known.
func (d *Description) PeakFor(t gemm.DType) unit.FlopsPerSecond {
	for _, p := range d.Peak {
		if p.DType == t {
			return p.Rate
		}
	}
	if like := t.CostsLike(); like != t {
		return d.PeakFor(like)
	}
	return 0
}

// Atom returns the matrix instruction for a type, or for that which costs the same. It is nil if the model does not
// take the type.
func (d *Description) Atom(t gemm.DType) *Atom {
	for i := range d.Atoms {
		if d.Atoms[i].DType == t {
			return &d.Atoms[i]
		}
	}
	if like := t.CostsLike(); like != t {
		return d.Atom(like)
	}
	return nil
}

// Ignores reports whether the model says that it does not use a parameter.
func (d *Description) Ignores(param string) bool { return slices.Contains(d.Unused, param) }

// AlsoReads takes the parameters that another model of the device uses from the unused ones, since predictions depend
// on that model's. The rates of types that no family multiplies stay.
func (d *Description) AlsoReads(other *Description) {
	multiplied := func(peak string) bool {
		return slices.ContainsFunc(d.Families, func(f Family) bool {
			return slices.ContainsFunc(f.Types, func(t gemm.Types) bool { return "peak_"+t.In.String() == peak })
		})
	}
	d.Unused = slices.DeleteFunc(d.Unused, func(name string) bool {
		return !other.Ignores(name) && (!strings.HasPrefix(name, "peak_") || multiplied(name))
	})
}

// ID returns "arch@device".
func (d *Description) ID() string { return d.Arch + "@" + d.Device }

// Is reports whether a request may name the model so: by its name, or by its class.
func (d *Description) Is(model string) bool { return model == d.Model || model == string(d.Class()) }

// Class returns the class of the model. A model without one is a class by itself.
func (d *Description) Class() ModelClass {
	if d.ModelClass != "" {
		return d.ModelClass
	}
	return ModelClass(d.Model)
}

// Kernel checks the name of a kernel family against what the model predicts; empty means the first.
func (d *Description) Kernel(name string) (string, error) {
	if name == "" && len(d.Kernels) > 0 {
		return d.Kernels[0], nil
	}
	if !slices.Contains(d.Kernels, name) {
		err := diag.Inputf("the %s model of %s does not predict the kernel family %q", d.Model, d.ID(), name)
		return "", err.Do("use %s", strings.Join(d.Kernels, " or "))
	}
	return name, nil
}

// Constant is an empirical number of the model.
type Constant struct {
	Name   string  `json:"name"` // name, value, unit, meaning, origin
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Doc    string  `json:"doc"`
	Source string  `json:"source"`
	// Low and High are the bounds within which measurements may move the value (core/fit), with 0 < Low ≤ High. Both
	// are 0 if it is fixed.
	Low, High float64 `json:"-"`
}

// Fits reports whether the constant can be fitted to measurements.
func (c *Constant) Fits() bool {
	return c.Low > 0 && c.High >= c.Low && c.Value > 0 && !math.IsInf(c.High, 0)
}

// Term is one column of a model's breakdown. Package core/formula says what formulas consist of.
type Term struct {
	// the name: snake_case
	Name string `json:"name"`
	// the unit of the value: `cycles`, `B`, `B/cycle`, `1`
	Unit string `json:"unit"`
	// how the term relates to the total: `intermediate`, `step`, `share` or `total`
	Kind TermKind `json:"kind"`
	// how the value is computed, as an [expression](plugin-authors.md#formulas); `rule:` begins prose
	Formula string `json:"formula"`
	// what it is, and where the formula comes from
	Doc    string `json:"doc"`
	Source string `json:"source"`
	// the name that comparisons give this quantity, whatever a model calls it
	Common string `json:"common,omitempty"`
}

// CommonName returns the name under which models are compared.
func (t *Term) CommonName() string {
	if t.Common != "" {
		return t.Common
	}
	return t.Name
}

// Common returns a value of a row of terms by the name that all models have for it, and false if the row or the model
// has none.
func (d *Description) Common(row []float64, name string) (float64, bool) {
	i := slices.IndexFunc(d.Terms, func(t Term) bool { return t.CommonName() == name })
	if i < 0 || i >= len(row) {
		return 0, false
	}
	return row[i], true
}

// The quantities that models have in common under different names.
const (
	CommonTilesM       = "tiles_m"       // output tiles along M
	CommonTilesN       = "tiles_n"       // output tiles along N
	CommonActiveUnits  = "active_units"  // SMs or CUs at work
	CommonWaves        = "waves"         // CTAs (workgroups) of the launch ÷ CTAs that run at once
	CommonCTAsPerUnit  = "ctas_per_unit" // CTAs (workgroups) that one SM or CU runs at once
	CommonDRAMTotal    = "dram_total"    // bytes that the kernel moves through DRAM
	CommonL2Total      = "l2_total"      // bytes that the kernel moves through the L2
	CommonRequested    = "requested"     // bytes that its SMs or CUs ask global memory for
	CommonSharedTotal  = "shared_total"  // bytes that it reads of shared memory (LDS)
	CommonL2Hit        = "l2_hit_rate"   // share of the loads that the L2 serves
	CommonMALLHit      = "mall_hit_rate" // share of what misses the L2 that the MALL serves
	CommonRegisters    = "registers"     // registers of a thread
	CommonSpills       = "spill_bytes"   // bytes of a thread's registers that do not fit and go to local memory
	CommonLoadPerUnit  = "load_per_unit" // bytes that one SM or CU loads per K step
	CommonL2Traffic    = "l2_traffic"    // bytes per K step, over all SMs or CUs
	CommonDRAMTraffic  = "dram_traffic"  // bytes per K step
	CommonDRAMFraction = "dram_fraction" // share of the DRAM bandwidth in reach
	CommonPenalty      = "padding_factor"
	CommonComputeStep  = "compute_step" // matrix instructions of one K step
	CommonL2Step       = "l2_step"      // L2 transfer of one K step
	CommonMALLStep     = "mall_step"    // MALL transfer of one K step
	CommonDRAMStep     = "dram_step"    // DRAM or HBM transfer of one K step, with its latency
	CommonMemoryStep   = "memory_step"  // memory side of one K step
	CommonKStep        = "k_step"       // one steady-state K step
	CommonWave         = "wave"         // one round of tiles
	CommonLaunch       = "launch"       // from the host's call to the first instruction, where the time includes it
	CommonToldApart    = "told_apart"   // least ratio of two times from which on the shorter is known to be shorter
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

// String names the kind.
func (k TermKind) String() string {
	if k > KindTotal {
		k = KindIntermediate
	}
	return [...]string{"intermediate", "step", "share", "total"}[k]
}

// MarshalText writes the name.
func (k TermKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
