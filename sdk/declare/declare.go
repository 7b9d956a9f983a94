// Package declare makes an architecture plugin from data. The parameters of a device come from YAML files
// (sdk/catalog). A Model defines the configurations, the rules that reject some of them, and the time of the others, by
// formulas over the parameters, the problem and the configuration. The formula of a term is both what the plugin
// computes and what `origami explain` shows, so the two cannot differ.
//
// Formulas are Go expressions (see core/formula). They can use:
//
//   - the parameters and constants;
//   - the problem: m, n, k, batch, element_bytes, output_bytes, trans_a, trans_b;
//   - its matrix instruction: atom_m, atom_n, atom_k, atom_cycles, atoms_per_unit;
//   - the configuration: block_m, block_n, block_k, group_m, num_warps, num_stages, split_k;
//   - the named axes of the kernel families, as numbers (gemm.Axis.Number);
//   - the preceding terms.
//
// sdk/example is a complete plugin made this way.
package declare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// Model is a model of architectures as data.
type Model struct {
	Name string

	// UnitName is the vendor's name of a compute unit ("SM", "CU", "Xe core"). The other fields are formulas over
	// parameters and constants: the number of units; the number of dies (empty: 1); the clock in Hz; the shared memory
	// of one workgroup in B; the registers per unit and the limit per thread, in 32-bit registers (empty: unknown).
	UnitName                         string
	Units, Partitions                string
	Clock                            string
	SharedMemory                     string
	RegisterFile, RegistersPerThread string
	// AtomsPerUnit is a formula for the number of matrix instructions that a unit runs at the same time; empty means
	// one. The instructions are the atoms of the device file. The model uses the first of each element type, and
	// supports only the types that have one.
	AtomsPerUnit string

	// Constants are the empirical numbers of the model. `origami fit` moves those with bounds to measured times, and
	// device files have them under fitted:.
	Constants []arch.Constant
	// Kernels are the kernel families that the model predicts. The first is the default.
	Kernels []Kernel
	// Terms is the breakdown. A term follows the terms that it uses. One term is the total.
	Terms []Term
	// Order ranks near-equal candidates. Monotone lists guarantees of the model; see arch.Description.
	Order    arch.Order
	Monotone []arch.Dim
	// RanksOnly says that the total puts configurations in order and is no time.
	RanksOnly bool

	// Levels are the memory levels, from the nearest to the farthest. Their Names are formulas over parameters and
	// constants; that of Bandwidth is needed, and without coefficients any number of units reaches all of it, or its share
	// if it is Linear.
	Levels []arch.Level

	// GroupM, XCDs and Chunk are formulas for the launch order (see arch.Mapping). Empty means 1, 0 and 0.
	GroupM, XCDs, Chunk string
}

// Kernel is a kernel family: its configurations.
type Kernel struct {
	Name, Doc string
	// Axes are the named axes of the family, beyond the numbers that all configurations have. Formulas use an axis by
	// its name. For configurations of a family without the axis, it has its default.
	Axes []gemm.Axis
	// Space lists the values of each axis. A request may replace them. All combinations are candidates. block_m changes
	// slowest, then block_n, block_k, num_warps, num_stages and split_k, then the named axes in the order of Axes. An
	// empty axis means {1}. A named axis that is not listed has its default. Provider sets the family's name.
	Space arch.Space
	// Rules reject configurations. The first rule that applies is the reason.
	Rules []Rule
}

// Rule rejects configurations.
type Rule struct {
	// Reason is a short snake_case name: one of arch.Reason…, or a name of the plugin's own.
	Reason arch.Reason
	// When is a formula that is not zero if the rule applies. If it does not depend on the problem's sizes, the
	// configuration is not a candidate.
	When string
	// Detail explains the reason. Formulas in braces are replaced by their values, as in "needs {tile_bytes} B of
	// shared memory, {shared_memory} B available". Only configurations that are not candidates have a detail. An
	// estimate has only the reason.
	Detail string
}

// Term is one value of the breakdown. Fields that arch.Term has too have the same meaning.
type Term struct {
	Name, Unit  string
	Formula     string
	Doc, Source string
	Kind        arch.TermKind
	Common      string
	// Bound is the resource that limits a kernel if this arch.KindStep is its largest step. Of equal steps the first
	// counts.
	Bound arch.Bound
	// Func computes a value that no formula can express, from the values of Args in order. Formula is then prose
	// ("rule: …"). Func must return the same result for the same arguments and must not keep the slice.
	Func func(args []float64) float64
	Args []string
}

// Provider returns the plugin of a definition and its models. The definition needs Name, Version, Files and Specs,
// and may have Vendor, Derive and Scale. Provider sets Models. All models have the same kernel families. The first
// model is the default. An error names the place of a mistake in the declaration.
func Provider(def catalog.Definition, models ...Model) (arch.Provider, error) {
	if len(models) == 0 {
		return nil, fmt.Errorf("plugin %s declares no model", def.Name)
	}
	def.Models, def.Archs = nil, nil
	for i := range models {
		m := &models[i]
		one := catalog.Model{
			Name: m.Name, Kernels: m.kernels(),
			Fitted: slices.ContainsFunc(m.Constants, func(c arch.Constant) bool { return c.Fits() }),
			Open: func(s catalog.Selection) (arch.Architecture, error) {
				own := *m
				own.Constants = slices.Clone(m.Constants)
				if err := fit.Use(own.Constants, s.Sheet, m.Name); err != nil {
					return nil, err
				}
				return own.open(def.Specs, s)
			},
		}
		if m.Name == "" || slices.ContainsFunc(def.Models, func(o catalog.Model) bool { return o.Name == m.Name }) {
			return nil, fmt.Errorf("plugin %s: model %d has no unique name", def.Name, i+1)
		}
		if i > 0 && !slices.Equal(one.Kernels, def.Models[0].Kernels) {
			return nil, fmt.Errorf("model %s has the kernels %s, but %s has %s", m.Name, strings.Join(one.Kernels, ", "),
				models[0].Name, strings.Join(def.Models[0].Kernels, ", "))
		}
		def.Models = append(def.Models, one)
		if err := m.check(def.Specs); err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Name, err)
		}
	}
	return catalog.New(def)
}

// check compiles the model with all parameters set to one. It finds every mistake that does not depend on a device.
func (m *Model) check(specs []hw.Spec) error {
	params := make(hw.Set, len(specs))
	for i, s := range specs {
		params[i] = hw.Param{Name: s.Name, Number: hw.Number{Value: 1, Unit: s.Unit}}
	}
	for _, c := range m.Constants {
		if (c.Low != 0 || c.High != 0) && (!c.Fits() || c.Value < c.Low || c.Value > c.High) {
			return fmt.Errorf("constant %s is %v, and its bounds are %v and %v", c.Name, c.Value, c.Low, c.High)
		}
	}
	_, err := m.compile(params)
	return err
}
