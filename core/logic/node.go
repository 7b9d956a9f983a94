package logic

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

// file reads nodes of one file. Its errors have the file and the line.
type file struct {
	name string
	// left is how many nodes may still be converted, so that aliases of aliases do not fill the memory.
	left int
}

// mostNodes bounds the values of a file.
const mostNodes = 1 << 24

var syntaxLine = regexp.MustCompile(`^yaml: line (\d+): `)

// fromZero are the messages of the YAML library's parser, which counts lines from 0, unlike its scanner.
var fromZero = []string{"did not find expected key", "did not find expected '-'", "did not find expected ','",
	"did not find expected node content", "did not find expected <"}

// parse reads the syntax.
func (f *file) parse(text []byte) (*yaml.Node, error) {
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
		return nil, (&diag.Error{Kind: diag.Input, What: "the file is not valid YAML: " + what, Where: where, Err: err}).
			Do("give a library logic as Tensile, hipBLASLt or origami write it")
	}
	if len(document.Content) != 1 {
		return nil, diag.Inputf("the file is empty").At("%s", f.name).Do("give a library logic")
	}
	return resolve(document.Content[0]), nil
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// at returns an error at a node.
func (f *file) at(n *yaml.Node, format string, args ...any) *diag.Error {
	return diag.Inputf(format, args...).At("%s:%d", f.name, n.Line)
}

// list returns the elements of a sequence.
func (f *file) list(n *yaml.Node, what string) ([]*yaml.Node, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, f.at(n, "%s is %s and no list", what, kind(n))
	}
	out := make([]*yaml.Node, len(n.Content))
	for i := range out {
		out[i] = resolve(n.Content[i])
	}
	return out, nil
}

// fields returns the values of a mapping. A key that is there twice is an error: what the file means hangs on it.
func (f *file) fields(n *yaml.Node, what string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, f.at(n, "%s is %s and no mapping", what, kind(n))
	}
	out := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if _, again := out[key.Value]; again {
			return nil, f.at(key, "%s has the key %s twice", what, key.Value)
		}
		out[key.Value] = resolve(n.Content[i+1])
	}
	return out, nil
}

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	default:
		if null(n) {
			return "null"
		}
		return strconv.Quote(n.Value)
	}
}

func null(n *yaml.Node) bool { return n == nil || n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// whole reads a whole number of at least a lowest value.
func (f *file) whole(n *yaml.Node, what string, lowest int) (int, error) {
	v, err := strconv.ParseInt(n.Value, 10, 32)
	if n.Kind != yaml.ScalarNode || err != nil || int(v) < lowest {
		return 0, f.at(n, "%s is %s", what, kind(n)).Do("it is a whole number of at least %d", lowest)
	}
	return int(v), nil
}

// integers reads a list of whole numbers.
func (f *file) integers(n *yaml.Node, what string, lowest int) ([]int, error) {
	nodes, err := f.list(n, what)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(nodes))
	for i, x := range nodes {
		if out[i], err = f.whole(x, what, lowest); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// number reads a number, an infinite one too.
func (f *file) number(n *yaml.Node, what string) (float64, error) {
	var v float64
	switch n.Value {
	case ".inf", "+.inf": // a text in JSON
		return math.Inf(1), nil
	case "-.inf":
		return math.Inf(-1), nil
	}
	if n.Kind != yaml.ScalarNode || n.Decode(&v) != nil || math.IsNaN(v) {
		return 0, f.at(n, "%s is %s and no number", what, kind(n))
	}
	return v, nil
}

// value converts anything to maps, lists, texts and numbers.
func (f *file) value(n *yaml.Node) (any, error) {
	n = resolve(n)
	if f.left--; f.left < 0 {
		return nil, f.at(n, "the file has more than %d values", mostNodes)
	}
	switch n.Kind {
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, x := range n.Content {
			var err error
			if out[i], err = f.value(x); err != nil {
				return nil, err
			}
		}
		return out, nil
	case yaml.MappingNode:
		return f.mapping(n)
	default:
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, f.at(n, "%s has no value", kind(n))
	}
	return v, nil
}

// mapping converts a mapping. Of a key that is there twice the last value counts, as in PyYAML, by which Tensile reads
// its files: some of AMD's have a parameter of a kernel twice.
func (f *file) mapping(n *yaml.Node) (map[string]any, error) {
	if n.Kind != yaml.MappingNode {
		return nil, f.at(n, "the mapping is %s", kind(n))
	}
	out, own := make(map[string]any, len(n.Content)/2), map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		v, err := f.value(n.Content[i+1])
		switch {
		case err != nil:
			return nil, err
		case key.Tag != "!!merge":
			out[key.Value], own[key.Value] = v, true
			continue
		}
		list, ok := v.([]any) // several mappings, or one
		if !ok {
			list = []any{v}
		}
		for _, x := range slices.Backward(list) { // the first one wins
			merged, ok := x.(map[string]any)
			if !ok {
				return nil, f.at(key, "%s does not merge mappings", key.Value)
			}
			for k, v := range merged {
				if !own[k] {
					out[k] = v
				}
			}
		}
	}
	return out, nil
}
