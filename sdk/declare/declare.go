// Package declare makes an architecture plugin out of data. The numbers of a device come from YAML files (sdk/catalog); a
// Model says in formulas over those numbers, the problem and the configuration which configurations there are, which of
// them cannot be used and why, and what one takes. The formula of a term is what is computed and what `origami explain`
// shows: there is no second place that could say something else.
//
// Formulas are Go expressions, as core/formula reads them. What they may name: the parameters and constants; the problem
// (m, n, k, batch, element_bytes, output_bytes, trans_a, trans_b); its matrix instruction (atom_m, atom_n, atom_k,
// atom_cycles, atoms_per_unit); the configuration (block_m, block_n, block_k, group_m, num_warps, num_stages, split_k); the
// named axes of the kernel families, as numbers (gemm.Axis.Number); and the terms, each of which sees those before it.
// sdk/example is a whole plugin made this way.
package declare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// Model is a model of architectures, as data.
type Model struct {
	Name string

	// UnitName is what the vendor calls a compute unit ("SM", "CU", "Xe core"). The others are formulas over parameters and
	// constants: how many units there are and over how many dies they are spread (empty: 1), the clock in Hz, what one
	// workgroup may use of the shared memory in B, and the register file per unit and the cap per thread in 32-bit registers
	// (empty: unknown).
	UnitName                         string
	Units, Partitions                string
	Clock                            string
	SharedMemory                     string
	RegisterFile, RegistersPerThread string
	// AtomsPerUnit is a formula for how many matrix instructions a unit runs at once; empty means one. The instructions
	// themselves are the device file's atoms, of which the first of a type is used. They are what types the model takes.
	AtomsPerUnit string

	// Constants are the model's empirical numbers, which no device file sets.
	Constants []arch.Constant
	// Kernels are the kernel families that the model predicts, the default first.
	Kernels []Kernel
	// Terms is the breakdown, in the order in which one follows from the other. One of them is the total.
	Terms []Term
	// Order says how near-equal candidates are ranked. Monotone is what the model promises, see arch.Description.
	Order    arch.Order
	Monotone []arch.Dim

	// Levels are the levels of the memory hierarchy, near to far.
	Levels []Level

	// GroupM, XCDs and Chunk are formulas for the launch order (see arch.Mapping); empty means 1, 0 and 0.
	GroupM, XCDs, Chunk string
}

// Kernel is a kernel family: the configurations that it has.
type Kernel struct {
	Name, Doc string
	// Axes are what its configurations have beyond the numbers that all configurations have. Formulas know an axis by its
	// name: for the configurations of a family without it, it is at its default.
	Axes []gemm.Axis
	// Space has the values of each number of a configuration, which a request may replace. All combinations are candidates,
	// block_m slowest, then block_n, block_k, num_warps, num_stages and split_k, then the named axes in the order of Axes. An
	// empty axis is {1}, a named one that is not listed is at its default; the family's name is filled in.
	Space arch.Space
	// Rules say which of them cannot be used. The first that applies is given as the reason.
	Rules []Rule
}

// Rule says which configurations cannot be used.
type Rule struct {
	// Reason is its short snake_case name, one of arch.Reason… or an own one.
	Reason arch.Reason
	// When is a formula, not zero where the configuration cannot be used. If it does not depend on the problem's sizes, the
	// configuration is not even a candidate.
	When string
	// Detail says why in words and numbers; formulas in braces are replaced by their values, as in
	// "needs {tile_bytes} B of shared memory, {shared_memory} B available". It is told of what is no candidate; of a rule that
	// depends on sizes an estimate tells the reason alone.
	Detail string
}

// Term is one value of the breakdown. The fields that arch.Term has as well mean what they mean there.
type Term struct {
	Name, Unit  string
	Formula     string
	Doc, Source string
	Kind        arch.TermKind
	Common      string
	// Bound is, for an arch.KindStep, what limits a kernel that waits for it. A configuration is bound by the largest of its
	// steps, the first of equal ones.
	Bound arch.Bound
	// Func computes what a formula cannot say, from the values of Args, in their order. Formula is prose then ("rule: …").
	// It must give the same result for the same arguments, and keep nothing of them.
	Func func(args []float64) float64
	Args []string
}

// Level is a level of the memory hierarchy.
type Level struct {
	Name  string
	Bound arch.Bound
	// Capacity in B, Latency in cycles and the number of Partitions are formulas over parameters and constants; empty means
	// 0, 0 and 1. Bandwidth is the same for the peak in B/cycle.
	Capacity, Latency, Partitions, Bandwidth string
	// Linear says that a units of u reach a/u of the bandwidth; otherwise it is min((C0·a² + C1·a) + C2, 1), by formulas over
	// parameters and constants. If these are empty too, any number of units reaches all of it.
	Linear     bool
	C0, C1, C2 string
}

// Provider returns the plugin that a definition and its models make. What the definition says of models and kernels is
// filled in: it needs Name, Version, Files, Vendor and Specs, and may have Derive and Scale. The models have the same kernel
// families, best model first. A declaration that cannot be is an error that says where.
func Provider(def catalog.Definition, models ...Model) (arch.Provider, error) {
	if len(models) == 0 {
		return nil, fmt.Errorf("plugin %s declares no model", def.Name)
	}
	if len(def.Options) > 0 {
		return nil, fmt.Errorf("plugin %s declares options, which no formula can name", def.Name)
	}
	def.Models, def.Kernels = nil, nil
	for i := range models {
		m := &models[i]
		var kernels []string
		for _, k := range m.Kernels {
			kernels = append(kernels, k.Name)
		}
		if def.Kernels == nil {
			def.Kernels = kernels
		}
		switch {
		case m.Name == "" || slices.Contains(def.Models, m.Name):
			return nil, fmt.Errorf("plugin %s: model %d has no name of its own", def.Name, i+1)
		case !slices.Equal(kernels, def.Kernels):
			return nil, fmt.Errorf("model %s has the kernels %s, and %s has %s", m.Name, strings.Join(kernels, ", "), models[0].Name, strings.Join(def.Kernels, ", "))
		}
		def.Models = append(def.Models, m.Name)
		if err := m.check(def.Specs); err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Name, err)
		}
	}
	def.Open = func(s catalog.Selection) (arch.Architecture, error) {
		m := &models[slices.Index(def.Models, s.Model)]
		return m.open(def, s)
	}
	return catalog.New(def)
}

// check compiles the model with all numbers one, which tells whatever does not depend on a device.
func (m *Model) check(specs []hw.Spec) error {
	params := make(hw.Set, len(specs))
	for i, s := range specs {
		params[i] = hw.Param{Name: s.Name, Number: hw.Number{Value: 1, Unit: s.Unit}}
	}
	_, err := m.compile(params)
	return err
}
