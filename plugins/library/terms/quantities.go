package terms

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
)

// Generation is a generation of GPUs whose units are alike.
type Generation string

// The generations. The libraries of one have the same kernels.
const (
	Volta             Generation = "volta"
	Turing            Generation = "turing"
	Ampere            Generation = "ampere"
	Ada               Generation = "ada"
	Hopper            Generation = "hopper"
	Blackwell         Generation = "blackwell"
	BlackwellConsumer Generation = "blackwell-consumer"
	GCN5              Generation = "gcn5"
	CDNA1             Generation = "cdna1"
	CDNA2             Generation = "cdna2"
	CDNA3             Generation = "cdna3"
	CDNA4             Generation = "cdna4"
)

// Generations lists all.
func Generations() []Generation {
	return []Generation{
		Volta, Turing, Ampere, Ada, Hopper, Blackwell, BlackwellConsumer, GCN5, CDNA1, CDNA2, CDNA3, CDNA4,
	}
}

// Number is a number of the machine. A vendor's plugin says how it follows from the parameters of a device.
type Number struct{ Name, Unit, Doc string }

// Machine are the numbers of the machine that formulas use.
var Machine = []Number{
	{"units", one, "SMs or CUs"},
	{"clock", "Hz", "boost clock of the units"},
	{"l2_size", bytes, "L2 of all dies"},
	{"mall_size", bytes, "memory-side cache behind the L2, 0 without one"},
	{"dram_speed", "B/s", "peak of DRAM"},
}

// Condition are the constants that the option l2 sets.
var Condition = []Number{
	{"layers", one, "layers that run in turn, each with a B of its own"},
	{"all_cold", one, "1 if nothing is in a cache when the kernel starts, else 0"},
}

// Quantity is an empirical number of the model.
type Quantity struct {
	Name, Unit, Doc string
	// Low and High are the bounds of the fit. Without is the value that removes the effect of the quantity.
	Low, High, Without float64
	// Value holds for every generation that Of does not have.
	Value  float64
	Of     map[Generation]float64
	Source string
}

// On returns the value for a generation.
func (q *Quantity) On(g Generation) float64 {
	if v, ok := q.Of[g]; ok {
		return v
	}
	return q.Value
}

// Constant returns the quantity as explain shows it.
func (q *Quantity) Constant(g Generation) arch.Constant {
	return arch.Constant{
		Name: q.Name, Value: q.On(g), Unit: q.Unit, Doc: q.Doc,
		Source: fmt.Sprintf("%s; bounds %.4g–%.4g", q.Source, q.Low, q.High),
	}
}

const chosen = "chosen, not fitted"

// Quantities are the empirical numbers. docs/model-library.md says how they were found.
var Quantities = []Quantity{
	{
		Name: "launch_seconds", Unit: seconds, Value: 2.2e-6, Low: 0.5e-6, High: 12e-6, Source: chosen,
		Doc: "launch, start of the first CTA, output of the last",
	},
	{
		Name: "rate_share", Unit: one, Value: 0.85, Low: 0.3, High: 1, Without: 1, Source: chosen,
		Doc: "share of the peak that the loop of a very large tile reaches",
	},
	{
		Name: "half_tile", Unit: one, Value: 10, Low: 0.1, High: 120, Without: 0, Source: chosen,
		Doc: "rows or columns of a tile that would cost half of the rate",
	},
	{
		Name: "l2_port", Unit: perCycle, Value: 40, Of: map[Generation]float64{Blackwell: 80}, Low: 5, High: 200,
		Source: chosen, Doc: "from the L2 to one unit",
	},
	{
		Name: "l2_usable_share", Unit: one, Value: 0.8, Low: 0.05, High: 6, Source: chosen,
		Doc: "share of the caches that operands can use",
	},
	{
		Name: "dram_share", Unit: one, Value: 0.85, Low: 0.3, High: 1, Without: 1, Source: chosen,
		Doc: "share of the peak of DRAM that is reached",
	},
	{
		Name: "cta_draw", Unit: perCycle, Value: 25, Low: 1, High: 200, Source: chosen,
		Doc: "what one CTA can draw from DRAM: bytes in flight ÷ latency",
	},
	{
		Name: "fill_seconds", Unit: seconds, Value: 0.5e-6, Low: 0.01e-6, High: 5e-6, Without: 0, Source: chosen,
		Doc: "start of a CTA and its first loads",
	},
	{
		Name: "step_seconds", Unit: seconds, Value: 0.05e-6, Low: 0.001e-6, High: 1e-6, Without: 0, Source: chosen,
		Doc: "least time of a K step of one CTA",
	},
	{
		Name: "resident_tile", Unit: one, Value: 2 * 128 * 128, Low: 128 * 128, High: 4 * 128 * 128, Source: chosen,
		Doc: "sums that the CTAs of a unit hold at a time",
	},
	{
		Name: "split_seconds", Unit: seconds, Value: 1.5e-6, Low: 0.05e-6, High: 10e-6, Source: chosen,
		Doc: "launch of the addition of the parts of a split K",
	},
	{
		Name: "reduce_rate", Unit: perCycle, Value: 20, Low: 1, High: 200, Source: chosen,
		Doc: "sums that one unit writes and reads for a split K",
	},
}

// Numbers returns the names of all numbers that formulas may use.
func Numbers() []string {
	var names []string
	for _, n := range slices.Concat(Machine, Condition) {
		names = append(names, n.Name)
	}
	for i := range Quantities {
		names = append(names, Quantities[i].Name)
	}
	return names
}
