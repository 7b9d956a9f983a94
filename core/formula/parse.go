package formula

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// Expr is a parsed formula: a number, a name, or an operation on other expressions.
type Expr struct {
	Op    Op
	Value float64 // of a Number
	Name  string  // of a Name
	Args  []*Expr // of an operation
}

// Op is an operation on up to three values. Conditions are 1 or 0.
type Op uint8

// The operations. Greater and GreaterEqual do not occur: the parser swaps their operands.
const (
	Number Op = iota
	Name
	Negate
	Add
	Subtract
	Multiply
	Divide
	Less
	LessEqual
	Equal
	NotEqual
	And
	Or
	CeilDivide // cdiv
	Modulo     // mod
	Min
	Max
	Power // pow
	Floor
	Ceil
	Sqrt
	When

	opCall // a function in Go, which only a Program has
	opCopy
)

// Condition reports whether the operation gives 1 or 0.
func (o Op) Condition() bool { return o >= Less && o <= Or }

var operators = map[token.Token]Op{
	token.ADD: Add, token.SUB: Subtract, token.MUL: Multiply, token.QUO: Divide, token.LSS: Less, token.LEQ: LessEqual,
	token.GTR: Less, token.GEQ: LessEqual, token.EQL: Equal, token.NEQ: NotEqual, token.LAND: And, token.LOR: Or,
}

var functions = map[string]struct {
	op    Op
	arity int
}{
	"cdiv": {CeilDivide, 2}, "mod": {Modulo, 2}, "min": {Min, 2}, "max": {Max, 2}, "pow": {Power, 2},
	"floor": {Floor, 1}, "ceil": {Ceil, 1}, "sqrt": {Sqrt, 1}, "when": {When, 3},
}

// Parse reads a formula. It does not know which names have a value; a min or max of more than two arguments becomes
// nested ones, from the left.
func Parse(formula string) (*Expr, error) {
	tree, err := parser.ParseExpr(formula)
	if err == nil {
		var e *Expr
		if e, err = parse(tree); err == nil {
			return e, nil
		}
	}
	return nil, fmt.Errorf("formula %q: %w", formula, err)
}

func parse(tree ast.Expr) (*Expr, error) {
	switch e := tree.(type) {
	case *ast.ParenExpr:
		return parse(e.X)
	case *ast.BasicLit:
		v, err := strconv.ParseFloat(e.Value, 64)
		return &Expr{Op: Number, Value: v}, err
	case *ast.Ident:
		return &Expr{Op: Name, Name: e.Name}, nil
	case *ast.UnaryExpr:
		if e.Op != token.SUB {
			return nil, fmt.Errorf("unknown operator %q", e.Op)
		}
		return operation(Negate, e.X)
	case *ast.BinaryExpr:
		o, ok := operators[e.Op]
		if !ok {
			return nil, fmt.Errorf("unknown operator %q", e.Op)
		}
		if e.Op == token.GTR || e.Op == token.GEQ { // < and <= written the other way round
			return operation(o, e.Y, e.X)
		}
		return operation(o, e.X, e.Y)
	case *ast.CallExpr:
		return parseCall(e)
	default:
		return nil, fmt.Errorf("unexpected %T", tree)
	}
}

func operation(op Op, args ...ast.Expr) (*Expr, error) {
	out := &Expr{Op: op, Args: make([]*Expr, len(args))}
	for i, a := range args {
		var err error
		if out.Args[i], err = parse(a); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func parseCall(e *ast.CallExpr) (*Expr, error) {
	name, ok := e.Fun.(*ast.Ident)
	if !ok {
		return nil, fmt.Errorf("unexpected %T", e.Fun)
	}
	f, ok := functions[name.Name]
	if !ok {
		return nil, fmt.Errorf("unknown function %q", name.Name)
	}
	out, err := operation(f.op, e.Args...)
	if err != nil {
		return nil, err
	}
	if (f.op == Min || f.op == Max) && len(out.Args) > 2 { // these take more than two as well
		nested := out.Args[0]
		for _, a := range out.Args[1:] {
			nested = &Expr{Op: f.op, Args: []*Expr{nested, a}}
		}
		return nested, nil
	}
	if len(out.Args) != f.arity {
		return nil, fmt.Errorf("%s takes %d arguments, not %d", name.Name, f.arity, len(out.Args))
	}
	return out, nil
}

// Binding strength of the operators in formulas and in Go, weakest first. Calls, names and numbers bind strongest.
const (
	BindOr = iota + 1
	BindAnd
	BindCompare
	BindAdd
	BindMultiply
	BindUnary
)

// Symbols are the operators as formulas and Go write them, and how strongly they bind.
var Symbols = map[Op]struct {
	Text string
	Bind int
}{
	Or: {"||", BindOr}, And: {"&&", BindAnd}, Less: {"<", BindCompare}, LessEqual: {"<=", BindCompare},
	Equal: {"==", BindCompare}, NotEqual: {"!=", BindCompare}, Add: {"+", BindAdd}, Subtract: {"-", BindAdd},
	Multiply: {"*", BindMultiply}, Divide: {"/", BindMultiply}, Negate: {"-", BindUnary},
}

// names are the functions as they are written.
var names = func() map[Op]string {
	out := map[Op]string{}
	for name, f := range functions {
		out[f.op] = name
	}
	return out
}()

// String writes the expression as a formula that parses to the same expression.
func (e *Expr) String() string {
	var b strings.Builder
	e.write(&b, 0)
	return b.String()
}

// write puts parentheses around what binds more weakly than least.
func (e *Expr) write(b *strings.Builder, least int) {
	switch e.Op {
	case Number:
		b.WriteString(strconv.FormatFloat(e.Value, 'g', -1, 64))
		return
	case Name:
		b.WriteString(e.Name)
		return
	default: // an operator or a function
	}
	s, ok := Symbols[e.Op]
	if !ok {
		b.WriteString(names[e.Op])
		b.WriteByte('(')
		for i, a := range e.Args {
			if i > 0 {
				b.WriteString(", ")
			}
			a.write(b, 0)
		}
		b.WriteByte(')')
		return
	}
	if s.Bind < least {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	if e.Op == Negate {
		b.WriteString(s.Text)
		e.Args[0].write(b, BindUnary)
		return
	}
	e.Args[0].write(b, s.Bind)
	b.WriteString(" " + s.Text + " ")
	e.Args[1].write(b, s.Bind+1) // operators group from the left
}
