package nvidia_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/internal/testing/nvtest"
)

const (
	plugins = "github.com/origami-gemm/origami/plugins/"
	module  = plugins + "nvidia"
)

// source is a file of the plugin, except tests, by its path below plugins/nvidia.
type source struct {
	path string
	file *ast.File
	set  *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		s := source{path: name, set: token.NewFileSet()}
		s.file, err = parser.ParseFile(s.set, name, nil, parser.SkipObjectResolution)
		all = append(all, s)
		return err
	})
	must.Need(t, err == nil && len(all) >= 50, "%d files, %v", len(all), err)
	return all
}

// under reports whether a path is one of some folders or files, or inside one of them.
func under(name string, places ...string) bool {
	return slices.ContainsFunc(places, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
}

// numbered matches the name of an architecture.
var numbered = regexp.MustCompile(`^(sm|compute)_?[0-9]+[af]?$`)

// Only gpu knows one architecture from another: no other package compares compute capabilities, SMs or generations, or
// names one. The root lists the SMs. data and gpu/target's table of instructions in ptx state facts of one architecture
// each and compare nothing.
func TestArchitecturesAreKnownInGPUAlone(t *testing.T) {
	for _, s := range sources(t) {
		if under(s.path, "gpu") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				comparison := n.Op == token.EQL || n.Op == token.NEQ || n.Op == token.LSS || n.Op == token.LEQ ||
					n.Op == token.GTR || n.Op == token.GEQ
				if comparison && (identity(n.X) || identity(n.Y)) && !isNil(n.X) && !isNil(n.Y) {
					t.Errorf("%s compares an architecture; let gpu.SM say what the SM has", s.set.Position(n.Pos()))
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && identity(n.Tag) {
					t.Errorf("%s switches on an architecture; let gpu.SM say what the SM has", s.set.Position(n.Pos()))
				}
			case *ast.IndexExpr:
				if identity(n.Index) {
					t.Errorf("%s looks up an architecture; let gpu.SM say what the SM has", s.set.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				from, ok := n.X.(*ast.Ident)
				if ok && from.Name == "gpu" && listed.MatchString(n.Sel.Name) && s.path != list {
					t.Errorf("%s names %s; let gpu.SM say what the SM has", s.set.Position(n.Pos()), n.Sel.Name)
				}
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				if err == nil && numbered.MatchString(text) && !under(s.path, "data") {
					t.Errorf("%s names the architecture %s; let gpu.SM say what the SM has", s.set.Position(n.Pos()), text)
				}
			}
			return true
		})
	}
}

// listed matches the SMs that package gpu exports.
var listed = regexp.MustCompile(`^SM[0-9]+$`)

// list is the file that lists the architectures and their kernel families.
const list = "nvidia.go"

func isNil(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "nil"
}

// identity reports whether an expression says which architecture it is: a compute capability, a generation, or an SM
// itself.
func identity(e ast.Expr) bool {
	if s, ok := e.(*ast.SelectorExpr); ok && (s.Sel.Name == "SM" || listed.MatchString(s.Sel.Name)) {
		return true
	}
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "CC" || n.Sel.Name == "Generation"
		case *ast.Ident:
			found = found || n.Name == "CC" || n.Name == "cc"
		case *ast.CallExpr:
			return false // passing it to a function is not a comparison
		}
		return !found
	})
	return found
}

// The name of a kernel family appears only in its package, in its data, and in the list of the root package. Models
// and shared packages know families by interface.
func TestFamiliesAreKnownByInterface(t *testing.T) {
	var families []string
	for _, a := range nvtest.Provider(t).Manifest().Archs {
		for _, k := range a.Kernels {
			if !slices.Contains(families, k) {
				families = append(families, k)
			}
		}
	}
	// Calibration measures the instructions that two families are called after.
	// The model in the folder sgemm is of one family, which counts what its kernels do.
	const generated, measured, model = "gemmgen/families", "calibration", "sgemm"
	own := map[string]string{model: model, "fused_moe": "fusedmoe", "block_fp8": "fusedmoe"} // models of their own
	for _, s := range sources(t) {
		for _, family := range families {
			folder, _, _ := strings.Cut(family, "_") // of several families that compute alike
			defines := under(s.path, "kernel/"+folder, "gemmgen/"+folder)
			for _, i := range s.file.Imports {
				to, _ := strconv.Unquote(i.Path.Value)
				concrete := to == module+"/kernel/"+family || to == module+"/gemmgen/"+family
				must.That(t, !concrete || defines || under(s.path, list, generated, measured, model),
					"%s imports the family %s; use the interface", s.path, family)
			}
			// A term of the model pipelined and a ceiling are called after the instruction, as is the family. The generator of
			// models names their packages.
			instruction := family == "wgmma" && under(s.path, "pipelined/terms/terms.go", "gpu/ceilings.go")
			if defines || instruction || under(s.path, "data", measured, "internal/gen") ||
				own[family] != "" && under(s.path, own[family]) {
				continue
			}
			ast.Inspect(s.file, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && l.Value == strconv.Quote(family) {
					t.Errorf("%s names the family %s; ask the family instead", s.set.Position(l.Pos()), family)
				}
				return true
			})
		}
	}
}

// Imports point from the root to the models, to kernel families, to gpu. The models never import each other.
func TestArrows(t *testing.T) {
	// A package may import the packages of its row, and packages below them.
	allowed := map[string][]string{
		"gpu":                    {"gpu/target"},
		"gpu/target":             {},
		"kernel":                 {"gpu", "gemmgen"},
		"tritonblas":             {"gpu", "kernel", "tritonblas"},
		"pipelined":              {"gpu", "kernel", "pipelined"},
		"fusedmoe":               {"gpu", "fusedmoe"},
		"pin":                    {"gpu", "pin"},
		"sgemm":                  {"gpu", "kernel", "kernel/sgemm", "gemmgen/sgemm", "sgemm"},
		"data":                   {},
		"ptx":                    {"gpu/target", "ptx"},
		"gemmgen":                {"gpu/target", "ptx", "gemmgen"},
		"calibration":            {"gpu", "ptx", "gemmgen"},
		"cuda":                   {"gpu/target", "ptx", "gemmgen"},
		"cmd":                    {".", "cuda"},
		"internal/gen":           {"pipelined", "sgemm", "tritonblas", "fusedmoe", "pin"},
		"kernel/ (a family)":     {"gpu", "kernel", "gemmgen"},
		"pipelined/ (a helper)":  {"gpu", "kernel", "pipelined"},
		"sgemm/ (a helper)":      {"gpu", "sgemm"},
		"tritonblas/ (a helper)": {"gpu", "tritonblas"},
		"fusedmoe/ (a helper)":   {},
		"pin/ (a helper)":        {},
	}
	for _, s := range sources(t) {
		row := path.Dir(s.path)
		switch {
		case row == ".": // the root
			continue
		case under(row, "kernel") && row != "kernel":
			row = "kernel/ (a family)"
		case under(row, "pipelined", "sgemm", "tritonblas", "fusedmoe", "pin") && strings.Contains(row, "/"):
			row, _, _ = strings.Cut(row, "/")
			row += "/ (a helper)"
		case under(row, "ptx", "gemmgen", "cmd"):
			row, _, _ = strings.Cut(row, "/")
		}
		may, ok := allowed[row]
		must.That(t, ok, "%s is in no row of this test: say what it may import", s.path)
		for _, i := range s.file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			to, ours := strings.CutPrefix(path, module)
			must.That(t, ours || !strings.HasPrefix(path, plugins) || path == plugins+"costs",
				"%s imports %s, which is for the root alone", s.path, path)
			if !ours {
				continue
			}
			to = strings.TrimPrefix(to, "/")
			if to == "" {
				to = "."
			}
			if !slices.ContainsFunc(
				may,
				func(p string) bool { return to == p || p != "." && p != "kernel" && under(to, p) },
			) {
				t.Errorf("%s imports %s, and may import %s", s.path, to, strings.Join(may, ", "))
			}
		}
	}
}

// What a device or an SM has is in device files, in gpu and in gpu/target, and in no other package: not the registers
// of a thread or of an SM, its threads, its shared memory, or the CTAs of a grid. Masks and descriptors are written in
// hexadecimal or as shifts of 1.
func TestHardwareNumbersAreInGPUAlone(t *testing.T) {
	numbers := map[string]string{
		"255": "registers of a thread", "65535": "CTAs of a grid", "65536": "registers of an SM",
		"2048": "threads of an SM", "1536": "threads of an SM",
	}
	for _, kib := range []int{48, 99, 100, 163, 164, 227, 228} {
		numbers[strconv.Itoa(kib<<10)] = "shared memory of an SM"
		numbers[strconv.Itoa(kib)+" << 10"] = "shared memory of an SM"
	}
	others := map[string]string{ // what the numbers mean in these files
		"cuda/memory.go": "alignment of 256", "cuda/numbers.go": "range of int8", "cuda/operands.go": "range of int8",
		"ptx/builder.go": "room for instructions", "kernel/timings.go": "sizes of K",
	}
	for _, s := range sources(t) {
		generated := strings.HasPrefix(path.Base(s.path), "z")
		if under(s.path, "gpu", "data") || others[s.path] != "" || generated {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			text := ""
			switch n := n.(type) {
			case *ast.BasicLit:
				text = strings.ReplaceAll(n.Value, "_", "")
			case *ast.BinaryExpr:
				x, isLiteral := n.X.(*ast.BasicLit)
				y, by := n.Y.(*ast.BasicLit)
				if isLiteral && by && n.Op == token.SHL {
					text = x.Value + " << " + y.Value
				}
			}
			if what := numbers[text]; what != "" {
				t.Errorf("%s: %s looks like the %s; take it from gpu.Device, gemmgen.Limits or gpu/target",
					s.set.Position(n.Pos()), text, what)
			}
			return true
		})
	}
}
