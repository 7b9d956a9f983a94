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

	"github.com/origami-gemm/origami/plugins/nvidia/internal/nvtest"
)

const module = "github.com/origami-gemm/origami/plugins/nvidia"

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
	if err != nil || len(all) < 50 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

// under reports whether a path is one of some folders or files, or inside one of them.
func under(name string, places ...string) bool {
	return slices.ContainsFunc(places, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
}

// numbered matches the name of an architecture.
var numbered = regexp.MustCompile(`^(sm|compute)_?[0-9]+[af]?$`)

// Only gpu knows one architecture from another: no other package compares compute capabilities or names one.
// data and gpu/target's table of instructions in ptx state facts of one architecture each and compare nothing.
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
				if comparison && (capability(n.X) || capability(n.Y)) {
					t.Errorf(
						"%s compares a compute capability; let gpu.SM say what the SM has",
						s.set.Position(n.Pos()),
					)
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && capability(n.Tag) {
					t.Errorf(
						"%s switches on a compute capability; let gpu.SM say what the SM has",
						s.set.Position(n.Pos()),
					)
				}
			case *ast.IndexExpr:
				if capability(n.Index) {
					t.Errorf(
						"%s looks up a compute capability; let gpu.SM say what the SM has",
						s.set.Position(n.Pos()),
					)
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(
					n.Value,
				); err == nil && numbered.MatchString(text) &&
					!under(s.path, "data") {
					t.Errorf(
						"%s names the architecture %s; let gpu.SM say what the SM has",
						s.set.Position(n.Pos()),
						text,
					)
				}
			}
			return true
		})
	}
}

// capability reports whether an expression is a compute capability.
func capability(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "CC"
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
	// The model in the folder ladder is that of one family, which counts what its kernels do.
	const list, generated, measured, model = "nvidia.go", "gemmgen/families", "calibration", "ladder"
	for _, s := range sources(t) {
		for _, family := range families {
			defines := under(s.path, "kernel/"+family, "gemmgen/"+family)
			for _, i := range s.file.Imports {
				to, _ := strconv.Unquote(i.Path.Value)
				concrete := to == module+"/kernel/"+family || to == module+"/gemmgen/"+family
				if concrete && !defines && !under(s.path, list, generated, measured, model) {
					t.Errorf("%s imports the family %s; use the interface", s.path, family)
				}
			}
			// A term of the refined model is called after the instruction, as is the family.
			if defines || under(s.path, "data", measured) || family == "wgmma" && under(s.path, "refined/terms/terms.go") {
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
		"gpu":                 {"gpu/target"},
		"gpu/target":          {},
		"gpu/gputest":         {"gpu"},
		"kernel":              {"gpu"},
		"reference":           {"gpu", "kernel"},
		"refined":             {"gpu", "kernel", "refined"},
		"ladder":              {"gpu", "kernel", "kernel/sgemm", "gemmgen/sgemm"},
		"data":                {},
		"ptx":                 {"gpu/target", "ptx"},
		"gemmgen":             {"gpu/target", "ptx", "gemmgen"},
		"calibration":         {"gpu", "ptx", "gemmgen"},
		"cuda":                {"gpu/target", "ptx", "gemmgen"},
		"cmd":                 {".", "cuda"},
		"internal/nvtest":     {"."},
		"internal/page":       {".", "refined"},
		"kernel/ (a family)":  {"gpu", "kernel", "gemmgen"},
		"refined/ (a helper)": {"gpu", "kernel", "refined"},
	}
	for _, s := range sources(t) {
		row := path.Dir(s.path)
		switch {
		case row == ".": // the root
			continue
		case under(row, "kernel") && row != "kernel":
			row = "kernel/ (a family)"
		case under(row, "refined") && row != "refined":
			row = "refined/ (a helper)"
		case under(row, "ptx", "gemmgen", "cmd"):
			row, _, _ = strings.Cut(row, "/")
		}
		may, ok := allowed[row]
		if !ok {
			t.Errorf("%s is in no row of this test: say what it may import", s.path)
		}
		for _, i := range s.file.Imports {
			to, _ := strconv.Unquote(i.Path.Value)
			to, ours := strings.CutPrefix(to, module)
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
