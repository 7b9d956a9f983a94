package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/builtins"
	generated "github.com/origami-gemm/origami/plugins/nvidia/gemmgen/families"
)

// family is what the candidates of a kernel family differ in.
type family struct{ axes []axis }

// axis is a number of a configuration, or a named axis, with the values that candidates have on it. It is chosen if the
// candidates of one device differ in it. offered are further values, which candidates have if they are asked for.
type axis struct {
	name            string
	values, offered []string
	chosen          bool
}

// chooses reports whether the candidates differ in an axis.
func (f family) chooses(name string) bool {
	return slices.ContainsFunc(f.axes, func(a axis) bool { return a.name == name && a.chosen })
}

// offers reports whether candidates differ in an axis if they are asked to, and only then.
func (f family) offers(name string) bool {
	return slices.ContainsFunc(f.axes, func(a axis) bool { return a.name == name && !a.chosen && len(a.offered) > 0 })
}

// models are those whose candidates are listed, in the order of columns. A family of several devices has all values
// that one of them has.
var models = [numColumns][]arch.OpenRequest{
	{{Arch: "sm90", Device: "h200", Model: "refined", Kernel: "mma"}},
	nil, // no model has it: the generator says what it can be
	{{Arch: "sm90", Device: "h200", Model: "refined", Kernel: "triton"}},
	{{Arch: "sm90", Device: "h200", Kernel: "library"}},
	{{Arch: "gfx900", Model: "refined", Kernel: "tensile"}, {Arch: "gfx942", Model: "refined", Kernel: "tensile"}},
	{{Arch: "sm90", Device: "h200", Model: "reference", Kernel: "mma"}},
	{{Arch: "gfx942", Model: "reference"}},
}

// problems are those for which lists are made: each chooses its launch order.
var problems = []gemm.Problem{
	gemm.New(256, 256, 256), gemm.New(4096, 4096, 4096), gemm.New(128, 16384, 4096), gemm.New(16384, 64, 4096),
	gemm.New(2048, 2048, 16384), gemm.New(16384, 16384, 8192),
}

// families returns the families in the order of columns.
func families() ([]family, error) {
	var all []family
	for at, requests := range models {
		var f family
		for _, r := range requests {
			var v values
			if err := v.ofModel(r); err != nil {
				return nil, fmt.Errorf("%s: %w", columns[at], err)
			}
			f = f.with(v.family())
		}
		if requests == nil {
			var v values
			if err := v.ofGenerator(columns[at]); err != nil {
				return nil, err
			}
			f = v.family()
			f.any("group_m")
		}
		all = append(all, f)
	}
	return all, nil
}

// any says that the family takes every value on an axis: a parameter of the launch.
func (f family) any(name string) {
	for i := range f.axes {
		if f.axes[i].name == name {
			f.axes[i].values, f.axes[i].chosen = []string{"any"}, true
		}
	}
}

// with returns the family with the values of another device.
func (f family) with(other family) family {
	if f.axes == nil {
		return other
	}
	for i := range f.axes {
		a, b := &f.axes[i], other.axes[i]
		a.chosen = a.chosen || b.chosen
		for _, v := range b.values {
			if !slices.Contains(a.values, v) {
				a.values = append(a.values, v)
			}
		}
		a.offered = slices.DeleteFunc(a.offered, func(v string) bool { return slices.Contains(a.values, v) })
		slices.SortFunc(a.values, func(v, w string) int { // numbers
			return cmp.Or(cmp.Compare(len(v), len(w)), cmp.Compare(v, w))
		})
	}
	return f
}

// values are those seen on each axis of a device.
type values struct {
	numbers [gemm.NumFields]map[int]bool
	named   []gemm.Axis // declared
	seen    map[string]map[string]bool
}

func (v *values) add(configs []gemm.Config, declared []gemm.Axis) {
	if v.seen == nil {
		v.seen, v.named = map[string]map[string]bool{}, declared
		for i := range v.numbers {
			v.numbers[i] = map[int]bool{}
		}
		for i := range declared {
			v.seen[declared[i].Name] = map[string]bool{}
		}
	}
	for _, c := range configs {
		for i, n := range c.Numbers() {
			if n > 0 {
				v.numbers[i][n] = true
			}
		}
		for i := range declared {
			v.seen[declared[i].Name][declared[i].Value(c.Axes)] = true
		}
	}
}

// ofModel adds the candidates of a model, with the launch orders that it chooses for them.
func (v *values) ofModel(r arch.OpenRequest) error {
	a, err := open(r)
	if err != nil {
		return err
	}
	ctx, kernel := context.Background(), r.Kernel
	if kernel == "" {
		kernel = a.Describe().Kernels[0]
	}
	for _, p := range problems {
		if a.Describe().Arch == "gfx900" {
			p.DType = gemm.FP32
		}
		list, err := a.Candidates(ctx, p, arch.Space{Kernel: kernel})
		if err != nil {
			return err
		}
		v.add(list.Configs, a.Describe().Axes(kernel))
		for i := 0; i < len(list.Configs); i += len(list.Configs)/64 + 1 {
			m, err := a.Mapping(ctx, p, list.Configs[i])
			if err != nil {
				return err
			}
			ordered := list.Configs[i]
			ordered.GroupM = m.GroupM
			v.add([]gemm.Config{ordered}, v.named)
		}
	}
	return nil
}

// open opens a model of the built-in plugins.
func open(r arch.OpenRequest) (arch.Architecture, error) {
	for _, b := range builtins.Plugins {
		p, err := b.Provider()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(p.Manifest().Archs, func(a arch.ArchEntry) bool { return a.ID == r.Arch }) {
			return p.Open(context.Background(), r)
		}
	}
	return nil, diag.Inputf("no plugin has %s", r.Arch)
}

// ofGenerator adds the space of a generated family.
func (v *values) ofGenerator(name string) error {
	for _, f := range generated.All() {
		if f.Name() != name {
			continue
		}
		// All combinations are too many, and the axes are independent: first the numbers, then the named axes.
		numbers, named := f.Space(), f.Space()
		numbers.Axes = nil
		for _, list := range named.Numbers() {
			if list != nil {
				*list = (*list)[:1]
			}
		}
		for _, space := range []arch.Space{numbers, named} {
			all, err := arch.Space{}.Enumerate(space, f.Axes()...)
			if err != nil {
				return err
			}
			v.add(all, f.Axes())
		}
		return nil
	}
	return diag.Inputf("there is no generated family %s", name)
}

func (v *values) family() (f family) {
	for i, field := range gemm.Fields() {
		var numbers []int
		for n := range v.numbers[i] {
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		f.axes = append(f.axes, axis{name: field.Name, values: texts(numbers), chosen: len(numbers) > 1})
	}
	for _, x := range v.named {
		a := axis{name: x.Name}
		for _, value := range x.Values {
			if v.seen[x.Name][value] {
				a.values = append(a.values, value)
			} else {
				a.offered = append(a.offered, value)
			}
		}
		a.chosen = len(a.values) > 1
		f.axes = append(f.axes, a)
	}
	return f
}

func texts(numbers []int) (list []string) {
	for _, n := range numbers {
		list = append(list, strconv.Itoa(n))
	}
	return list
}
