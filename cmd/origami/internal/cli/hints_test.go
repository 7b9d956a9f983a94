package cli

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestHints(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{diag.Inputf("unknown architecture").Do("did you mean a100?").Coded(diag.CodeUnknownDevice, ""),
			"unknown architecture; did you mean a100? `origami arch ls` lists the devices; another GPU is one of them" +
				" with other numbers, as in --arch h200:num_sms=66, or a --device-file"},
		{diag.Inputf("no parameter").Coded(diag.CodeUnknownParameter, "sm89"),
			"no parameter; `origami arch show sm89` lists all"},
		{diag.Inputf("it has changed").Do("trust it").Coded(diag.CodeUntrustedPlugin, ""),
			"it has changed; trust it; `origami plugin trust PATH` trusts it"},
		{fmt.Errorf("row 3: %w", diag.Inputf("nothing fits").Coded(diag.CodeNothingFits, "")),
			"row 3: nothing fits; `origami rank --all --include-rejected` lists each with its reason"},
		{diag.Inputf("from a newer plugin").Coded("not_known_here", "x"), "from a newer plugin"},
		{errors.New("disk full"), "disk full"},
	} {
		got := withHint(c.err)
		must.That(t, got.Error() == c.want && diag.KindOf(got) == diag.KindOf(c.err),
			"%v becomes %v, want %s", c.err, got, c.want)
	}
}

// Errors below the command line name no flag and no command: programs in C and Python show them too.
func TestErrorsBelowNameNoFlags(t *testing.T) {
	words := regexp.MustCompile("(^|[ (`\"])--[a-z]|`origami |`make |\\bmake (cuda|triton|lib)\\b")
	found := 0
	for _, root := range []string{"core", "sdk", "plugins", "bindings/c"} {
		must.Do(t, filepath.WalkDir(filepath.Join("../../../..", root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				for _, text := range errorTexts(n) {
					found++
					if words.MatchString(text.Value) {
						t.Errorf("%s: %s; give the advice in neutral words, and a code for hints.go",
							files.Position(text.Pos()), text.Value)
					}
				}
				return true
			})
			return nil
		}))
	}
	must.That(t, found >= 100, "only %d texts were found", found)
}

// errorTexts returns the literals of a node that end up in the text of a diag.Error.
func errorTexts(n ast.Node) []*ast.BasicLit {
	var parts []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok &&
			regexp.MustCompile(`^(Inputf|At|Do|Also)$`).MatchString(f.Sel.Name) {
			parts = n.Args
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "What" || key.Name == "Where" || key.Name == "Fix") {
			parts = []ast.Expr{n.Value}
		}
	}
	var texts []*ast.BasicLit
	for _, part := range parts {
		ast.Inspect(part, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				texts = append(texts, text)
			}
			return true
		})
	}
	return texts
}
