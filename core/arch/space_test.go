package arch

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// Named axes are enumerated after the numbers, in the order of their declaration, the last one fastest; what neither
// space lists stays at its default.
func TestEnumerateNamedAxes(t *testing.T) {
	declared := []gemm.Axis{
		{Name: "schedule", Type: gemm.Enumeration, Values: []string{"simple", "ping"}, Default: "simple"},
		{Name: "cluster", Type: gemm.Integer, Default: "1"},
		{Name: "other", Type: gemm.Integer, Default: "0"},
	}
	one := []int{1}
	defaults := Space{
		Kernel: "new", BlockM: one, BlockN: one, BlockK: one, NumWarps: one, NumStages: one, SplitK: []int{1, 2},
		Axes: []AxisValues{{"cluster", []string{"1", "2"}}, {"schedule", []string{"simple", "ping"}}},
	}
	list := func(s Space) string {
		configs := must.Get(s.Enumerate(defaults, declared...))(t)
		var out []string
		for i := range configs {
			must.Do(t, configs[i].Validate(declared...))
			out = append(out, strings.TrimSpace(strings.TrimPrefix(configs[i].String(), "1x1x1 w1 s1")))
		}
		return strings.Join(out, "; ")
	}
	want := "; cluster=2; schedule=ping; cluster=2 schedule=ping; k2; k2 cluster=2; k2 schedule=ping; " +
		"k2 cluster=2 schedule=ping"
	must.Equal(t, list(Space{}), want)
	got := list(Space{SplitK: one, Axes: []AxisValues{{"cluster", []string{"8", "1"}}, {"other", []string{"3"}}}})
	want = "cluster=8 other=3; other=3; cluster=8 other=3 schedule=ping; other=3 schedule=ping"
	must.Equal(t, got, want)

	many := make([]string, 2000)
	for i := range many {
		many[i] = "7"
	}
	for says, s := range map[string]Space{
		`kernel family new: the kernel family has no axis "size"; its axes are schedule`: {Axes: []AxisValues{{"size",
			[]string{"1"}}}},
		`the axis schedule has no value "pong"; use one of simple, ping`: {Axes: []AxisValues{{"schedule",
			[]string{"pong"}}}},
		"more than 262144 configurations": {Axes: []AxisValues{{"cluster",
			many}, {"other", many}}},
	} {
		configs, err := s.Enumerate(defaults, declared...)
		must.That(t, diag.KindOf(err) == diag.Input && err != nil &&
			strings.Contains(err.Error(), says), "%d configurations, %v, want %q", len(configs), err, says)
	}
}

// What nobody knows of a family's kernels is 0 in each of its configurations, and a space cannot name it.
func TestUnknownOfAFamily(t *testing.T) {
	own := Space{Kernel: "opaque", BlockM: []int{64}, BlockN: []int{64, 128}, BlockK: []int{64},
		NumWarps: Unknown, NumStages: Unknown, SplitK: []int{1, 2}}
	all, err := Space{BlockN: []int{32}}.Enumerate(own)
	must.Need(t, err == nil && len(all) == 2 && all[1].String() == "64x32x64 k2", "%v, %v", all, err)
	d := Description{Kernels: []string{"opaque", "open"}, Families: []Family{{Name: "opaque", Opaque: true}}}
	c := all[0]
	must.Do(t, d.CheckConfig(&c))
	c.NumStages = 3
	must.Fail(t, d.CheckConfig(&c), "num_stages = 3, which nobody knows")
	c.NumStages, c.Kernel = 0, "open"
	err = d.CheckConfig(&c)
	must.That(t, diag.KindOf(err) == diag.Input, "no warps in another family: %v", err)
	_, err = Space{NumWarps: []int{4}}.Enumerate(own)
	must.Refuse(t, err, "nobody knows num_warps of the kernels of")
}

// A space is narrowed to invariant configurations. What contradicts them is refused, and so is a family that does not
// say which they are.
// TestInvariantTrees: a split of K that divides the leaves of a tree keeps its order, and no other does.
func TestInvariantTrees(t *testing.T) {
	axes := []gemm.Axis{{Name: "tree", Type: gemm.Integer, Values: []string{"1", "2", "4", "8"}, Default: "1"}}
	sums := SumOrder{Same: []string{"tree"}, Values: []AxisValues{{"split_k", []string{"1"}}}, Leaves: "tree"}
	d := Description{Kernels: []string{"k"}, Families: []Family{{Name: "k", Axes: axes, Sums: sums}}}
	for text, want := range map[string][]int{"8": {1, 2, 4, 8}, "4": {1, 2, 4}, "1": {1}, "2,8": {1, 2}, "": {1}} {
		space := Space{SplitK: []int{1, 2, 3, 4, 6, 8, 16}}
		if text != "" {
			space.Axes = []AxisValues{{"tree", strings.Split(text, ",")}}
		}
		if s, _, err := d.Invariant(space); err != nil || !slices.Equal(s.SplitK, want) {
			t.Errorf("tree of %s: split_k of %v, want %v, %v", text, s.SplitK, want, err)
		}
	}
	for text, invariant := range map[string]bool{
		"64x32x16,w4,s2,k4,tree=8": true, "64x32x16,w4,s2,k8,tree=8": true, "64x32x16,w4,s2,tree=4": true,
		"64x32x16,w4,s2,k4,tree=2": false, "64x32x16,w4,s2,k3,tree=8": false, "64x32x16,w4,s2,k2": false,
	} {
		c, err := gemm.ParseConfig(text, gemm.Config{SplitK: 1}, axes...)
		must.That(t, err == nil && sums.Has(&c, axes) == invariant, "%s: %v", text, err)
	}
}

func TestInvariant(t *testing.T) {
	axes := []gemm.Axis{{Name: "skew", Type: gemm.Integer, Values: []string{"0", "1"}, Default: "1"}}
	d := Description{Kernels: []string{"silent", "ordered"}, Families: []Family{{Name: "silent"}, {Name: "ordered",
		Axes: axes, Sums: SumOrder{Same: []string{"block_k"}, Values: []AxisValues{{Name: "split_k", Values: []string{"1"}},
			{Name: "skew", Values: []string{"0"}}, {Name: "block_m", Values: []string{"64", "128"}}}}}}}
	must.Do(t, d.CheckFamilies())
	s, same, err := d.Invariant(Space{Kernel: "ordered", BlockM: []int{32, 64, 256}, NumWarps: []int{4}})
	want := Space{Kernel: "ordered", BlockM: []int{64}, NumWarps: []int{4}, SplitK: []int{1},
		Axes: []AxisValues{{Name: "skew", Values: []string{"0"}}}}
	must.That(t, err == nil && reflect.DeepEqual(s, want) && slices.Equal(same, []string{"block_k"}),
		"%+v, %v, %v", s, same, err)
	for want, space := range map[string]Space{
		"with split_k of 2, 4 the order of sums depends on M; leave it out, or give 1": {
			Kernel: "ordered", SplitK: []int{2, 4},
		},
		"with skew of 1 the order of sums depends on M": {
			Kernel: "ordered", Axes: []AxisValues{{"skew", []string{"1"}}},
		},
		"in which order kernels of the family silent add up; use ordered kernels": {},
	} {
		_, _, err := d.Invariant(space)
		must.That(t, err != nil && strings.Contains(err.Error(), want), "%+v: %v", space, err)
	}
	sums := d.Families[1].Sums
	for text, invariant := range map[string]bool{
		"64x32x16,w4,s2,skew=0": true, "64x32x16,w4,s2": false, "32x32x16,w4,s2,skew=0": false,
		"64x32x16,w4,s2,k2,skew=0": false,
	} {
		c, err := gemm.ParseConfig(text, gemm.Config{}, axes...)
		must.That(t, err == nil && sums.Has(&c, axes) == invariant, "%s: %v", text, err)
	}
	d.Families[1].Sums.Same = []string{"blockk"}
	must.Fail(t, d.CheckFamilies(), `unknown axis "blockk"`)
	d.Families[1].Sums = SumOrder{Values: []AxisValues{{Name: "skew", Values: []string{"2"}}}}
	must.Fail(t, d.CheckFamilies(), "skew")
}
