// Package formula reads the formulas that a term schema carries: it evaluates them, so that a test can hold a model to
// what it says it computes, compiles them, so that a model can compute what it says, and puts numbers in for names, so
// that a reader can follow.
//
// Formulas are Go expressions over names, numbers, + - * / and comparisons, with the functions cdiv(a, b) = ⌈a/b⌉,
// min, max, floor, ceil, sqrt, mod(a, b), pow(a, b) and when(condition, then, else). A formula that starts with "rule:"
// is prose and has no value.
package formula

import (
	"regexp"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// IsRule reports whether a formula is prose.
func IsRule(f string) bool { return strings.HasPrefix(f, "rule:") }

// Values returns every name that a formula of d may use, with its value: the problem (m, n, k, batch, element_bytes,
// output_bytes, trans_a, trans_b), its matrix instruction as d.Atoms has it (atom_m, atom_n, atom_k, atom_cycles,
// atoms_per_unit), the configuration (block_m, …, split_k), the axes that the kernel families declare (at their default
// where the configuration's family does not declare them), parameters, constants and the row of terms.
func Values(d *arch.Description, p gemm.Problem, c gemm.Config, row []float64) map[string]float64 {
	values := make([]float64, configInputs+gemm.NumFields)
	putProblem(values, p)
	if a := d.Atom(p.DType); a != nil {
		putAtom(values[atomInputs:], a)
	}
	putConfig(values[configInputs:], &c)
	v := make(map[string]float64, len(values)+len(d.Params)+len(d.Constants)+len(d.Terms))
	for i, in := range inputs {
		v[in.name] = values[i]
	}
	for i, f := range gemm.Fields() {
		v[f.Name] = values[configInputs+i]
	}
	for i := range d.Families {
		for j := range d.Families[i].Axes {
			x := &d.Families[i].Axes[j]
			v[x.Name] = float64(x.Number(c.Axes))
		}
	}
	for _, param := range d.Params {
		v[param.Name] = param.Value
	}
	for _, constant := range d.Constants {
		v[constant.Name] = constant.Value
	}
	for i, t := range d.Terms {
		v[t.Name] = row[i]
	}
	return v
}

// Substitute returns the formula with every name replaced by its value as text writes it. Function names, numbers and
// names without a value stay; prose comes back unchanged.
func Substitute(f string, values map[string]float64, text func(float64) string) string {
	if IsRule(f) {
		return f
	}
	return words.ReplaceAllStringFunc(f, func(word string) string {
		if v, ok := values[word]; ok {
			return text(v)
		}
		return word
	})
}

// words are names, and functions up to their parenthesis.
var words = regexp.MustCompile(`\b[A-Za-z_]\w*( *\()?`)
