package tune

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/yamlnode"
)

// set reads a set of candidates.
func (f *file) set(n *yaml.Node, base gemm.Problem) (s Set, err error) {
	fields, err := f.fields(n, "a set", "name", "configs", "fixed", "initial", "steps", "sizes")
	if err != nil {
		return s, err
	}
	s.Where = f.where(n)
	if x := fields["name"]; x != nil {
		if s.Name, err = f.text(x, "name"); err != nil {
			return s, err
		}
	}
	if fields["sizes"] == nil {
		return s, f.At(n, "a set has no sizes").Do(sizeForm)
	}
	if s.Sizes, err = f.sizes(fields["sizes"], base); err != nil {
		return s, err
	}
	if len(s.Sizes) == 0 {
		return s, f.At(fields["sizes"], "a set has no sizes").Do(sizeForm)
	}
	if s.Fixed, err = f.single(fields["fixed"], "fixed"); err != nil {
		return s, err
	}
	if s.Initial, err = f.single(fields["initial"], "initial"); err != nil {
		return s, err
	}
	if err = f.listed(&s, fields); err != nil {
		return s, err
	}
	return s, f.steps(&s, fields["steps"], base)
}

func (f *file) where(n *yaml.Node) string { return f.At(n, "").Where }

// listed reads a list of configurations.
func (f *file) listed(s *Set, fields map[string]*yaml.Node) error {
	n := fields["configs"]
	if n == nil {
		return nil
	}
	for _, key := range []string{"fixed", "initial", "steps"} {
		if fields[key] != nil {
			return f.At(fields[key], "a set with configs has %s too", key).Do("leave one of them out")
		}
	}
	nodes, err := f.some(n, "configs")
	if err != nil {
		return err
	}
	for _, x := range nodes {
		text, err := f.text(x, "a configuration")
		if err != nil {
			return err
		}
		s.Configs = append(s.Configs, Text{text, f.where(x)})
	}
	return nil
}

// single reads parameters with one value each.
func (f *file) single(n *yaml.Node, what string) ([]Axis, error) {
	if n == nil {
		return nil, nil
	}
	return f.axes(n, what, func(x *yaml.Node, name string) ([]string, error) {
		v, err := f.text(x, name)
		return []string{v}, err
	})
}

// lists reads parameters with lists of values.
func (f *file) lists(n *yaml.Node, what string) ([]Axis, error) {
	return f.axes(n, what, func(x *yaml.Node, name string) ([]string, error) {
		nodes, err := f.some(x, name)
		var out []string
		for _, v := range nodes {
			text, err := f.text(v, name)
			if err != nil {
				return nil, err
			}
			if slices.Contains(out, text) {
				return nil, f.At(v, "%s has the value %s twice", name, text).Do("leave one of them out")
			}
			out = append(out, text)
		}
		return out, err
	})
}

// axes reads parameters in the order of the file.
func (f *file) axes(n *yaml.Node, what string, values func(*yaml.Node, string) ([]string, error)) ([]Axis, error) {
	if _, err := f.Fields(n, what); err != nil {
		return nil, err
	}
	var out []Axis
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		name := parameter(key.Value)
		if name == "group_m" {
			return nil, f.At(key, "%s is not searched: the launch order is chosen after the configuration", key.Value).
				Do("leave it out, or list whole configurations under configs")
		}
		v, err := values(yamlnode.Resolve(n.Content[i+1]), name)
		if err != nil {
			return nil, err
		}
		out = append(out, Axis{name, f.where(key), v})
	}
	return out, nil
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
func (f *file) steps(s *Set, n *yaml.Node, base gemm.Problem) error {
	taken := map[string]bool{}
	for _, x := range s.Fixed {
		taken[x.Name] = true
	}
	if n == nil {
		return nil
	}
	nodes, err := f.List(n, "steps")
	if err != nil {
		return err
	}
	for _, x := range nodes {
		step, err := f.step(x, base)
		if err != nil {
			return err
		}
		for _, p := range step.Sizes {
			if !slices.Contains(s.Sizes, p) {
				return diag.Inputf("a step is measured at %s, which is no size of its set", p).At("%s", step.Where).
					Do("add the size to the set, or take one of its sizes")
			}
		}
		for _, a := range step.Axes {
			switch {
			case step.Action == Join && !taken[a.Name]:
				return diag.Inputf("branches are joined by %s, which no step before has", a.Name).At("%s", a.Where).
					Do("fork by it before")
			case step.Action != Join && taken[a.Name]:
				return diag.Inputf("%s has its values already", a.Name).At("%s", a.Where).Do("leave one of them out")
			}
			taken[a.Name] = true
		}
		s.Steps = append(s.Steps, step)
	}
	return nil
}

// step reads one step.
func (f *file) step(n *yaml.Node, base gemm.Problem) (s Step, err error) {
	fields, err := f.fields(n, "a step", string(Each), string(Fork), string(Join), "sizes")
	if err != nil {
		return s, err
	}
	s.Where = f.where(n)
	for _, a := range []Action{Each, Fork, Join} {
		x := fields[string(a)]
		if x == nil {
			continue
		}
		if s.Action != "" {
			return s, f.At(n, "a step has %s and %s", s.Action, a).Do("make two steps of it")
		}
		if s.Action = a; a != Join {
			if s.Axes, err = f.lists(x, string(a)); err != nil {
				return s, err
			}
			continue
		}
		nodes, err := f.some(x, "join")
		if err != nil {
			return s, err
		}
		for _, y := range nodes {
			text, err := f.text(y, "a parameter")
			if err != nil {
				return s, err
			}
			s.Axes = append(s.Axes, Axis{Name: parameter(text), Where: f.where(y)})
		}
	}
	if len(s.Axes) == 0 {
		return s, f.At(n, "a step has no parameters").Do("write each, fork or join, with parameters")
	}
	if x := fields["sizes"]; x != nil {
		if s.Sizes, err = f.sizes(x, base); err != nil {
			return s, err
		}
	}
	return s, nil
}
