// Command schema writes docs/json.md, which describes the answers. Names and comments come from the Go structs, so that
// no key is described twice. `go generate ./ask` runs it.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// folders have the structs that become JSON.
var folders = []string{"ask", "core/gemm", "core/arch", "core/fit", "core/logic", "core/roofline", "core/score",
	"core/stats", "plugins/library/published", "plugins/serving",
	"cmd/origami/internal/verb/*"}

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes the page of a checkout.
func run(root string) error {
	text, err := Page(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs/json.md"), text, 0o644)
}

// Page returns docs/json.md of a checkout.
func Page(root string) ([]byte, error) {
	g := &generator{structs: map[string][]key{}}
	for _, folder := range folders {
		if err := g.read(filepath.Join(root, folder)); err != nil {
			return nil, err
		}
	}
	return g.page(), g.err
}

// generator collects the structs that become JSON.
type generator struct {
	structs map[string][]key // as "evalcmd.intervals"
	err     error
}

// read reads the comments of a package.
func (g *generator) read(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range tree.Decls {
			types, ok := decl.(*ast.GenDecl)
			if !ok || types.Tok != token.TYPE {
				continue
			}
			for _, spec := range types.Specs {
				t := spec.(*ast.TypeSpec)
				if s, ok := t.Type.(*ast.StructType); ok {
					name := tree.Name.Name + "." + t.Name.Name
					g.structs[name] = nil
					for _, f := range s.Fields.List {
						k := keyOf(f, tree.Name.Name)
						if k.name != "-" && (k.name != "" || len(f.Names) == 0) {
							g.structs[name] = append(g.structs[name], k)
						}
					}
				}
			}
		}
	}
	return nil
}

// keyOf is a field as its source has it.
func keyOf(f *ast.Field, folder string) (k key) {
	if k.doc = line(f.Doc); k.doc == "" {
		k.doc = line(f.Comment)
	}
	if f.Tag != nil {
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
		k.name, _, _ = strings.Cut(tag.Get("json"), ",")
		if of := tag.Get("of"); of != "" {
			k.of = "ask." + of
			return k
		}
	}
	of := f.Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.ArrayType:
			of = t.Elt
		case *ast.SelectorExpr:
			k.of = fmt.Sprint(t.X, ".", t.Sel)
			return k
		default:
			k.of = fmt.Sprint(folder, ".", of)
			return k
		}
	}
}

// line is a comment without its line ends.
func line(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// key is a field as JSON has it: its name, its comment, and the name of the struct that it has.
type key struct{ name, doc, of string }
