// Package gogen writes formulas as Go code. It is the second backend of core/formula, beside formula.Program. A model
// whose formulas are fixed when it is built can use it. It computes the same bits several times as fast.
//
// Formulas are computed in stages: first what depends on the device alone, then what depends on the kernel, and so on.
// Each part of a formula goes to the first stage that knows all that the part depends on. A formula can thus be written
// for its reader. No part of it is computed more often than necessary.
package gogen

import (
	"fmt"
	"go/token"
	"math"
	"strings"

	"github.com/origami-gemm/origami/core/formula"
)

// Deps is a set of the things that a value can depend on; the caller gives the bits their meaning. A value with none
// depends on the device alone, or is a constant.
type Deps uint16

// Stage computes the values that depend on nothing but Knows. Its values are fields of a struct.
type Stage struct {
	Var   string // the variable that holds the struct, in all code
	Knows Deps
}

// Plan is a set of formulas and the stages that compute them.
type Plan struct {
	// Number, if set, returns the Go expression of the device's number of a name that no input or row has.
	Number func(name string) string

	stages []Stage
	names  map[string]*node
	nodes  []*node // in the order of definition
	rows   []*node // the named formulas
	apart  []*node // the formulas of Apart
	byKey  map[string]*node
	parts  []int // by stage, how many fields have no name among the formulas
}

// node is a value: an input, a number, or an operation on other values. The same operation on the same values is one
// node, wherever it occurs.
type node struct {
	id    int
	op    formula.Op
	value float64
	args  []*node
	stage int
	deps  Deps

	code  string // of an input: the Go expression for it
	reach Reach  // of an input
	name  string // of a row: the first name that it was given
	guard *node  // of a row: the condition without which it is 0
	body  *node  // of a guarded row: its value if the condition holds

	needed bool   // some kept value depends on it
	field  string // the field of its stage's struct, if it has one
	used   bool   // a later stage reads the field
}

// New returns a plan without formulas. The stages come in the order in which they run.
func New(stages ...Stage) *Plan {
	return &Plan{stages: stages, names: map[string]*node{}, byKey: map[string]*node{}, parts: make([]int, len(stages))}
}

// Reach says where the Go expression for an input can be used.
type Reach uint8

const (
	// Once is for a call. It is made once, in the first stage that knows what the input depends on.
	Once Reach = iota
	// Own is for a variable that the first such stage has, and Columns.
	Own
	// Everywhere is for a variable that all stages from there on have, and Columns.
	Everywhere
)

// Input gives a name to a value that the formulas do not compute. Code is the Go expression for it.
func (p *Plan) Input(name string, on Deps, code string, reach Reach) error {
	n, err := p.add("input "+name, &node{deps: on, op: formula.Name, code: code, reach: reach, name: name})
	if err != nil {
		return fmt.Errorf("input %s: %w", name, err)
	}
	return p.give(name, n)
}

// readable reports whether the expression for an input can be used in a stage.
func (p *Plan) readable(n *node, stage int) bool {
	switch {
	case n.op != formula.Name:
		return false
	case n.reach == Own:
		return stage == n.stage || stage == len(p.stages)
	}
	return n.reach == Everywhere
}

// Define adds a row: a formula over the names so far, and its name. A guard is a formula, too: with one, the row is
// when(guard, formula, 0).
func (p *Plan) Define(name, text, guard string) error {
	body, err := p.read(text)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	row := body
	if guard != "" {
		condition, err := p.read(guard)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if row, err = p.operation(formula.When, condition, body, p.number(0)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		row.guard, row.body = condition, body
	}
	if row.name == "" {
		row.name = name
	}
	p.rows = append(p.rows, row)
	return p.give(name, row)
}

// Show makes a row of an input.
func (p *Plan) Show(name string) error {
	n, ok := p.names[name]
	if !ok {
		return fmt.Errorf("unknown name %q", name)
	}
	p.rows = append(p.rows, n)
	return nil
}

func (p *Plan) give(name string, n *node) error {
	if _, taken := p.names[name]; taken || !token.IsIdentifier(name) {
		return fmt.Errorf("the name %q is taken or is no identifier", name)
	}
	p.names[name] = n
	return nil
}

func (p *Plan) read(text string) (*node, error) {
	e, err := formula.Parse(text)
	if err != nil {
		return nil, err
	}
	return p.node(e)
}

func (p *Plan) node(e *formula.Expr) (*node, error) {
	switch e.Op {
	case formula.Number:
		return p.number(e.Value), nil
	case formula.Name:
		if n, ok := p.names[e.Name]; ok {
			return n, nil
		}
		if p.Number == nil {
			return nil, fmt.Errorf("unknown name %q", e.Name)
		}
		err := p.Input(e.Name, 0, p.Number(e.Name), Once)
		return p.names[e.Name], err
	default: // an operator or a function
	}
	args := make([]*node, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = p.node(a); err != nil {
			return nil, err
		}
	}
	return p.operation(e.Op, args...)
}

func (p *Plan) number(v float64) *node {
	n, _ := p.add(fmt.Sprintf("number %x", math.Float64bits(v)), &node{op: formula.Number, value: v})
	return n
}

func (p *Plan) operation(op formula.Op, args ...*node) (*node, error) {
	n, key := &node{op: op, args: args}, fmt.Sprint(op)
	numbers := true
	e := &formula.Expr{Op: op}
	for _, a := range args {
		numbers = numbers && a.op == formula.Number
		e.Args = append(e.Args, &formula.Expr{Op: formula.Number, Value: a.value})
	}
	if numbers { // Go computes with constants by other rules
		v, err := formula.Eval(e.String(), nil)
		return p.number(v), err
	}
	for _, a := range args {
		n.deps |= a.deps
		key += fmt.Sprint(" ", a.id)
	}
	return p.add(key, n)
}

// add returns the node of a key, which is the given one if there is none so far.
func (p *Plan) add(key string, n *node) (*node, error) {
	if have, ok := p.byKey[key]; ok {
		return have, nil
	}
	for n.stage < len(p.stages) && n.deps&^p.stages[n.stage].Knows != 0 {
		n.stage++
	}
	if n.stage == len(p.stages) {
		return nil, fmt.Errorf("no stage knows all that it depends on")
	}
	n.id = len(p.nodes)
	p.nodes = append(p.nodes, n)
	p.byKey[key] = n
	return n, nil
}

// Keep marks the values that the caller's code reads from the structs. Call it once, after all definitions. Code
// computes the kept values and what they depend on; everything else is left to Columns.
func (p *Plan) Keep(names ...string) error {
	for _, name := range names {
		n, ok := p.names[name]
		if !ok || n.op == formula.Number || n.op == formula.Name {
			return fmt.Errorf("%q is no value that a stage computes", name)
		}
		n.need()
		n.field = Identifier(name)
	}
	for _, n := range p.apart {
		p.ofStage(n, func(a *node) { a.need() })
	}
	for _, n := range p.nodes {
		if !n.needed {
			continue
		}
		for _, a := range n.args {
			p.store(a, n.stage)
		}
	}
	for _, n := range p.apart {
		p.ofStage(n, func(a *node) { p.store(a, n.stage) })
	}
	for _, n := range p.rows { // Columns computes the rest
		p.inputs(n, map[*node]bool{})
	}
	return nil
}

func (n *node) need() {
	if n.needed {
		return
	}
	n.needed = true
	for _, a := range n.args {
		a.need()
	}
}

// store gives a node a field if a later stage uses it. A condition is evaluated where it is used, since Go has it as a
// bool.
func (p *Plan) store(n *node, user int) {
	if n.op.Condition() {
		for _, a := range n.args {
			p.store(a, user)
		}
		return
	}
	if n.stage >= user || p.readable(n, user) || n.op == formula.Number {
		return
	}
	n.used = n.used || user < len(p.stages)
	if n.field != "" {
		return
	}
	if n.needed = true; n.name != "" {
		n.field = Identifier(n.name)
		return
	}
	p.parts[n.stage]++
	n.field = fmt.Sprintf("part%d", p.parts[n.stage])
}

// inputs stores the calls that a node without a field depends on, for Columns.
func (p *Plan) inputs(n *node, seen map[*node]bool) {
	if seen[n] || n.field != "" {
		return
	}
	seen[n] = true
	if n.op == formula.Name {
		p.store(n, len(p.stages))
	}
	for _, a := range n.args {
		p.inputs(a, seen)
	}
}

// Identifier writes a snake_case name as the Go identifier that fields and variables have.
func Identifier(name string) string {
	parts := strings.Split(name, "_")
	for i, s := range parts {
		if i > 0 && s != "" {
			parts[i] = strings.ToUpper(s[:1]) + s[1:]
		}
	}
	out := strings.Join(parts, "")
	if token.IsKeyword(out) {
		return out + "_"
	}
	return out
}
