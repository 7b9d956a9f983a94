package tune

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/yamlnode"
)

// set reads a set of candidates.
func (f *file) set(n *yaml.Node, base gemm.Problem) Set {
	fields := f.fields(n, "a set", "name", "configs", "fixed", "initial", "steps", "sizes")
	s := Set{Where: f.where(n)}
	if x := fields["name"]; x != nil {
		s.Name = f.text(x, "name")
	}
	at := n
	if fields["sizes"] != nil {
		at = fields["sizes"]
		s.Sizes = f.sizes(at, base)
	}
	if len(s.Sizes) == 0 {
		check(f.At(at, "a set has no sizes").Do(sizeForm))
	}
	s.Fixed, s.Initial = f.single(fields["fixed"], "fixed"), f.single(fields["initial"], "initial")
	s.Configs = f.listed(fields)
	s.Steps = f.steps(&s, fields["steps"], base)
	return s
}

func (f *file) where(n *yaml.Node) string { return f.At(n, "").Where }

// listed reads a list of configurations.
func (f *file) listed(fields map[string]*yaml.Node) (list []Text) {
	n := fields["configs"]
	if n == nil {
		return nil
	}
	for _, key := range []string{"fixed", "initial", "steps"} {
		if fields[key] != nil {
			check(f.At(fields[key], "a set with configs has %s too", key).Do("leave one of them out"))
		}
	}
	for _, x := range f.some(n, "configs") {
		list = append(list, Text{f.text(x, "a configuration"), f.where(x)})
	}
	return list
}

// single reads parameters with one value each.
func (f *file) single(n *yaml.Node, what string) []Axis {
	if n == nil {
		return nil
	}
	return f.axes(n, what, func(x *yaml.Node, name string) []string { return []string{f.text(x, name)} })
}

// lists reads parameters with lists of values.
func (f *file) lists(n *yaml.Node, what string) []Axis {
	return f.axes(n, what, func(x *yaml.Node, name string) (out []string) {
		for _, v := range f.some(x, name) {
			text := f.text(v, name)
			if slices.Contains(out, text) {
				check(f.At(v, "%s has the value %s twice", name, text).Do("leave one of them out"))
			}
			out = append(out, text)
		}
		return out
	})
}

// axes reads parameters in the order of the file.
func (f *file) axes(n *yaml.Node, what string, values func(*yaml.Node, string) []string) (out []Axis) {
	must(f.Fields(n, what))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name := parameter(key.Value)
		if name == "group_m" {
			check(f.At(key, "%s is not searched: the launch order is chosen after the configuration", key.Value).
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

// steps reads the steps of the search.
func (f *file) steps(s *Set, n *yaml.Node, base gemm.Problem) (steps []Step) {
	taken := map[string]bool{}
	for _, x := range s.Fixed {
		taken[x.Name] = true
	}
	if n == nil {
		return nil
	}
	for _, x := range must(f.List(n, "steps")) {
		step := f.step(x, base)
		for _, p := range step.Sizes {
			if !slices.Contains(s.Sizes, p) {
				check(diag.Inputf("a step is measured at %s, which is no size of its set", p).At("%s", step.Where).
					Do("add the size to the set, or take one of its sizes"))
			}
		}
		for _, a := range step.Axes {
			switch {
			case step.Action == Join && !taken[a.Name]:
				check(diag.Inputf("branches are joined by %s, which no step before has", a.Name).At("%s", a.Where).
					Do("fork by it before"))
			case step.Action != Join && taken[a.Name]:
				check(diag.Inputf("%s has its values already", a.Name).At("%s", a.Where).Do("leave one of them out"))
			}
			taken[a.Name] = true
		}
		steps = append(steps, step)
	}
	return steps
}

// step reads one step.
func (f *file) step(n *yaml.Node, base gemm.Problem) Step {
	fields := f.fields(n, "a step", string(Each), string(Fork), string(Join), "sizes")
	s := Step{Where: f.where(n)}
	for _, a := range []Action{Each, Fork, Join} {
		x := fields[string(a)]
		if x == nil {
			continue
		}
		if s.Action != "" {
			check(f.At(n, "a step has %s and %s", s.Action, a).Do("make two steps of it"))
		}
		if s.Action = a; a != Join {
			s.Axes = f.lists(x, string(a))
			continue
		}
		for _, y := range f.some(x, "join") {
			s.Axes = append(s.Axes, Axis{Name: parameter(f.text(y, "a parameter")), Where: f.where(y)})
		}
	}
	if len(s.Axes) == 0 {
		check(f.At(n, "a step has no parameters").Do("write each, fork or join, with parameters"))
	}
	if x := fields["sizes"]; x != nil {
		s.Sizes = f.sizes(x, base)
	}
	return s
}
