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

// file reads the nodes of a tuning file.
type file struct {
	*yamlnode.File
	// left is how many sizes may still be added.
	left  int
	named func(name string) (gemm.Problem, error)
}

// mostNodes bounds the values of a file.
const mostNodes = 1 << 20

// Read reads a tuning file. Nothing of a bad file is returned, and its error has the line. named returns a GEMM of no
// size with the types and the layout of the problem type of a name.
func Read(name string, text []byte, named func(string) (gemm.Problem, error)) (*File, error) {
	if len(text) > int(limit.Text) {
		return nil, diag.Inputf("it is larger than %v, the most that is read of such a file", limit.Text).
			At("%s", name).Do("use ranges, or several files")
	}
	f := &file{yamlnode.New(name, mostNodes), mostSizes, named}
	root, err := f.Parse(text, advice)
	if err != nil {
		return nil, err
	}
	fields, err := f.fields(root, "the file", "kernel", "problems")
	if err != nil {
		return nil, err
	}
	out := &File{}
	if n := fields["kernel"]; n != nil {
		if out.Kernel, err = f.text(n, "kernel"); err != nil {
			return nil, err
		}
	}
	if fields["problems"] == nil {
		return nil, f.At(root, "the key problems is missing").Do(advice)
	}
	nodes, err := f.some(fields["problems"], "problems")
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		t, err := f.problemType(n)
		if err != nil {
			return nil, err
		}
		same := func(o Type) bool { return o.Problem == t.Problem }
		if slices.ContainsFunc(out.Types, same) {
			return nil, f.At(n, "the problem type is there twice").Do("give it all its sets in one place")
		}
		out.Types = append(out.Types, t)
	}
	return out, nil
}

// fields returns the values of a mapping with these keys.
func (f *file) fields(n *yaml.Node, what string, keys ...string) (map[string]*yaml.Node, error) {
	fields, err := f.Fields(n, what)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(keys, key.Value) {
			err := f.At(key, "%s has no key %q", what, key.Value)
			if near := diag.Nearest(key.Value, keys, 1); len(near) > 0 {
				return nil, err.Do("did you mean %s?", near[0])
			}
			return nil, err.Do("its keys are %s", strings.Join(keys, ", "))
		}
	}
	return fields, nil
}

// some returns the elements of a list that is not empty.
func (f *file) some(n *yaml.Node, what string) ([]*yaml.Node, error) {
	nodes, err := f.List(n, what)
	if err == nil && len(nodes) == 0 {
		err = f.At(n, "%s is empty", what).Do(advice)
	}
	return nodes, err
}

// text reads a scalar as it is written.
func (f *file) text(n *yaml.Node, what string) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Value == "" || yamlnode.Null(n) {
		return "", f.At(n, "%s is %s", what, yamlnode.Kind(n)).Do("give one value")
	}
	return n.Value, nil
}

// problemType reads a problem type with its sets.
func (f *file) problemType(n *yaml.Node) (t Type, err error) {
	fields, err := f.fields(n, "a problem type", "type", "dtype", "out_dtype", "trans_a", "trans_b", "most", "sets")
	if err != nil {
		return t, err
	}
	if t.Problem, err = f.layout(n, fields); err != nil {
		return t, err
	}
	if n := fields["most"]; n != nil {
		if t.Most, err = f.Whole(n, "most", 1); err != nil {
			return t, err
		}
	}
	if fields["sets"] == nil {
		return t, f.At(n, "a problem type has no sets").Do(advice)
	}
	sets, err := f.some(fields["sets"], "sets")
	if err != nil {
		return t, err
	}
	for _, x := range sets {
		s, err := f.set(x, t.Problem)
		if err != nil {
			return t, err
		}
		if slices.ContainsFunc(t.Sets, func(o Set) bool { return o.Name == s.Name }) {
			return t, f.At(x, "two sets of the problem type are called %q", s.Name).Do("give each a name of its own")
		}
		t.Sets = append(t.Sets, s)
	}
	return t, nil
}

// layout reads the types and the layout: a name, or each by itself.
func (f *file) layout(at *yaml.Node, fields map[string]*yaml.Node) (p gemm.Problem, err error) {
	own := []string{"dtype", "out_dtype", "trans_a", "trans_b"}
	if n := fields["type"]; n != nil {
		for _, key := range own {
			if fields[key] != nil {
				return p, f.At(fields[key], "type says what %s does", key).Do("leave one of them out")
			}
		}
		text, err := f.text(n, "type")
		if err != nil {
			return p, err
		}
		if p, err = f.named(text); err != nil {
			return p, f.At(n, "%v", err)
		}
		return p, nil
	}
	if fields["dtype"] == nil {
		return p, f.At(at, "a problem type has neither type nor dtype").
			Do("write dtype: fp16, or type: Cijk_Ailk_Bljk_HHS_BH")
	}
	text, err := f.text(fields["dtype"], "dtype")
	if err != nil {
		return p, err
	}
	if p.DType, err = gemm.ParseDType(text); err != nil {
		return p, f.At(fields["dtype"], "%v", err)
	}
	if n := fields["out_dtype"]; n != nil {
		if text, err = f.text(n, "out_dtype"); err != nil {
			return p, err
		}
		if p.Out, err = gemm.ParseOutput(text); err != nil {
			return p, f.At(n, "%v", err)
		}
	}
	var trans [2]bool
	for i, key := range own[2:] {
		if n := fields[key]; n != nil && (n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&trans[i]) != nil) {
			return p, f.At(n, "%s is %s", key, yamlnode.Kind(n)).Do("write true or false")
		}
	}
	p.SetTrans(trans[0], trans[1])
	return p, nil
}
