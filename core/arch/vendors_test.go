package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// vendor matches words that only plugins, formats and device files may have in texts: vendors, their libraries and
// languages, generations and architectures, instructions, memories and terms of models.
var vendor = regexp.MustCompile(`(?i)(^|[^a-z])(nvidia|cuda|cublas|triton|tensile|hip|hipblaslt|rocblas|rocm|cdna|` +
	`lds|xcd|volta|turing|ampere|hopper|blackwell|sm_?[0-9]+|gfx[0-9]+|wgmma|mma|ptx|warpgroup|conflict_degree|` +
	`wide_instructions|(shared|l1)_(bandwidth|width))([^a-z]|$)`)

// Core knows no vendor: what a device or a library has is in the description that its plugin gives, or in a package of
// formats. Comments may name examples.
func TestCoreNamesNoVendor(t *testing.T) {
	files := 0
	core := os.DirFS("..")
	err := fs.WalkDir(core, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(core, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "core/"+name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		ast.Inspect(file, func(n ast.Node) bool {
			if _, imported := n.(*ast.ImportSpec); imported {
				return false
			}
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING {
				return true
			}
			if s, err := strconv.Unquote(l.Value); err == nil && vendor.MatchString(s) &&
				!strings.HasPrefix(s, "write {") { // the example of a file, in a message
				t.Errorf("%s: core names a vendor's %q; let the plugin's description say it", set.Position(l.Pos()), s)
			}
			return true
		})
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, %v", files, err)
	}
}
