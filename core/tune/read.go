package tune

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/yamlnode"
)

// What to do about a file that is no tuning file, and how sizes are written.
const (
	advice   = "write problems, with sets of candidates and their sizes; docs/tuning.md describes the file"
	sizeForm = "write `exact: [m, n, k]`, or `range: [[16, 16, 16, 5632], [64, 64, 4096], [3104]]`; with a batch, " +
		"it stands before k"
)

const (
	// mostNodes bounds the values of a file.
	mostNodes = 1 << 20
	// mostSizes bounds the sizes of a file: what is found out about each is held in memory, 40 KB with the most
	// candidates.
	mostSizes = 1 << 14
)

// file reads the nodes of a tuning file.
type file struct {
	*yamlnode.File
	left  int // how many sizes may still be added
	named func(name string) (gemm.Problem, error)
}

// at returns a value of a node, and ends the reading there if there is an error.
func at[T any](f *file, n *yaml.Node, v T, err error) T {
	if err != nil {
		yamlnode.Check(f.At(n, "%v", err))
	}
	return v
}

// Read reads a tuning file. Nothing of a bad file is returned, and its error has the line. named returns a GEMM of no
// size with the types and the layout of the problem type of a name.
func Read(name string, text []byte, named func(string) (gemm.Problem, error)) (*File, error) {
	if len(text) > int(limit.Text) {
		return nil, diag.Inputf("it is larger than %v, the most that is read of such a file", limit.Text).
			At("%s", name).Do("use ranges, or several files")
	}
	return yamlnode.Read(name, text, mostNodes, advice, func(nodes *yamlnode.File, root *yaml.Node) *File {
		f, out := &file{nodes, mostSizes, named}, &File{}
		keys := f.object(root, "the file", fields{
			"kernel":   func(n *yaml.Node) { out.Kernel = f.text(n, "kernel") },
			"problems": func(n *yaml.Node) { f.each(n, "problems", func(n *yaml.Node) { f.addType(out, n) }) },
		})
		if keys["problems"] == nil {
			yamlnode.Check(f.At(root, "the key problems is missing").Do(advice))
		}
		return out
	})
}

// fields are what reads the values of the keys of a mapping.
type fields map[string]func(*yaml.Node)

// object reads a mapping in the order of the file, and returns its values.
func (f *file) object(n *yaml.Node, what string, read fields) map[string]*yaml.Node {
	values := f.Fields(n, what)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if read[key.Value] == nil {
			err, keys := f.At(key, "%s has no key %q", what, key.Value), slices.Sorted(maps.Keys(read))
			if near := diag.Nearest(key.Value, keys, 1); len(near) > 0 {
				yamlnode.Check(err.Do("did you mean %s?", near[0]))
			}
			yamlnode.Check(err.Do("its keys are %s", strings.Join(keys, ", ")))
		}
		read[key.Value](values[key.Value])
	}
	return values
}

// each reads the elements of a list that is not empty.
func (f *file) each(n *yaml.Node, what string, read func(*yaml.Node)) {
	nodes := f.List(n, what)
	if len(nodes) == 0 {
		yamlnode.Check(f.At(n, "%s is empty", what).Do(advice))
	}
	for _, x := range nodes {
		read(x)
	}
}

// text reads a scalar as it is written.
func (f *file) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" || yamlnode.Null(n) {
		yamlnode.Check(f.At(n, "%s is %s", what, yamlnode.Kind(n)).Do("give one value"))
	}
	return n.Value
}

func (f *file) where(n *yaml.Node) string { return f.At(n, "").Where }

// addType reads a problem type with its sets.
func (f *file) addType(out *File, n *yaml.Node) {
	var t Type
	var trans [2]bool
	var sets *yaml.Node
	flag := func(i int, key string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&trans[i]) != nil {
				yamlnode.Check(f.At(n, "%s is %s", key, yamlnode.Kind(n)).Do("write true or false"))
			}
		}
	}
	own := fields{
		"dtype": func(n *yaml.Node) {
			v, err := gemm.ParseDType(f.text(n, "dtype"))
			t.Problem.DType = at(f, n, v, err)
		},
		"out_dtype": func(n *yaml.Node) {
			v, err := gemm.ParseOutput(f.text(n, "out_dtype"))
			t.Problem.Out = at(f, n, v, err)
		},
		"trans_a": flag(0, "trans_a"), "trans_b": flag(1, "trans_b"),
	}
	all := maps.Clone(own)
	maps.Copy(all, fields{
		"type": func(n *yaml.Node) {
			p, err := f.named(f.text(n, "type"))
			t.Problem = at(f, n, p, err)
		},
		"most": func(n *yaml.Node) { t.Most = f.Whole(n, "most", 1) },
		"sets": func(n *yaml.Node) { sets = n },
	})
	keys := f.object(n, "a problem type", all)
	for key := range own {
		if keys["type"] != nil && keys[key] != nil {
			yamlnode.Check(f.At(keys[key], "type says what %s does", key).Do("leave one of them out"))
		}
	}
	switch {
	case keys["type"] == nil && keys["dtype"] == nil:
		yamlnode.Check(f.At(n, "a problem type has neither type nor dtype").
			Do("write dtype: fp16, or type: Cijk_Ailk_Bljk_HHS_BH"))
	case sets == nil:
		yamlnode.Check(f.At(n, "a problem type has no sets").Do(advice))
	case keys["type"] == nil:
		t.Problem.SetTrans(trans[0], trans[1])
	}
	f.each(sets, "sets", func(x *yaml.Node) {
		s := f.set(x, t.Problem)
		if slices.ContainsFunc(t.Sets, func(o Set) bool { return o.Name == s.Name }) {
			yamlnode.Check(f.At(x, "two sets of the problem type are called %q", s.Name).Do("give each a name of its own"))
		}
		t.Sets = append(t.Sets, s)
	})
	if slices.ContainsFunc(out.Types, func(o Type) bool { return o.Problem == t.Problem }) {
		yamlnode.Check(f.At(n, "the problem type is there twice").Do("give it all its sets in one place"))
	}
	out.Types = append(out.Types, t)
}

// set reads a set of candidates.
func (f *file) set(n *yaml.Node, base gemm.Problem) Set {
	s := Set{Where: f.where(n)}
	one := func(x *yaml.Node, name string) []string { return []string{f.text(x, name)} }
	keys := f.object(n, "a set", fields{
		"name": func(n *yaml.Node) { s.Name = f.text(n, "name") },
		"configs": func(n *yaml.Node) {
			f.each(n, "configs", func(x *yaml.Node) {
				s.Configs = append(s.Configs, Text{f.text(x, "a configuration"), f.where(x)})
			})
		},
		"fixed":   func(n *yaml.Node) { s.Fixed = f.axes(n, "fixed", one) },
		"initial": func(n *yaml.Node) { s.Initial = f.axes(n, "initial", one) },
		"steps": func(n *yaml.Node) {
			for _, x := range f.List(n, "steps") {
				s.Steps = append(s.Steps, f.step(x, base))
			}
		},
		"sizes": func(n *yaml.Node) { s.Sizes = f.sizes(n, base) },
	})
	for _, key := range []string{"fixed", "initial", "steps"} {
		if keys["configs"] != nil && keys[key] != nil {
			yamlnode.Check(f.At(keys[key], "a set with configs has %s too", key).Do("leave one of them out"))
		}
	}
	if len(s.Sizes) == 0 {
		if keys["sizes"] != nil {
			n = keys["sizes"]
		}
		yamlnode.Check(f.At(n, "a set has no sizes").Do(sizeForm))
	}
	s.check()
	return s
}

// check ends the reading if the steps of a set contradict each other.
func (s *Set) check() {
	taken := map[string]bool{}
	for _, x := range s.Fixed {
		taken[x.Name] = true
	}
	for _, step := range s.Steps {
		for _, p := range step.Sizes {
			if !slices.Contains(s.Sizes, p) {
				yamlnode.Check(diag.Inputf("a step is measured at %s, which is no size of its set", p).At("%s", step.Where).
					Do("add the size to the set, or take one of its sizes"))
			}
		}
		for _, a := range step.Axes {
			switch {
			case step.Action == Join && !taken[a.Name]:
				yamlnode.Check(diag.Inputf("branches are joined by %s, which no step before has", a.Name).At("%s", a.Where).
					Do("fork by it before"))
			case step.Action != Join && taken[a.Name]:
				yamlnode.Check(diag.Inputf("%s has its values already", a.Name).At("%s", a.Where).Do("leave one of them out"))
			}
			taken[a.Name] = true
		}
	}
}

// axes reads parameters in the order of the file.
func (f *file) axes(n *yaml.Node, what string, values func(*yaml.Node, string) []string) (out []Axis) {
	f.Fields(n, what)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name := parameter(key.Value)
		if name == "group_m" {
			yamlnode.Check(f.At(key, "%s is not searched: the launch order is chosen after the configuration", key.Value).
				Do("leave it out, or list whole configurations under configs"))
		}
		out = append(out, Axis{name, f.where(key), values(yamlnode.Resolve(n.Content[i+1]), name)})
	}
	return out
}

// parameter returns the name of a parameter that may be written short.
func parameter(name string) string {
	for _, x := range gemm.Fields() {
		if x.Key != "" && x.Key == name {
			return x.Name
		}
	}
	return name
}

// step reads one step.
func (f *file) step(n *yaml.Node, base gemm.Problem) Step {
	s := Step{Where: f.where(n)}
	action := func(a Action, read func(*yaml.Node) []Axis) func(*yaml.Node) {
		return func(x *yaml.Node) {
			if s.Action != "" {
				yamlnode.Check(f.At(n, "a step has %s and %s", min(s.Action, a), max(s.Action, a)).Do("make two steps of it"))
			}
			s.Action, s.Axes = a, read(x)
		}
	}
	lists := func(a Action) func(*yaml.Node) {
		return action(a, func(n *yaml.Node) []Axis {
			return f.axes(n, string(a), func(x *yaml.Node, name string) (out []string) {
				f.each(x, name, func(v *yaml.Node) {
					text := f.text(v, name)
					if slices.Contains(out, text) {
						yamlnode.Check(f.At(v, "%s has the value %s twice", name, text).Do("leave one of them out"))
					}
					out = append(out, text)
				})
				return out
			})
		})
	}
	f.object(n, "a step", fields{
		string(Each): lists(Each), string(Fork): lists(Fork),
		string(Join): action(Join, func(n *yaml.Node) (axes []Axis) {
			f.each(n, "join", func(y *yaml.Node) {
				axes = append(axes, Axis{Name: parameter(f.text(y, "a parameter")), Where: f.where(y)})
			})
			return axes
		}),
		"sizes": func(x *yaml.Node) { s.Sizes = f.sizes(x, base) },
	})
	if len(s.Axes) == 0 {
		yamlnode.Check(f.At(n, "a step has no parameters").Do("write each, fork or join, with parameters"))
	}
	return s
}

// sizes reads a list of exact sizes and ranges.
func (f *file) sizes(n *yaml.Node, base gemm.Problem) (out []gemm.Problem) {
	seen := map[gemm.Problem]bool{}
	for _, e := range f.List(n, "sizes") {
		var indices [][]int
		keys := f.object(e, "a size", fields{
			"exact": func(n *yaml.Node) { indices = [][]int{f.Integers(n, "a size", 1)} },
			"range": func(n *yaml.Node) { indices = f.ranges(n) },
		})
		if len(keys) != 1 {
			yamlnode.Check(f.At(e, "a size has %d keys", len(keys)).Do(sizeForm))
		}
		for _, v := range indices {
			if len(v) != 3 && len(v) != 4 {
				yamlnode.Check(f.At(e, "a size has %d numbers", len(v)).Do(sizeForm))
			}
			p := base
			p.M, p.N, p.K, p.Batch = v[0], v[1], v[len(v)-1], 1
			if len(v) == 4 {
				p.Batch = v[2]
			}
			at(f, e, p, p.Validate())
			if p = p.Canonical(); seen[p] {
				continue
			}
			seen[p] = true
			if f.left--; f.left < 0 {
				f.tooMany(e)
			}
			out = append(out, p)
		}
	}
	return out
}

func (f *file) tooMany(n *yaml.Node) {
	yamlnode.Check(f.At(n, "there are more than %d sizes", mostSizes).Do("take longer steps, or several files"))
}

// ranges reads the values of each index and returns all combinations, the last index fastest.
func (f *file) ranges(n *yaml.Node) [][]int {
	out := [][]int{nil}
	for i, x := range f.List(n, "a range") {
		var values []int
		same := -1
		if x.Kind != yaml.ScalarNode {
			steps, err := gemm.Steps(f.Integers(x, "an index of a range", 0)...)
			yamlnode.Check(diag.Within(f.where(x), err))
			values = steps
		} else if same = f.Whole(x, "the index to follow", 0); same >= i {
			yamlnode.Check(f.At(x, "index %d cannot follow index %d", i, same).
				Do("a bare number is the place of an earlier index"))
		}
		var longer [][]int
		for _, before := range out {
			v := values
			if same >= 0 {
				v = []int{before[same]}
			}
			for _, value := range v {
				longer = append(longer, append(before[:i:i], value))
			}
			if len(longer) > mostSizes {
				f.tooMany(n)
			}
		}
		out = longer
	}
	return out
}

// File is a tuning file: what to tune.
type File struct {
	// Kernel is the kernel family, empty if the file names none.
	Kernel string
	Types  []Type
}

// Of returns a file for problems, each once, with all candidates of the model. where is their place in errors.
func Of(problems []gemm.Problem, where string) *File {
	f := &File{}
	for _, p := range problems {
		kind := p
		kind.M, kind.N, kind.K, kind.Batch = 0, 0, 0, 0
		i := slices.IndexFunc(f.Types, func(t Type) bool { return t.Problem == kind })
		if i < 0 {
			i = len(f.Types)
			f.Types = append(f.Types, Type{Problem: kind, Sets: []Set{{Where: where}}})
		}
		if set := &f.Types[i].Sets[0]; !slices.Contains(set.Sizes, p) {
			set.Sizes = append(set.Sizes, p)
		}
	}
	return f
}

// Type is a problem type with its candidate sets.
type Type struct {
	// Problem has the types and the layout, and no sizes.
	Problem gemm.Problem
	// Most is the largest number of kernels of the type, 0 for any number.
	Most int
	Sets []Set
}

// Set is a set of candidates with the sizes that they are for.
type Set struct {
	Name, Where string
	// Configs lists the candidates. If there are none, they are the product of Fixed and of the values in Steps, and
	// parameters that neither has take the model's values.
	Configs []Text
	// Fixed and Initial are single values. Initial is where the steps start from.
	Fixed, Initial []Axis
	Steps          []Step
	Sizes          []gemm.Problem
	// Usable counts the candidates of all its sizes in a plan.
	Usable int

	space arch.Space
	list  []gemm.Config // Configs
}

// Text is a text of a file, and where it stands.
type Text struct{ Text, Where string }

// Axis is a parameter with its values.
type Axis struct {
	Name, Where string
	Values      []string
}

// Action is what a step does.
type Action string

// The actions of steps.
const (
	// Each measures the values of one parameter after the other, and keeps the fastest.
	Each Action = "each"
	// Fork makes a branch of each combination of values.
	Fork Action = "fork"
	// Join keeps the fastest of the branches that have equal values.
	Join Action = "join"
)

// Step is a step of the search.
type Step struct {
	Action Action
	// Axes are the parameters, without values in a step of Join.
	Axes  []Axis
	Where string
	// Sizes are measured by the step, none for the set's median size.
	Sizes []gemm.Problem
}
