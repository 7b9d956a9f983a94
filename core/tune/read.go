package tune

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/yamlnode"
)

// advice is what to do about a file that is no tuning file.
const advice = "write problems, with sets of candidates and their sizes; docs/tuning.md describes the file"

// file reads the nodes of a tuning file. Its methods end with a panic of a mistake where the file is wrong, which Read
// recovers, as the parser of text/template does.
type file struct {
	*yamlnode.File
	// left is how many sizes may still be added.
	left  int
	named func(name string) (gemm.Problem, error)
}

// mistake is a panic with the error of a file.
type mistake struct{ error }

// check ends the reading if there is an error.
func check(err error) {
	if err != nil {
		panic(mistake{err})
	}
}

// must returns a value that was read, and ends the reading if there is an error.
func must[T any](v T, err error) T {
	check(err)
	return v
}

// mostNodes bounds the values of a file.
const mostNodes = 1 << 20

// Read reads a tuning file. Nothing of a bad file is returned, and its error has the line. named returns a GEMM of no
// size with the types and the layout of the problem type of a name.
func Read(name string, text []byte, named func(string) (gemm.Problem, error)) (out *File, err error) {
	if len(text) > int(limit.Text) {
		return nil, diag.Inputf("it is larger than %v, the most that is read of such a file", limit.Text).
			At("%s", name).Do("use ranges, or several files")
	}
	f := &file{yamlnode.New(name, mostNodes), mostSizes, named}
	root, err := f.Parse(text, advice)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			m, ok := r.(mistake)
			if !ok {
				panic(r)
			}
			out, err = nil, m.error
		}
	}()
	return f.read(root), nil
}

func (f *file) read(root *yaml.Node) *File {
	fields := f.fields(root, "the file", "kernel", "problems")
	out := &File{}
	if n := fields["kernel"]; n != nil {
		out.Kernel = f.text(n, "kernel")
	}
	if fields["problems"] == nil {
		check(f.At(root, "the key problems is missing").Do(advice))
	}
	for _, n := range f.some(fields["problems"], "problems") {
		t := f.problemType(n)
		if slices.ContainsFunc(out.Types, func(o Type) bool { return o.Problem == t.Problem }) {
			check(f.At(n, "the problem type is there twice").Do("give it all its sets in one place"))
		}
		out.Types = append(out.Types, t)
	}
	return out
}

// fields returns the values of a mapping with these keys.
func (f *file) fields(n *yaml.Node, what string, keys ...string) map[string]*yaml.Node {
	fields := must(f.Fields(n, what))
	for i := 0; i < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(keys, key.Value) {
			err := f.At(key, "%s has no key %q", what, key.Value)
			if near := diag.Nearest(key.Value, keys, 1); len(near) > 0 {
				check(err.Do("did you mean %s?", near[0]))
			}
			check(err.Do("its keys are %s", strings.Join(keys, ", ")))
		}
	}
	return fields
}

// some returns the elements of a list that is not empty.
func (f *file) some(n *yaml.Node, what string) []*yaml.Node {
	nodes := must(f.List(n, what))
	if len(nodes) == 0 {
		check(f.At(n, "%s is empty", what).Do(advice))
	}
	return nodes
}

// text reads a scalar as it is written.
func (f *file) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" || yamlnode.Null(n) {
		check(f.At(n, "%s is %s", what, yamlnode.Kind(n)).Do("give one value"))
	}
	return n.Value
}

// problemType reads a problem type with its sets.
func (f *file) problemType(n *yaml.Node) (t Type) {
	fields := f.fields(n, "a problem type", "type", "dtype", "out_dtype", "trans_a", "trans_b", "most", "sets")
	t.Problem = f.layout(n, fields)
	if n := fields["most"]; n != nil {
		t.Most = must(f.Whole(n, "most", 1))
	}
	if fields["sets"] == nil {
		check(f.At(n, "a problem type has no sets").Do(advice))
	}
	for _, x := range f.some(fields["sets"], "sets") {
		s := f.set(x, t.Problem)
		if slices.ContainsFunc(t.Sets, func(o Set) bool { return o.Name == s.Name }) {
			check(f.At(x, "two sets of the problem type are called %q", s.Name).Do("give each a name of its own"))
		}
		t.Sets = append(t.Sets, s)
	}
	return t
}

// layout reads the types and the layout: a name, or each by itself.
func (f *file) layout(at *yaml.Node, fields map[string]*yaml.Node) (p gemm.Problem) {
	own := []string{"dtype", "out_dtype", "trans_a", "trans_b"}
	if n := fields["type"]; n != nil {
		for _, key := range own {
			if fields[key] != nil {
				check(f.At(fields[key], "type says what %s does", key).Do("leave one of them out"))
			}
		}
		p, err := f.named(f.text(n, "type"))
		f.checkAt(n, err)
		return p
	}
	if fields["dtype"] == nil {
		check(f.At(at, "a problem type has neither type nor dtype").
			Do("write dtype: fp16, or type: Cijk_Ailk_Bljk_HHS_BH"))
	}
	var err error
	p.DType, err = gemm.ParseDType(f.text(fields["dtype"], "dtype"))
	f.checkAt(fields["dtype"], err)
	if n := fields["out_dtype"]; n != nil {
		p.Out, err = gemm.ParseOutput(f.text(n, "out_dtype"))
		f.checkAt(n, err)
	}
	var trans [2]bool
	for i, key := range own[2:] {
		if n := fields[key]; n != nil && (n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&trans[i]) != nil) {
			check(f.At(n, "%s is %s", key, yamlnode.Kind(n)).Do("write true or false"))
		}
	}
	p.SetTrans(trans[0], trans[1])
	return p
}

// checkAt ends the reading if there is an error about a node.
func (f *file) checkAt(n *yaml.Node, err error) {
	if err != nil {
		check(f.At(n, "%v", err))
	}
}
