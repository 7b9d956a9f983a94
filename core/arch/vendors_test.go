package arch_test

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// vendor matches words that only plugins, formats and device files may have in texts: vendors, their libraries and
// languages, generations and architectures, instructions, memories and terms of models.
var vendor = regexp.MustCompile(`(?i)(^|[^a-z])(nvidia|cuda|cublas|triton|tensile|hip|hipblaslt|rocblas|rocm|cdna|` +
	`lds|xcd|volta|turing|ampere|hopper|blackwell|sm_?[0-9]+|gfx[0-9]+|wgmma|mma|ptx|warpgroup|conflict_degree|` +
	`wide_instructions|(shared|l1)_(bandwidth|width))([^a-z]|$)`)

// device matches a name of a vendor, a device or an architecture.
var device = regexp.MustCompile(`(?i)(^|[^a-z0-9#])(nvidia|amd|intel|volta|turing|ampere|hopper|blackwell|` +
	`[cr]dna[0-9]?|sm_?[0-9]+|gfx[0-9a-f]+|[abhlv][0-9]{2,3}s?|g[bh][0-9]{3}|mi[0-9]{2,3}[ax]?|` +
	`rtx[a-z0-9]*)([^a-z0-9_]|$)`)

// allowed are names that decide nothing about hardware, by file.
var allowed = map[string][]string{
	"cmd/origami/internal/session/targets.go":   {"h200", "sm90", "mi300x"}, // examples in hints and forms
	"cmd/origami/internal/verb/tablecmd/moe.go": {"H200", "NVIDIA_H200"},    // vLLM's names of files
	"formats/tensile/read.go":                   {"gfx900", "gfx906"},       // whose files have no unit of speeds
}

// literals calls a function for each text in the code of a folder, without imports and tests.
func literals(t *testing.T, folder string, do func(at token.Position, text string)) {
	t.Helper()
	files := 0
	root := os.DirFS("../..")
	err := fs.WalkDir(root, folder, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		ast.Inspect(file, func(n ast.Node) bool {
			if _, imported := n.(*ast.ImportSpec); imported {
				return false
			}
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil {
					do(set.Position(l.Pos()), s)
				}
			}
			return true
		})
		return nil
	})
	must.Need(t, err == nil && files >= 4, "%s: %d files, %v", folder, files, err)
}

// Core knows no vendor: what a device or a library has is in the description that its plugin gives, or in a package of
// formats. Comments may name examples.
func TestCoreNamesNoVendor(t *testing.T) {
	literals(t, "core", func(at token.Position, s string) {
		if vendor.MatchString(s) && !strings.HasPrefix(s, "write {") { // the example of a file, in a message
			t.Errorf("%s: core names a vendor's %q; let the plugin's description say it", at, s)
		}
	})
}

// Nothing outside of plugins depends on a vendor, a device or an architecture: what is known of one is in the
// description that its plugin gives. Sentences (help, examples, messages) may name them.
func TestNamesOfDevicesDecideNothing(t *testing.T) {
	for _, folder := range []string{"core", "ask", "cmd", "formats"} {
		literals(t, folder, func(at token.Position, s string) {
			must.That(t, strings.Contains(s, " ") || !device.MatchString(s) || slices.Contains(allowed[at.Filename], s),
				"%s: the name %q; let the plugin's description say what depends on it", at, s)
		})
	}
}
