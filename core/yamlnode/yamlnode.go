// Package yamlnode reads YAML, and so JSON, value by value, so that every error has the file and the line.
package yamlnode

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/diag"
)

// File reads nodes of one file. Its methods end the reading where the file is wrong: with a panic of a mistake that
// Read recovers, as in the parser of text/template.
type File struct {
	name string
	// most is how many nodes may be parsed, and how many may be read; left is how many may still be read. Aliases of
	// aliases are read each time.
	most, left int
}

// mistake is a panic with the error of a file.
type mistake struct{ error }

// Read reads a file of that name. Nothing of a bad file is returned, and its error has the file and the line. most
// bounds the values that are parsed and that are read, each alias counted. A value takes about 200 bytes of memory. fix
// is the advice for a file that is no YAML.
func Read[T any](name string, text []byte, most int, fix string, read func(*File, *yaml.Node) T) (out T, err error) {
	f := &File{name: name, most: most, left: most}
	defer func() {
		if r := recover(); r != nil {
			m, ok := r.(mistake)
			if !ok {
				panic(r)
			}
			err = m.error
		}
	}()
	return read(f, f.parse(text, fix)), nil
}

// Name returns the file's name.
func (f *File) Name() string { return f.name }

// Check ends the reading if there is an error.
func Check(err error) {
	if err != nil {
		panic(mistake{err})
	}
}

var syntaxLine = regexp.MustCompile(`^yaml: line (\d+): `)

// fromZero are the messages of the YAML library's parser, which counts lines from 0, unlike its scanner.
var fromZero = []string{"did not find expected key", "did not find expected '-'", "did not find expected ','",
	"did not find expected node content", "did not find expected <"}

// parse reads the syntax of a whole file. A file of too many values is refused before it is parsed, because one byte of
// text can become one value.
func (f *File) parse(text []byte, fix string) *yaml.Node {
	if mostValues(text) > f.most {
		Check(diag.Inputf("the file may have more than %d values", f.most).At("%s", f.name).
			Do("leave out what is not needed, or use several files"))
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		where, what := f.name, err.Error()
		if m := syntaxLine.FindStringSubmatch(what); m != nil {
			what = what[len(m[0]):]
			line, _ := strconv.Atoi(m[1])
			if slices.ContainsFunc(fromZero, func(s string) bool { return strings.HasPrefix(what, s) }) {
				line++
			}
			where = fmt.Sprintf("%s:%d", f.name, line)
		}
		Check((&diag.Error{Kind: diag.Input, What: "the file is not valid YAML: " + what, Where: where, Err: err}).
			Do("%s", fix))
	}
	if len(document.Content) != 1 {
		Check(diag.Inputf("the file is empty").At("%s", f.name).Do("%s", fix))
	}
	return Resolve(document.Content[0])
}

// mostValues bounds from above how many values a text has, by the characters that can begin one. A dash begins one if
// a space follows, and is the same in UTF-16, where a zero byte follows. A comma ends a value or a key without a value.
func mostValues(text []byte) int {
	n := 2 // the document and its root
	for i, c := range text {
		switch c {
		case ',', ':', '?', '{':
			n += 2
		case '[':
			n++
		case '-':
			if i+1 == len(text) || text[i+1] <= ' ' {
				n++
			}
		}
	}
	return n
}

// Resolve follows an alias.
func Resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// At returns an error at a node.
func (f *File) At(n *yaml.Node, format string, args ...any) *diag.Error {
	return diag.Inputf(format, args...).At("%s:%d", f.name, n.Line)
}

// spend counts values that are read.
func (f *File) spend(n *yaml.Node, values int) {
	if f.left -= values; f.left < 0 {
		Check(f.At(n, "the file has more than %d values", f.most))
	}
}

// List returns the elements of a sequence.
func (f *File) List(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		Check(f.At(n, "%s is %s and no list", what, Kind(n)))
	}
	f.spend(n, len(n.Content))
	out := make([]*yaml.Node, len(n.Content))
	for i := range out {
		out[i] = Resolve(n.Content[i])
	}
	return out
}

// Fields returns the values of a mapping. A key that is there twice is an error: what the file means hangs on it.
func (f *File) Fields(n *yaml.Node, what string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		Check(f.At(n, "%s is %s and no mapping", what, Kind(n)))
	}
	f.spend(n, len(n.Content)/2)
	out := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if _, again := out[key.Value]; again {
			Check(f.At(key, "%s has the key %s twice", what, key.Value))
		}
		out[key.Value] = Resolve(n.Content[i+1])
	}
	return out
}

// Kind says what a node is, for an error.
func Kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	default:
		if Null(n) {
			return "null"
		}
		return strconv.Quote(n.Value)
	}
}

// Null reports whether a node is missing or null.
func Null(n *yaml.Node) bool { return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// Whole reads a whole number of at least a lowest value.
func (f *File) Whole(n *yaml.Node, what string, lowest int) int {
	v, err := strconv.ParseInt(n.Value, 10, 32)
	if n.Kind != yaml.ScalarNode || err != nil || int(v) < lowest {
		Check(f.At(n, "%s is %s", what, Kind(n)).Do("it is a whole number of at least %d", lowest))
	}
	return int(v)
}

// Integers reads a list of whole numbers.
func (f *File) Integers(n *yaml.Node, what string, lowest int) []int {
	nodes := f.List(n, what)
	out := make([]int, len(nodes))
	for i, x := range nodes {
		out[i] = f.Whole(x, what, lowest)
	}
	return out
}

// Number reads a number, an infinite one too.
func (f *File) Number(n *yaml.Node, what string) (v float64) {
	switch n.Value {
	case ".inf", "+.inf": // a text in JSON
		return math.Inf(1)
	case "-.inf":
		return math.Inf(-1)
	}
	if n.Kind != yaml.ScalarNode || n.Decode(&v) != nil || math.IsNaN(v) {
		Check(f.At(n, "%s is %s and no number", what, Kind(n)))
	}
	return v
}

// Value converts anything to maps, lists, texts and numbers.
func (f *File) Value(n *yaml.Node) (v any) {
	n = Resolve(n)
	f.spend(n, 1)
	switch n.Kind {
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, x := range n.Content {
			out[i] = f.Value(x)
		}
		return out
	case yaml.MappingNode:
		return f.Mapping(n)
	default:
	}
	if n.Decode(&v) != nil {
		Check(f.At(n, "%s has no value", Kind(n)))
	}
	return v
}

// Mapping is Value for a mapping. Of a key that is there twice the last value counts, as in PyYAML, by which Tensile
// reads its files: some of AMD's have a parameter of a kernel twice.
func (f *File) Mapping(n *yaml.Node) map[string]any {
	if n.Kind != yaml.MappingNode {
		Check(f.At(n, "the mapping is %s", Kind(n)))
	}
	out, own := make(map[string]any, len(n.Content)/2), map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, v := n.Content[i], f.Value(n.Content[i+1])
		if key.Tag != "!!merge" {
			name := keyName(key)
			out[name], own[name] = v, true
			continue
		}
		list, ok := v.([]any) // several mappings, or one
		if !ok {
			list = []any{v}
		}
		for _, x := range slices.Backward(list) { // the first one wins
			merged, ok := x.(map[string]any)
			if !ok {
				Check(f.At(key, "%s does not merge mappings", key.Value))
			}
			for k, v := range merged {
				if !own[k] {
					out[k] = v
				}
			}
		}
	}
	return out
}

// keyName returns the text of a key. A text that looks like a whole number keeps its quotes, so that it is no number.
func keyName(key *yaml.Node) string {
	if _, err := strconv.Atoi(key.Value); err == nil && key.Tag == "!!str" {
		return "'" + key.Value + "'"
	}
	return key.Value
}
