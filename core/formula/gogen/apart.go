package gogen

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/formula"
)

// Apart adds a formula that is no row. No struct has its value: Alone computes it.
func (p *Plan) Apart(name, text string) error {
	n, err := p.read(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.apart = append(p.apart, n)
	return p.give(name, n)
}

// Alone returns the statements that return the value of a formula of Apart, from the structs of the stages before its
// own.
func (p *Plan) Alone(name string) string {
	n := p.names[name]
	w := p.writer(n.stage)
	own := p.ofStage(n, func(*node) {})
	w.count(p.nodes, func(a *node) bool { return own[a] })
	w.rows(slices.DeleteFunc(slices.Clone(p.rows), func(a *node) bool { return !own[a] || a.op == formula.Name }))
	code := w.rounded(n)
	w.line("return %s", code)
	return w.String()
}

// ofStage returns the nodes that a node depends on in its own stage, with itself. It gives those of earlier stages,
// which they are computed from, to earlier.
func (p *Plan) ofStage(n *node, earlier func(*node)) map[*node]bool {
	seen := map[*node]bool{}
	var visit func(*node)
	visit = func(a *node) {
		switch {
		case seen[a]:
		case a.stage < n.stage && !a.op.Condition():
			earlier(a)
		default:
			seen[a] = true
			for _, b := range a.args {
				visit(b)
			}
		}
	}
	visit(n)
	return seen
}
