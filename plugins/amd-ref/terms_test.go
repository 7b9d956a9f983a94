package amdref

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// evaluate computes a formula of a Term.
func evaluate(expr ast.Expr, names map[string]float64) (float64, error) {
	switch x := expr.(type) {
	case *ast.ParenExpr:
		return evaluate(x.X, names)
	case *ast.BasicLit:
		return strconv.ParseFloat(x.Value, 64)
	case *ast.Ident:
		v, ok := names[x.Name]
		if !ok {
			return 0, fmt.Errorf("unknown name %s", x.Name)
		}
		return v, nil
	case *ast.BinaryExpr:
		a, err := evaluate(x.X, names)
		if err != nil {
			return 0, err
		}
		b, err := evaluate(x.Y, names)
		if err != nil {
			return 0, err
		}
		switch x.Op {
		case token.ADD:
			return a + b, nil
		case token.SUB:
			return a - b, nil
		case token.MUL:
			return a * b, nil
		case token.QUO:
			return a / b, nil
		case token.LEQ:
			return flag(a <= b), nil
		case token.GTR:
			return flag(a > b), nil
		case token.EQL:
			return flag(a == b), nil
		}
		return 0, fmt.Errorf("unknown operator %s", x.Op)
	case *ast.CallExpr:
		args := make([]float64, len(x.Args))
		for i, arg := range x.Args {
			var err error
			if args[i], err = evaluate(arg, names); err != nil {
				return 0, err
			}
		}
		name := x.Fun.(*ast.Ident).Name
		switch {
		case name == "cdiv" && len(args) == 2:
			return math.Ceil(args[0] / args[1]), nil
		case name == "floor" && len(args) == 1:
			return math.Floor(args[0]), nil
		case name == "mod" && len(args) == 2:
			return math.Mod(args[0], args[1]), nil
		case name == "when" && len(args) == 3:
			if args[0] != 0 {
				return args[1], nil
			}
			return args[2], nil
		case name == "min" && len(args) > 1:
			v := args[0]
			for _, arg := range args {
				v = math.Min(v, arg)
			}
			return v, nil
		case name == "max" && len(args) > 1:
			v := args[0]
			for _, arg := range args {
				v = math.Max(v, arg)
			}
			return v, nil
		}
		return 0, fmt.Errorf("unknown function %s of %d arguments", name, len(args))
	}
	return 0, fmt.Errorf("unknown expression %T", expr)
}

// Each formula, evaluated over the other columns of the same row, the parameters and the constants, gives its column.
func TestFormulas(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		arch string
		opts []string
		p    gemm.Problem
	}{
		{"gfx942", nil, gemm.Problem{M: 1000, N: 3000, K: 777, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorK, DType: gemm.FP16}},
		{"gfx942", []string{"occ=4"}, gemm.Problem{M: 77, N: 640, K: 4096, Batch: 5, AMajor: gemm.MajorM, BMajor: gemm.MajorN, DType: gemm.FP8}},
		{"gfx942", []string{"grid=k_split_aware"}, gemm.Problem{M: 256, N: 256, K: 65536, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorN, DType: gemm.BF16}},
		{"gfx950", nil, gemm.Problem{M: 128, N: 256, K: 8192, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorK, DType: gemm.TF32}},
		{"gfx90a", nil, gemm.Problem{M: 8192, N: 8192, K: 100, Batch: 1, AMajor: gemm.MajorM, BMajor: gemm.MajorK, DType: gemm.INT8}},
		{"gfx942", nil, gemm.Problem{M: 60_000_000, N: 512, K: 64, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorK, DType: gemm.FP16}}, // above the L2's capacity times 1024
	} {
		a := open(t, c.arch, c.opts...)
		d := a.Describe()
		list, err := a.Candidates(ctx, c.p, arch.Space{BlockM: []int{16, 64, 256}, BlockN: []int{32, 96}, BlockK: []int{16, 32, 80, 512}, SplitK: []int{1, 3}})
		if err != nil {
			t.Fatal(err)
		}
		configs := list.Configs
		for _, r := range list.Rejected {
			configs = append(configs, r.Config)
		}
		values := make([]float64, len(configs)*len(d.Terms))
		if err := a.Terms(ctx, values, c.p, configs); err != nil {
			t.Fatal(err)
		}
		names := map[string]float64{"m": float64(c.p.M), "n": float64(c.p.N), "k": float64(c.p.K), "batch": float64(c.p.Batch)}
		for _, p := range d.Params {
			names[p.Name] = p.Value
		}
		for _, constant := range d.Constants {
			names[constant.Name] = constant.Value
		}
		for i, cfg := range configs {
			row := values[i*len(d.Terms) : (i+1)*len(d.Terms)]
			names["block_m"], names["block_n"], names["block_k"] = float64(cfg.BlockM), float64(cfg.BlockN), float64(cfg.BlockK)
			names["split_k"] = float64(cfg.SplitK)
			rejected := false
			for j, term := range d.Terms {
				names[term.Name] = row[j]
				rejected = rejected || term.Name == "rejected" && row[j] == 1
			}
			shares := 0.0
			for j, term := range d.Terms {
				if term.Kind == arch.KindShare {
					shares += row[j]
				}
				if strings.HasPrefix(term.Formula, "rule:") {
					continue
				}
				expr, err := parser.ParseExpr(term.Formula)
				if err != nil {
					t.Fatalf("%s: %v", term.Name, err)
				}
				got, err := evaluate(expr, names)
				if err != nil {
					t.Fatalf("%s = %s: %v", term.Name, term.Formula, err)
				}
				if term.Kind == arch.KindTotal && rejected {
					if row[j] != arch.RejectedTotal {
						t.Errorf("%s of a rejected configuration is %v", term.Name, row[j])
					}
					continue
				}
				if !near(got, row[j], 1e-12) {
					t.Errorf("%s %s %s: %s = %v, but its formula gives %v", d.ID(), c.p, cfg, term.Name, row[j], got)
				}
			}
			if total := names["total_latency"]; !rejected && !near(shares, total, 1e-9) {
				t.Errorf("%s %s %s: the shares add up to %v, the total is %v", d.ID(), c.p, cfg, shares, total)
			}
		}
	}
}

func near(a, b, relative float64) bool {
	return math.Abs(a-b) <= relative*max(math.Abs(a), math.Abs(b))
}

// The schema is complete: every column says what it is, in what unit, how it is computed and where that is from, and what
// formulas refer to exists.
func TestSchema(t *testing.T) {
	for _, mode := range gridModes {
		d := open(t, "gfx942", "grid="+mode).Describe()
		seen := map[string]bool{}
		kinds := map[arch.TermKind]int{}
		for _, term := range d.Terms {
			if term.Name == "" || term.Unit == "" || term.Formula == "" || term.Doc == "" || term.Source == "" || seen[term.Name] {
				t.Errorf("incomplete or repeated term %+v", term)
			}
			seen[term.Name] = true
			kinds[term.Kind]++
		}
		if kinds[arch.KindTotal] != 1 || kinds[arch.KindStep] != 4 || kinds[arch.KindShare] != 7 {
			t.Errorf("terms by kind: %v", kinds)
		}
		for _, c := range d.Constants {
			if c.Name == "" || c.Unit == "" || c.Doc == "" || c.Source == "" || seen[c.Name] {
				t.Errorf("incomplete or repeated constant %+v", c)
			}
			seen[c.Name] = true
		}
		for _, p := range d.Params {
			if p.Source == "" || p.Method == "" || p.Date == "" || seen[p.Name] {
				t.Errorf("incomplete or repeated parameter %+v", p)
			}
		}
	}
}
