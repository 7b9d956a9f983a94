// Package formula reads the formulas that a term schema carries: it evaluates them, so that a test can hold a model to
// what it says it computes, and it puts numbers in for names, so that a reader can follow.
//
// Formulas are Go expressions over names, numbers, + - * / and comparisons, with the functions cdiv(a, b) = ⌈a/b⌉,
// min, max, floor, ceil, sqrt, mod(a, b), pow(a, b) and when(condition, then, else). A formula that starts with "rule:"
// is prose and has no value.
package formula

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"math"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// IsRule reports whether a formula is prose.
func IsRule(f string) bool { return strings.HasPrefix(f, "rule:") }

// Values returns every name that a formula of d may use, with its value: parameters, constants, the problem (m, n, k,
// batch, element_bytes, output_bytes), the configuration (block_m, …, split_k) and the row of terms.
func Values(d *arch.Description, p gemm.Problem, c gemm.Config, row []float64) map[string]float64 {
	v := map[string]float64{
		"m": float64(p.M), "n": float64(p.N), "k": float64(p.K), "batch": float64(p.Batch),
		"element_bytes": float64(p.DType.Bits()) / 8, "output_bytes": float64(p.DType.OutputBits()) / 8,
		"block_m": float64(c.BlockM), "block_n": float64(c.BlockN), "block_k": float64(c.BlockK),
		"group_m": float64(c.GroupM), "num_warps": float64(c.NumWarps), "num_stages": float64(c.NumStages), "split_k": float64(c.SplitK),
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

// Eval computes a formula. Division is real division; conditions are 1 or 0.
func Eval(f string, values map[string]float64) (float64, error) {
	expr, err := parser.ParseExpr(f)
	if err != nil {
		return 0, fmt.Errorf("formula %q: %w", f, err)
	}
	v, err := eval(expr, values)
	if err != nil {
		return 0, fmt.Errorf("formula %q: %w", f, err)
	}
	return v, nil
}

func eval(expr ast.Expr, values map[string]float64) (float64, error) {
	switch e := expr.(type) {
	case *ast.ParenExpr:
		return eval(e.X, values)
	case *ast.BasicLit:
		return strconv.ParseFloat(e.Value, 64)
	case *ast.Ident:
		v, ok := values[e.Name]
		if !ok {
			return 0, fmt.Errorf("unknown name %q", e.Name)
		}
		return v, nil
	case *ast.UnaryExpr:
		v, err := eval(e.X, values)
		if err == nil && e.Op != token.SUB {
			err = fmt.Errorf("unknown operator %q", e.Op)
		}
		return -v, err
	case *ast.BinaryExpr:
		return binary(e, values)
	case *ast.CallExpr:
		return call(e, values)
	default:
		return 0, fmt.Errorf("unexpected %T", expr)
	}
}

func binary(e *ast.BinaryExpr, values map[string]float64) (float64, error) {
	x, err := eval(e.X, values)
	if err != nil {
		return 0, err
	}
	y, err := eval(e.Y, values)
	if err != nil {
		return 0, err
	}
	truth := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	switch e.Op {
	case token.ADD:
		return x + y, nil
	case token.SUB:
		return x - y, nil
	case token.MUL:
		return x * y, nil
	case token.QUO:
		return x / y, nil
	case token.LSS:
		return truth(x < y), nil
	case token.LEQ:
		return truth(x <= y), nil
	case token.GTR:
		return truth(x > y), nil
	case token.GEQ:
		return truth(x >= y), nil
	case token.EQL:
		return truth(x == y), nil
	case token.NEQ:
		return truth(x != y), nil
	case token.LAND:
		return truth(x != 0 && y != 0), nil
	case token.LOR:
		return truth(x != 0 || y != 0), nil
	default:
		return 0, fmt.Errorf("unknown operator %q", e.Op)
	}
}

func call(e *ast.CallExpr, values map[string]float64) (float64, error) {
	name, ok := e.Fun.(*ast.Ident)
	if !ok {
		return 0, fmt.Errorf("unexpected %T", e.Fun)
	}
	args := make([]float64, len(e.Args))
	for i, a := range e.Args {
		var err error
		if args[i], err = eval(a, values); err != nil {
			return 0, err
		}
	}
	functions := map[string]struct {
		arity int
		f     func() float64
	}{
		"cdiv":  {2, func() float64 { return math.Ceil(args[0] / args[1]) }},
		"mod":   {2, func() float64 { return math.Mod(args[0], args[1]) }},
		"min":   {2, func() float64 { return min(args[0], args[1]) }},
		"max":   {2, func() float64 { return max(args[0], args[1]) }},
		"pow":   {2, func() float64 { return math.Pow(args[0], args[1]) }},
		"floor": {1, func() float64 { return math.Floor(args[0]) }},
		"ceil":  {1, func() float64 { return math.Ceil(args[0]) }},
		"sqrt":  {1, func() float64 { return math.Sqrt(args[0]) }},
		"when": {3, func() float64 {
			if args[0] != 0 {
				return args[1]
			}
			return args[2]
		}},
	}
	f, ok := functions[name.Name]
	if !ok {
		return 0, fmt.Errorf("unknown function %q", name.Name)
	}
	// min and max take more than two arguments as well.
	if (name.Name == "min" || name.Name == "max") && len(args) > 2 {
		v := args[0]
		for _, a := range args[1:] {
			if name.Name == "min" {
				v = min(v, a)
			} else {
				v = max(v, a)
			}
		}
		return v, nil
	}
	if len(args) != f.arity {
		return 0, fmt.Errorf("%s takes %d arguments, not %d", name.Name, f.arity, len(args))
	}
	return f.f(), nil
}

// Substitute returns the formula with every name replaced by its value as text writes it. Function names, numbers and
// names without a value stay; prose comes back unchanged.
func Substitute(f string, values map[string]float64, text func(float64) string) string {
	if IsRule(f) {
		return f
	}
	var s scanner.Scanner
	files := token.NewFileSet()
	src := []byte(f)
	s.Init(files.AddFile("", files.Base(), len(src)), src, func(token.Position, string) {}, 0)
	var out strings.Builder
	last := 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		offset := files.Position(pos).Offset
		if tok != token.IDENT {
			continue
		}
		v, ok := values[lit]
		rest := strings.TrimLeft(f[offset+len(lit):], " ")
		if !ok || strings.HasPrefix(rest, "(") {
			continue
		}
		out.WriteString(f[last:offset])
		out.WriteString(text(v))
		last = offset + len(lit)
	}
	out.WriteString(f[last:])
	return out.String()
}
