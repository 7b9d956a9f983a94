// Command schema writes what describes the answers of package ask: the JSON schemas that the server publishes, and the
// page docs/json.md. Names, types and comments come from the Go structs, so that no key is described twice.
// `go generate ./ask` runs it.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// folders have the structs that become JSON. docs/json.md describes all of them, the schemas only structs of ask and
// core/gemm.
var folders = []string{"ask", "core/gemm", "core/arch", "core/fit", "core/logic", "core/roofline", "core/score",
	"core/stats", "plugins/library/published", "plugins/serving",
	"cmd/origami/internal/verb/*"}

// named are types that no field has by its Go type.
var named = map[string]reflect.Type{
	"Term": reflect.TypeFor[ask.Term](), "ExplainedTerm": reflect.TypeFor[ask.ExplainedTerm](),
}

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes the files of a checkout.
func run(root string) error {
	files, err := Files(root)
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(root, name), zipped(name, text), 0o644)
		}
	}
	return err
}

// zipped compresses the text of a file whose name ends in gz.
func zipped(name string, text []byte) []byte {
	if !strings.HasSuffix(name, ".gz") {
		return text
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = z.Write(text) // to memory
	_ = z.Close()
	return b.Bytes()
}

// Files returns the generated files of a checkout by name, before they are compressed.
func Files(root string) (map[string][]byte, error) {
	g := &generator{comments: map[string]string{}, structs: map[string][]key{}, schemas: map[string]any{}}
	for _, folder := range folders {
		if err := g.read(filepath.Join(root, folder)); err != nil {
			return nil, err
		}
	}
	g.schema(reflect.TypeFor[ask.Failure]())
	for _, out := range outputs {
		if _, name := out.of.(string); !name {
			g.schema(reflect.TypeOf(out.of))
		}
	}
	schemas, err := json.MarshalIndent(g.schemas, "", "  ")
	if err != nil {
		return nil, err
	}
	page := g.page()
	if g.err != nil {
		return nil, g.err
	}
	return map[string][]byte{"ask/schemas.json.gz": append(schemas, '\n'), "docs/json.md": page}, nil
}

// generator collects comments and schemas.
type generator struct {
	comments map[string]string // of types and of fields, as "ask.Answer" and "ask.Answer.Arch"
	structs  map[string][]key  // as "evalcmd.intervals", with names and comments alone
	schemas  map[string]any
	err      error
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
				g.comments[tree.Name.Name+"."+t.Name.Name] = line(types.Doc)
				if s, ok := t.Type.(*ast.StructType); ok {
					name := tree.Name.Name + "." + t.Name.Name
					g.structs[name] = nil
					for _, f := range s.Fields.List {
						k := keyOf(f, tree.Name.Name)
						if k.name != "-" && (k.name != "" || len(f.Names) == 0) {
							g.structs[name] = append(g.structs[name], k)
						}
						for _, field := range f.Names {
							g.comments[name+"."+field.Name] = k.doc
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
		if t, ok := named[tag.Get("of")]; ok {
			k.of = t.String()
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

type object = map[string]any

// schema returns the schema of a type, and adds the schemas of structs to the list.
func (g *generator) schema(t reflect.Type) any {
	switch t {
	case reflect.TypeFor[ask.Number]():
		return object{"type": []string{"number", "null"}}
	case reflect.TypeFor[arch.Rung]():
		return object{"enum": arch.Rungs()}
	case reflect.TypeFor[gemm.Config]():
		return g.config()
	case reflect.TypeFor[ask.Side]():
		return object{"anyOf": []any{g.schema(reflect.TypeFor[ask.Compared]()), g.schema(reflect.TypeFor[ask.Failed]())}}
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Pointer:
		return orNull(g.schema(t.Elem()))
	case reflect.Array:
		return object{"type": "array", "items": g.schema(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Slice:
		return object{"type": "array", "items": g.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.schema(t.Elem())}
	case reflect.Struct:
		return g.object(t)
	default:
		panic("schema: no schema for " + t.String())
	}
}

// orNull is a schema that allows null too.
func orNull(schema any) any {
	if s, ok := schema.(object); ok {
		if kind, ok := s["type"].(string); ok {
			s["type"] = []string{kind, "null"}
		}
		if _, ok := s["type"]; ok {
			return s
		}
	}
	return object{"anyOf": []any{object{"type": "null"}, schema}}
}

// key is a field as JSON has it.
type key struct {
	reflect.StructField
	name, doc string
	optional  bool
	of        string // the name of the struct that the field has
}

// keys lists the fields of a struct, and of the structs in it. An outer field hides an inner one of its name.
func (g *generator) keys(t reflect.Type) (keys []key) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for _, k := range g.keys(f.Type) {
				if !slices.ContainsFunc(keys, func(other key) bool { return other.name == k.name }) {
					keys = append(keys, k)
				}
			}
		case name == "" || name == "-":
		default:
			k := key{StructField: f, name: name, doc: g.comments[t.String()+"."+f.Name], optional: options == "omitempty"}
			keys = slices.DeleteFunc(keys, func(other key) bool { return other.name == k.name })
			keys = append(keys, k)
		}
	}
	return keys
}

// object adds the schema of a struct to the list, and returns what refers to it.
func (g *generator) object(t reflect.Type) any {
	name := t.Name()
	if t == reflect.TypeFor[gemm.Record]() {
		name = "Problem"
	}
	reference := object{"$ref": "#/components/schemas/" + name}
	if g.schemas[name] != nil {
		return reference
	}
	properties, required := object{}, []string{}
	g.schemas[name] = object{"type": "object", "description": g.comments[t.String()], "properties": properties,
		"additionalProperties": false}
	for _, k := range g.keys(t) {
		properties[k.name] = g.property(k)
		if !k.optional {
			required = append(required, k.name)
		}
	}
	g.schemas[name].(object)["required"] = required
	return reference
}

// property is the schema of a field.
func (g *generator) property(k key) any {
	of := k.Type
	if of.Kind() == reflect.Pointer && k.optional {
		of = of.Elem()
	}
	var schema any
	switch values := k.Tag.Get("of"); {
	case of == reflect.TypeFor[ask.Fields]():
		schema = object{"type": "object", "additionalProperties": g.values(values)}
	case k.Tag.Get("enum") != "":
		schema = object{"enum": strings.Split(k.Tag.Get("enum"), ",")}
	default:
		schema = g.schema(of)
	}
	if s, ok := schema.(object); ok && k.doc != "" && s["$ref"] == nil {
		s["description"] = k.doc
	}
	return schema
}

// values is the schema of the values of ask.Fields.
func (g *generator) values(of string) any {
	number := object{"type": []string{"number", "null"}}
	switch of {
	case "":
		return object{}
	case "Number":
		return number
	case "Scores":
		return object{"type": "object", "additionalProperties": number}
	default:
		return g.schema(named[of])
	}
}

// config is the schema of a configuration, which gemm writes.
func (g *generator) config() any {
	reference := object{"$ref": "#/components/schemas/Config"}
	if g.schemas["Config"] != nil {
		return reference
	}
	properties, required := object{"axes": object{"type": "object", "additionalProperties": object{"type": "string"}}},
		[]string{}
	for _, f := range gemm.Fields() {
		properties[f.Name] = object{"type": "integer"}
		if f.MayBeUnknown || f.Optional {
			properties[f.Name] = object{"type": []string{"integer", "null"}}
		}
		required = append(required, f.Name)
	}
	g.schemas["Config"] = object{"type": "object", "properties": properties, "required": required,
		"additionalProperties": false,
		"description":          "a kernel configuration; axes has the values on named axes of the family"}
	return reference
}
