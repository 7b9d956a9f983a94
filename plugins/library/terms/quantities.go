package terms

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/model"
)

// Generation is a generation of GPUs whose units are alike.
type Generation string

// The generations. The libraries of one have the same kernels.
const (
	Volta             Generation = "volta"
	Turing            Generation = "turing"
	Ampere            Generation = "ampere"
	AmpereConsumer    Generation = "ampere-consumer"
	Ada               Generation = "ada"
	Hopper            Generation = "hopper"
	Blackwell         Generation = "blackwell"
	BlackwellConsumer Generation = "blackwell-consumer"
	GCN5              Generation = "gcn5"
	Vega20            Generation = "vega20" // GCN 5.1: the clock of its recorded times is another
	CDNA1             Generation = "cdna1"
	CDNA2             Generation = "cdna2"
	CDNA3             Generation = "cdna3"
	CDNA4             Generation = "cdna4"
)

// Generations lists all.
func Generations() []Generation {
	return []Generation{
		Volta, Turing, Ampere, AmpereConsumer, Ada, Hopper, Blackwell, BlackwellConsumer,
		GCN5, Vega20, CDNA1, CDNA2, CDNA3, CDNA4,
	}
}

// Lines are the generations of which times were recorded with rows of fp8 that begin within a line of the L2.
var Lines = map[Generation]bool{Hopper: true}

// UnitWatts are the power limits per unit of the boards whose times told the energies of a generation, where others are
// limited to less: of Hopper, the 700 W of an H100 SXM and an H200 for 132 SMs.
var UnitWatts = map[Generation]float64{Hopper: 700.0 / 132}

// LeftOut are types that are not predicted for a generation. On a Vega 10, rocBLAS@b520bc83fa takes 1.95 times as long
// for fp16 with results in fp32 as for results in fp16, at the median of 2,084 sizes, and on later generations 0.84 to
// 1.08 times. No term says why.
var LeftOut = map[Generation]gemm.Types{GCN5: {In: gemm.FP16, Out: gemm.FP32}}

// Number is a number of the machine, which follows from the description of a device.
type Number struct{ Name, Unit, Doc string }

// Machine are the numbers of the machine that formulas use.
var Machine = []Number{
	{"units", one, "SMs or CUs"},
	{"l2_count", one, "L2 caches, each of a die of its own"},
	{"clock", "Hz", "boost clock of the units"},
	{"tdp", "W", "power limit of the board, 0 if it is unknown"},
	{"unit_watts", "W", "power limit per unit of the boards whose times told the energies, 0 if all are alike"},
	{"l2_size", bytes, "L2 of all dies"},
	{"mall_size", bytes, "memory-side cache behind the L2, 0 without one"},
	{"dram_speed", "B/s", "peak of DRAM"},
	{"dram_ecc", one, "1 if DRAM keeps its error correction among the data, so that it takes a part of the bandwidth"},
	{"clock_gain", one, "clock under load ÷ boost clock, where a card exceeds the boost clock of its data sheet"},
}

// Condition are the constants that options set.
var Condition = []Number{
	{"layers", one, "layers that run in turn, each with a B of its own"},
	{"all_cold", one, "1 if nothing is in a cache when the kernel starts, else 0"},
	{"quantises", one, "1 if quantising A is part of the time, else 0"},
}

// Quantity is an empirical number of the model. Its Value holds for every generation that the fitted values lack.
type Quantity struct {
	model.Quantity
	ofType bool
	// like are the quantities of other types whose fitted value counts if this one has none, the first that has one, in
	// the ratio of the chosen values.
	like []like
}

type like struct {
	name  string
	ratio float64
}

// Variant is what has values of its own: a generation, and the scheme of scales or the release of the library.
type Variant struct {
	Generation      Generation
	Scheme, Release string
}

// keys are the entries of the fitted values, the most specific first. Those of blocks of 16 and 32 are of fp4, which
// has no other scales.
func (v Variant) keys() (keys []string) {
	g := string(v.Generation)
	plain := strings.TrimSuffix(strings.TrimSuffix(v.Scheme, "+quant"), "+preshuffle")
	return []string{
		g + " " + v.Release, g + " " + v.Scheme, g + " " + plain, g, g + " block16", g + " block32",
	}
}

// sister is the generation whose values one with few published times, or none, has for what these do not show.
var sister = map[Generation]Generation{
	CDNA1: CDNA2, Vega20: GCN5, Volta: Ampere, Turing: AmpereConsumer, AmpereConsumer: Ada, BlackwellConsumer: Ada,
}

// HasEarly reports whether times of an early library are known of a generation. Those of consumer Ampere are not apart
// from the current ones, of which there are hardly any.
func HasEarly(g Generation) bool { return g == AmpereConsumer || fitted[string(g)+" early"] != nil }

// On returns the value for a machine, and for whom it was found. That is empty for a value that is chosen.
func (q *Quantity) On(v Variant) (value float64, key string) { return q.In(fitted, v) }

// In is On with other fitted values.
func (q *Quantity) In(fitted map[string]map[string]float64, v Variant) (value float64, key string) {
	keys := v.keys()
	// What all types have in common was fitted with those that are there.
	if q.ofType || fitted[string(v.Generation)] == nil {
		keys = append(keys, string(sister[v.Generation]))
	}
	for _, l := range append([]like{{q.Name, 1}}, q.like...) {
		for _, key := range keys {
			if value, ok := fitted[key][l.name]; ok {
				return value * l.ratio, key
			}
		}
	}
	return q.Value, ""
}

// Constant returns the quantity as explain shows it.
func (q *Quantity) Constant(v Variant) arch.Constant {
	value, key := q.On(v)
	source := "chosen: there are no published times of the generation " + string(v.Generation)
	if key != "" {
		day := "2026-11-26"
		switch {
		case key == string(CDNA4) && strings.HasPrefix(q.Name, "energy"), strings.HasSuffix(key, " block16"):
			day = "2026-11-29"
		case key == string(CDNA4):
			day = "2026-11-23" // later fits left its values as they were
		case key == string(Ada) && strings.HasSuffix(q.Name, "_32"):
			key, day = "ada and both consumer generations beside it", "2026-11-28"
		}
		source = "fitted on published times of " + key + ", " + day
	}
	return arch.Constant{
		Name: q.Name, Value: value, Unit: q.Unit, Doc: q.Doc,
		Source: fmt.Sprintf("%s; bounds %.4g–%.4g", source, q.Low, q.High),
	}
}

// Quantities are the empirical numbers. docs/model-library.md says how they were found.
var Quantities = slices.Concat(
	perType("_16", "fp16 and bf16"), perType("_8", "fp8", "_16"), perType("_4", "fp4", "_8", "_16"),
	perType("_32", "fp32", "_tf32", "_16"),
	perType("_tf32", "tf32", "_16"), perType("_int8", "int8", "_8", "_16"),
	quantities(OfMachine))

func quantities(list []model.Quantity) []Quantity {
	out := make([]Quantity, len(list))
	for i := range list {
		out[i].Quantity = list[i]
	}
	return out
}

// energies are where the fits of the energies start.
var energies = map[string]float64{
	"_16": 1.3e-12, "_8": 0.7e-12, "_4": 0.35e-12, "_32": 6e-12, "_tf32": 2.6e-12, "_int8": 0.7e-12,
}

// perType returns the quantities of kernels for some types, and where those come from that were not fitted.
func perType(suffix, types string, others ...string) []Quantity {
	list := quantities(OfType)
	for i := range list {
		q := &list[i]
		q.ofType = true
		for _, other := range others {
			ratio := 1.0
			if q.Name == "energy" {
				ratio = energies[suffix] / energies[other]
			}
			q.like = append(q.like, like{q.Name + other, ratio})
		}
		switch q.Name {
		case "energy":
			q.Value = energies[suffix]
		case "rate_share":
			if suffix == "_32" {
				q.Low = 0.7 // or the power limit of a T4 would pass for the rate of FMA instructions
			}
		}
		q.Name += suffix
		q.Doc += ", " + types
	}
	return list
}

// OfType are those that kernels for other types have other values of.
var OfType = []model.Quantity{
	{
		Name: "rate_share", Unit: one, Value: 0.85, Low: 0.3, High: 1, Without: 1,
		Doc: "share of the peak that the loop of a tile reaches",
	},
	{Name: "l2_port", Unit: perCycle, Value: 60, Low: 5, High: 300, Without: unlimited, Doc: "from the L2 to one unit"},
	{
		Name: "l2_share", Unit: perCycle, Value: 45, Low: 5, High: 300, Without: unlimited,
		Doc: "of the L2, per unit, if all units load",
	},
	{
		Name: "step_seconds", Unit: seconds, Value: 0.02e-6, Low: 0.001e-6, High: 4e-6, Without: 0,
		Doc: "least time of a K step of one CTA, with operands in the L2",
	},
	{
		Name: "feed", Unit: perCycle, Value: 300, Low: 3, High: 3000, Without: unlimited,
		Doc: "operands that matrix instructions wait for, of one unit",
	},
	{
		Name: "energy", Unit: "J", Low: 0.05e-12, High: 20e-12, Without: 0,
		Doc: "of one FLOP at the peak, with all that feeds it",
	},
	{
		Name: "throttle_seconds", Unit: seconds, Value: 1e-3, Low: 5e-6, High: 50e-3,
		Doc: "for how long the power may exceed its limit",
	},
}

// OfMachine are those that all types have in common.
var OfMachine = []model.Quantity{
	{
		Name: "launch_seconds", Unit: seconds, Value: 2.2e-6, Low: 0.5e-6, High: 12e-6,
		Doc: "launch, start of the first CTA, output of the last, whatever the type",
	},
	{
		Name: "far_share", Unit: perCycle, Value: 1e6, Low: 1, High: 300, Without: unlimited,
		Doc: "from beyond the L2 of a die, per unit; fitted where a device has several dies with a cache behind them",
	},
	{
		Name: "keep_share", Unit: one, Value: 0.3, Low: 0.02, High: 3,
		Doc: "share of the caches that activations and output can use",
	},
	{
		Name: "weights_share", Unit: one, Value: 0.5, Low: 0.05, High: 6,
		Doc: "share of the caches that the weights of layers in turn can use",
	},
	{
		Name: "warm_share", Unit: one, Value: 0.58, Low: 0.02, High: 3,
		Doc: "share of the caches that keeps the matrices from one run to the next; Hopper's where no such times were fitted",
	},
	{
		Name: "reuse_share", Unit: one, Value: 0.6, Low: 0.1, High: 3,
		Doc: "share of the caches that keeps an operand from one wave of tiles to the next",
	},
	{
		Name: "read_share", Unit: one, Value: 0.85, Low: 0.3, High: 1, Without: 1,
		Doc: "share of the peak of DRAM that reads reach",
	},
	{
		Name: "ecc_share", Unit: one, Value: 0.87, Low: 0.75, High: 1, Without: 1,
		Doc: "share of DRAM's bandwidth that error correction among the data leaves",
	},
	{
		Name: "write_share", Unit: one, Value: 0.7, Low: 0.1, High: 1, Without: 1,
		Doc: "share of the peak of DRAM that writes reach",
	},
	{
		Name: "cta_seconds", Unit: seconds, Value: 0.1e-6, Low: 0.001e-6, High: 3e-6, Without: 0,
		Doc: "start of a CTA",
	},
	{
		Name: "cold_step_seconds", Unit: seconds, Value: 0.02e-6, Low: 0.001e-6, High: 1e-6, Without: 0,
		Doc: "what DRAM adds to that",
	},
	{
		Name: "cold_seconds", Unit: seconds, Value: 0.5e-6, Low: 0.001e-6, High: 3e-6, Without: 0,
		Doc: "first loads from DRAM, before a CTA can multiply",
	},
	{
		Name: "resident_tiles", Unit: one, Value: 2, Low: 1, High: 6,
		Doc: "tiles of 128 by 128 of one unit whose waiting overlaps",
	},
	{
		Name: "store_rate", Unit: perCycle, Value: 60, Low: 2, High: 500, Without: unlimited,
		Doc: "output of one unit",
	},
	{
		Name: "split_seconds", Unit: seconds, Value: 1.5e-6, Low: 0.05e-6, High: 10e-6, Without: 0,
		Doc: "launch of the addition of the parts of a split K",
	},
	{
		Name: "reduce_rate", Unit: perCycle, Value: 20, Low: 1, High: 200, Without: unlimited,
		Doc: "sums that one unit writes and reads for a split K",
	},
	{
		Name: "gemv_rate", Unit: perCycle, Value: 5, Low: 0.5, High: 300, Without: unlimited,
		Doc: "weights that one unit reads in the kernels for one row of A",
	},
	{
		Name: "gemv_seconds", Unit: seconds, Value: 1e-9, Low: 1e-10, High: 1e-6, Without: 0,
		Doc: "of 128 bytes along K in these kernels",
	},
	{
		Name: "quantise_seconds", Unit: seconds, Value: 2e-6, Low: 0.1e-6, High: 20e-6, Without: 0,
		Doc: "launch of the kernel that quantises A",
	},
	{
		Name: "quantise_rate", Unit: perCycle, Value: 30, Low: 1, High: 300, Without: unlimited,
		Doc: "what one unit reads and writes of A to quantise it",
	},
	{
		Name: "quantise_share", Unit: one, Value: 0.7, Low: 0.1, High: 1, Without: 1,
		Doc: "share of the peak of DRAM that quantising reaches, if the caches do not hold A",
	},
	{
		Name: "wide_share", Unit: one, Value: 0.7, Low: 0.05, High: 3,
		Doc: "share of the caches that A in 16 bits can use, and what it is quantised to",
	},
}

var unlimited = math.Inf(1)

// Fitted returns the values that were found, by generation, and by the scheme or release behind it. They are a copy.
func Fitted() map[string]map[string]float64 {
	all := map[string]map[string]float64{}
	for key, values := range fitted {
		all[key] = maps.Clone(values)
	}
	return all
}
