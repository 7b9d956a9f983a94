package gogen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/formula"
)

// Field is a value that a stage keeps in its struct. Text is its name, or its formula if it has no name.
type Field struct {
	Name, Text string
	// Used says that a later stage reads it, rather than the caller's code alone.
	Used bool
}

// Fields returns the fields of a stage's struct, those that later stages read first.
func (p *Plan) Fields(stage int) []Field {
	var out []Field
	for _, n := range p.nodes {
		if n.field == "" || n.stage != stage {
			continue
		}
		f := Field{Name: n.field, Text: n.name, Used: n.used}
		if n.name == "" {
			f.Text = p.text(n)
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Field) int {
		switch {
		case a.Used == b.Used:
			return 0
		case a.Used:
			return -1
		}
		return 1
	})
	return out
}

// text writes a node as a formula.
func (p *Plan) text(n *node) string {
	var expr func(*node, bool) *formula.Expr
	expr = func(n *node, top bool) *formula.Expr {
		if n.name != "" && !top {
			return &formula.Expr{Op: formula.Name, Name: n.name}
		}
		e := &formula.Expr{Op: n.op, Value: n.value, Name: n.name}
		for _, a := range n.args {
			e.Args = append(e.Args, expr(a, false))
		}
		return e
	}
	return expr(n, true).String()
}

// Code returns the statements that compute the fields of a stage, from the structs of the stages before it.
func (p *Plan) Code(stage int) string {
	w := p.writer(stage)
	compute := func(n *node) bool { return n.needed && n.stage == stage }
	w.count(p.nodes, compute)
	var fields []*node
	for _, n := range p.nodes {
		if n.field != "" && n.stage == stage {
			fields = append(fields, n)
			w.uses[n]++
		}
	}
	w.rows(slices.DeleteFunc(slices.Clone(p.rows), func(n *node) bool { return !compute(n) || n.op == formula.Name }))
	for _, n := range fields {
		code := ""
		if w.uses[n] > 1 {
			code = w.expr(n, 0)
		} else {
			code = w.rounded(n)
		}
		w.line("%s.%s = %s", p.stages[stage].Var, n.field, code)
	}
	return w.String()
}

// Columns returns the statements that write the value of every row to dst, in the order of definition. They read what
// the stages have computed and compute the rest.
func (p *Plan) Columns() string {
	w := p.writer(len(p.stages))
	var reach func(n *node)
	reached := map[*node]bool{}
	reach = func(n *node) {
		if reached[n] || n.field != "" {
			return
		}
		reached[n] = true
		for _, a := range n.args {
			reach(a)
		}
	}
	for _, n := range p.rows {
		reach(n)
	}
	w.count(p.nodes, func(n *node) bool { return reached[n] })
	w.rows(slices.DeleteFunc(slices.Clone(p.rows), func(n *node) bool {
		return !reached[n] || n.op == formula.Name || n.op == formula.Number
	}))
	for i, n := range p.rows {
		w.line("dst[%d] = %s", i, w.expr(n, 0))
	}
	return w.String()
}

// writer writes statements. Values that are used more than once, and rows, get variables.
type writer struct {
	strings.Builder
	plan   *Plan
	stage  int
	uses   map[*node]int
	blocks []map[*node]string // the variables of the enclosing blocks
	next   int
}

func (p *Plan) writer(stage int) *writer {
	return &writer{plan: p, stage: stage, uses: map[*node]int{}, blocks: []map[*node]string{{}}}
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// count finds how often each node is used by those that are computed here.
func (w *writer) count(nodes []*node, compute func(*node) bool) {
	for _, n := range nodes {
		if !compute(n) || n.body != nil {
			continue // a guarded row is its body, in a block
		}
		for _, a := range n.args {
			w.uses[a]++
		}
	}
}

// rows writes a variable for each row. Rows that follow each other under the same condition share a block.
func (w *writer) rows(rows []*node) {
	for i := 0; i < len(rows); {
		guard := rows[i].guard
		if guard == nil {
			w.variable(rows[i], Identifier(rows[i].name))
			i++
			continue
		}
		end := i
		for end < len(rows) && rows[end].guard == guard {
			end++
		}
		condition := w.condition(guard)
		var names []string
		for _, n := range rows[i:end] {
			names = append(names, Identifier(n.name))
		}
		w.line("var %s float64", strings.Join(names, ", "))
		w.line("if %s {", condition)
		w.open()
		for j, n := range rows[i:end] {
			w.assign(n.body, names[j])
			w.blocks[len(w.blocks)-1][n] = names[j]
			w.blocks[len(w.blocks)-1][n.body] = names[j]
		}
		w.close()
		w.line("}")
		for j, n := range rows[i:end] {
			w.blocks[len(w.blocks)-1][n] = names[j]
		}
		i = end
	}
}

func (w *writer) open()  { w.blocks = append(w.blocks, map[*node]string{}) }
func (w *writer) close() { w.blocks = w.blocks[:len(w.blocks)-1] }

// variable computes a node into a new variable.
func (w *writer) variable(n *node, name string) {
	switch {
	case w.lookup(n) != "":
		return
	case n.op == formula.When:
		w.line("var %s float64", name)
		w.assign(n, name)
	default:
		w.line("%s := %s", name, w.rounded(n))
	}
	w.blocks[len(w.blocks)-1][n] = name
}

// assign computes a node into a variable that exists. What only one branch of a when needs is computed in that branch.
func (w *writer) assign(n *node, name string) {
	if _, ok := w.available(n); ok || n.op != formula.When {
		w.line("%s = %s", name, w.rounded(n))
		return
	}
	w.line("if %s {", w.condition(n.args[0]))
	w.open()
	w.assign(n.args[1], name)
	w.close()
	if otherwise := n.args[2]; otherwise.op != formula.Number || otherwise.value != 0 {
		w.line("} else {")
		w.open()
		w.assign(otherwise, name)
		w.close()
	}
	w.line("}")
}

// rounded computes a node. A product is converted to float64, which keeps Go from fusing it with an addition that uses
// it. A variable in between would not.
func (w *writer) rounded(n *node) string {
	if code, ok := w.available(n); ok {
		return code
	}
	switch n.op {
	case formula.When:
		return w.expr(n, 0)
	case formula.Multiply:
		return "float64(" + w.operation(n, 0) + ")"
	default:
		return w.operation(n, 0)
	}
}

func (w *writer) lookup(n *node) string {
	for _, b := range w.blocks {
		if name := b[n]; name != "" {
			return name
		}
	}
	return ""
}

func (w *writer) fresh() string {
	w.next++
	return fmt.Sprintf("x%d", w.next)
}

// turned are the comparisons with their operands exchanged.
var turned = map[formula.Op]string{formula.Less: ">", formula.LessEqual: ">="}

var calls = map[formula.Op]string{
	formula.Min: "min", formula.Max: "max", formula.Floor: "math.Floor", formula.Ceil: "math.Ceil",
	formula.Sqrt: "math.Sqrt", formula.Modulo: "math.Mod", formula.Power: "math.Pow",
}

// available returns the Go expression for a value that has been computed already.
func (w *writer) available(n *node) (string, bool) {
	if name := w.lookup(n); name != "" {
		return name, true
	}
	switch {
	case n.field != "" && n.stage < w.stage:
		return w.plan.stages[n.stage].Var + "." + n.field, true
	case n.op == formula.Number:
		return strconv.FormatFloat(n.value, 'g', -1, 64), true
	case w.plan.readable(n, w.stage):
		return n.code, true
	}
	return "", false
}

// expr returns a Go expression for a node's value, in parentheses if it binds more weakly than least. What it needs
// beforehand is written first.
func (w *writer) expr(n *node, least int) string {
	if code, ok := w.available(n); ok {
		return code
	}
	if w.uses[n] > 1 || n.op == formula.When {
		name := w.fresh()
		if n.name != "" {
			name = Identifier(n.name)
		}
		w.variable(n, name)
		return name
	}
	return w.operation(n, least)
}

// operation computes a node that is not available and not a when.
func (w *writer) operation(n *node, least int) string {
	switch n.op {
	case formula.Name:
		return n.code
	case formula.Negate:
		return "-" + w.factor(n.args[0], formula.BindUnary)
	case formula.CeilDivide:
		return fmt.Sprintf("math.Ceil(%s / %s)", w.expr(n.args[0], formula.BindMultiply),
			w.expr(n.args[1], formula.BindMultiply+1))
	case formula.Less, formula.LessEqual, formula.Equal, formula.NotEqual, formula.And, formula.Or:
		name := w.fresh()
		w.line("var %s float64", name)
		w.line("if %s {\n%s = 1\n}", w.condition(n), name)
		return name
	case formula.Power:
		if e := n.args[1]; e.op == formula.Number && e.value == 4 {
			return "fourth(" + w.expr(n.args[0], 0) + ")"
		} else if e.op == formula.Number && e.value == 2 { // with the bits of math.Pow
			code := w.expr(n.args[0], 0)
			if strings.ContainsAny(code, " (") {
				name := w.fresh()
				w.line("%s := %s", name, code)
				code = name
			}
			return "float64(" + code + " * " + code + ")"
		}
	default: // an operator or a function
	}
	if s, ok := formula.Symbols[n.op]; ok {
		operand := w.expr
		// Go makes an addition of a multiplication by 2.
		doubles := n.op == formula.Multiply && (n.args[0].op == formula.Number || n.args[1].op == formula.Number)
		if n.op == formula.Add || n.op == formula.Subtract || doubles {
			operand = w.factor
		}
		a, b := operand(n.args[0], s.Bind), operand(n.args[1], s.Bind+1)
		return parenthesised(a+" "+s.Text+" "+b, s.Bind, least)
	}
	args := make([]string, len(n.args))
	for i, a := range n.args {
		args[i] = w.expr(a, 0)
	}
	return calls[n.op] + "(" + strings.Join(args, ", ") + ")"
}

// factor writes an operand of an addition. A product is converted as in rounded.
func (w *writer) factor(n *node, least int) string {
	if n.op != formula.Multiply {
		return w.expr(n, least)
	}
	code := w.expr(n, 0)
	if !strings.Contains(code, " ") {
		return code // a variable or a field, which were rounded
	}
	return "float64(" + code + ")"
}

// condition writes a node as a Go condition.
func (w *writer) condition(n *node) string {
	var write func(n *node, least int) string
	write = func(n *node, least int) string {
		s := formula.Symbols[n.op]
		switch n.op {
		case formula.Less, formula.LessEqual, formula.Equal, formula.NotEqual:
			a, symbol, b := n.args[0], s.Text, n.args[1]
			if turned := turned[n.op]; turned != "" && a.op == formula.Number { // the number is more usual on the right
				a, symbol, b = b, turned, a
			}
			return parenthesised(w.expr(a, s.Bind+1)+" "+symbol+" "+w.expr(b, s.Bind+1), s.Bind, least)
		case formula.And, formula.Or:
			return parenthesised(write(n.args[0], s.Bind)+" "+s.Text+" "+write(n.args[1], s.Bind+1), s.Bind, least)
		default:
			return parenthesised(w.expr(n, formula.BindCompare+1)+" != 0", formula.BindCompare, least)
		}
	}
	return write(n, 0)
}

// Helpers is the Go function that the statements call, besides functions of the package math.
const Helpers = `
// fourth returns the fourth power, with the bits of math.Pow(x, 4).
func fourth(x float64) float64 {
	x *= x
	return float64(x * x)
}
`

func parenthesised(code string, bind, least int) string {
	if bind < least {
		return "(" + code + ")"
	}
	return code
}
