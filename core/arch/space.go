package arch

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Space says which configurations to consider. Empty axes mean the model's own.
type Space struct {
	// Kernel is the kernel family; empty means Description.Kernels[0].
	Kernel                                              string
	BlockM, BlockN, BlockK, NumWarps, NumStages, SplitK []int
	// Axes are the values on named axes, which the family must declare. An axis that is not listed is the model's own.
	Axes []AxisValues
}

// AxisValues are the values of a space on one named axis.
type AxisValues struct {
	Name   string
	Values []string
}

// Unknown are the values of a model's space on an axis that is unknown of its kernels (Family.Opaque).
var Unknown = []int{0}

// Numbers returns the values of the space by field, in the order of gemm.Fields. A nil pointer stands for a field that
// is not searched: phase two of the selection chooses the launch-order group.
func (s *Space) Numbers() [gemm.NumFields]*[]int {
	return [...]*[]int{&s.BlockM, &s.BlockN, &s.BlockK, nil, &s.NumWarps, &s.NumStages, &s.SplitK}
}

// Axis returns the values on a named axis, nil if the space does not list it.
func (s *Space) Axis(name string) []string {
	for i := range s.Axes {
		if s.Axes[i].Name == name {
			return s.Axes[i].Values
		}
	}
	return nil
}

// Set gives the space values on an axis: a number of every configuration, by its name in gemm.Fields or its key, or an
// axis that the family declares. It returns the axis's name.
func (s *Space) Set(name string, values []string, declared []gemm.Axis) (string, error) {
	fields := gemm.Fields()
	i := slices.IndexFunc(fields, func(x gemm.Field) bool { return x.Name == name || x.Key != "" && x.Key == name })
	if i < 0 {
		if _, err := gemm.FindAxis(declared, name); err != nil {
			return name, UnknownAxis(name, declared)
		}
		s.Axes = append(s.Axes, AxisValues{Name: name, Values: values})
		return name, nil
	}
	name = fields[i].Name
	numbers := s.Numbers()[i]
	if numbers == nil {
		return name, diag.Inputf("%s is not searched: the launch order is chosen after the configuration", name).
			Do("leave it out, or list whole configurations")
	}
	for _, v := range values {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > gemm.MaxConfigNumber {
			return name, diag.Inputf("%s has no value %q", name, v).
				Do("give whole numbers from 1 to %d", gemm.MaxConfigNumber)
		}
		*numbers = append(*numbers, n)
	}
	return name, nil
}

// UnknownAxis is the error for an axis that neither every configuration has nor the family declares. It names the axes.
func UnknownAxis(name string, declared []gemm.Axis) *diag.Error {
	var names []string
	for _, x := range gemm.Fields() {
		names = append(names, x.Name)
	}
	for i := range declared {
		names = append(names, declared[i].Name)
	}
	err := diag.Inputf("unknown axis %q", name)
	if near := diag.Nearest(name, names, 1); len(near) > 0 {
		return err.Do("did you mean %s? The axes are %s", near[0], strings.Join(names, ", "))
	}
	return err.Do("the axes are %s", strings.Join(names, ", "))
}

// MaxSpace is how many configurations a space may have, so that a request cannot exhaust the memory. A list of as many
// fits into one answer of a plugin.
const MaxSpace = 1 << 18

// Enumerate lists every configuration of the space, with the axes that it leaves empty taken from defaults: block_m
// slowest, then block_n, block_k, num_warps, num_stages and split_k, then the axes that the family declares, the last
// one fastest. A declared axis that neither space lists stays at its default. A number that no configuration can have,
// a named axis that is not declared, a value that an axis does not take, or a space of more than MaxSpace
// configurations, is an error of kind diag.Input.
func (s Space) Enumerate(defaults Space, declared ...gemm.Axis) ([]gemm.Config, error) {
	named, err := s.enumerateAxes(&defaults, declared)
	if err != nil {
		return nil, err
	}
	total := len(named)
	var numbers [gemm.NumFields][]int
	fallback := defaults.Numbers()
	check := (*gemm.Config).ValidateNumbers
	for i, values := range s.Numbers() {
		if values == nil {
			continue
		}
		if slices.Equal(*fallback[i], Unknown) {
			if len(*values) > 0 {
				return nil, diag.Inputf("nobody knows %s of the kernels of family %s", gemm.Fields()[i].Name, defaults.Kernel).
					Do("leave it out of the space")
			}
			check = (*gemm.Config).ValidateKnown
			continue
		}
		if numbers[i] = *values; len(numbers[i]) == 0 {
			numbers[i] = *fallback[i]
		}
		if total *= len(numbers[i]); total > MaxSpace {
			return nil, SpaceTooLarge()
		}
	}
	configs := make([]gemm.Config, total)
	for i := range configs {
		c := &configs[i]
		c.Kernel = defaults.Kernel
		c.Axes = named[i%len(named)]
		rest := i / len(named)
		var v [gemm.NumFields]int
		for j := len(numbers) - 1; j >= 0; j-- {
			if n := len(numbers[j]); n > 0 {
				v[j] = numbers[j][rest%n]
				rest /= n
			}
		}
		c.SetNumbers(v)
		if err := check(c); err != nil {
			return nil, err
		}
	}
	return configs, nil
}

// SpaceTooLarge is the error for a space of more than MaxSpace configurations.
func SpaceTooLarge() error {
	return diag.Inputf("the configuration space has more than %d configurations", MaxSpace).Do("shorten an axis")
}

// enumerateAxes lists every combination of values on the named axes. Without such axes the list has one empty entry.
func (s *Space) enumerateAxes(defaults *Space, declared []gemm.Axis) ([]gemm.Axes, error) {
	for _, axis := range s.Axes {
		if _, err := gemm.FindAxis(declared, axis.Name); err != nil {
			return nil, diag.Within("kernel family "+defaults.Kernel, err)
		}
	}
	named := make([]gemm.Axes, 1)
	for i := range declared {
		x := &declared[i]
		values := s.Axis(x.Name)
		if len(values) == 0 {
			values = defaults.Axis(x.Name)
		}
		if len(values) == 0 {
			continue
		}
		if len(named)*len(values) > MaxSpace {
			return nil, SpaceTooLarge()
		}
		longer := make([]gemm.Axes, 0, len(named)*len(values))
		for _, axes := range named {
			for _, value := range values {
				c := gemm.Config{Axes: axes}
				if err := x.Set(&c, value); err != nil {
					return nil, err
				}
				longer = append(longer, c.Axes)
			}
		}
		named = longer
	}
	return named, nil
}

// Family is what a model says about a kernel family beyond its name.
type Family struct {
	Name string
	Doc  string
	// Axes are what its configurations have beyond the numbers of gemm.Fields, in the order in which they are enumerated.
	Axes []gemm.Axis
	// Types are the types of operands and results that the model predicts its kernels for. If there are none, the model
	// answers for a problem or refuses it.
	Types []gemm.Types
	// Groups: the model predicts its kernels for problems in groups.
	Groups bool
	// Opaque: nobody can look into its kernels, which belong to a vendor's library. What a configuration does not
	// know of them is 0: warps, stages and the launch order.
	Opaque bool
	// Nests: the family has kernels for problems with nested indices. The model predicts the matrices, see Whole.
	Nests bool
	// Pastes names the formats in which programs take its configurations, as docs/json.md has them.
	Pastes []string
	// Sums says which of its configurations add up an element of C in an order that does not depend on M. It is empty if
	// nothing is known of that.
	Sums SumOrder
}

// SumOrder says which configurations of a family are invariant: they compute an element of C by the same operations in
// the same order whatever M is, so that its bits do not depend on M.
type SumOrder struct {
	// Values are what an invariant configuration has on axes: one of these.
	Values []AxisValues
	// Same are the axes whose values determine the order: invariant configurations with the same values on them have the
	// same.
	Same []string
	// Leaves is the axis, among Same, of how many parts of K are added in a tree, whose order is the same for each split_k
	// that divides them. Empty if there is none.
	Leaves string
}

// splits returns the values of split_k that keep the order of a tree of so many leaves.
func splits(leaves int) (values []string) {
	for n := 1; n <= leaves; n *= 2 {
		values = append(values, strconv.Itoa(n))
	}
	return values
}

// Invariant narrows a space to the invariant configurations of its family, and returns the axes that determine the
// order of their sums.
func (d *Description) Invariant(s Space) (Space, []string, error) {
	kernel := s.Kernel
	if kernel == "" && len(d.Kernels) > 0 {
		kernel = d.Kernels[0]
	}
	sums, err := d.SumsOf(kernel)
	if err != nil {
		return s, nil, err
	}
	s.Axes = slices.Clone(s.Axes)
	leaves := 1
	if values := s.Axis(sums.Leaves); len(values) > 0 {
		leaves, _ = strconv.Atoi(slices.MinFunc(values, func(a, b string) int {
			return cmp.Or(len(a)-len(b), cmp.Compare(a, b))
		}))
	}
	for _, x := range sums.Values {
		if x.Name == "split_k" && leaves > 1 {
			x.Values = splits(leaves)
		}
		given := s.Texts(x.Name)
		kept := slices.DeleteFunc(slices.Clone(given), func(v string) bool { return !slices.Contains(x.Values, v) })
		switch {
		case len(given) == 0:
			kept = x.Values
		case len(kept) == 0:
			return s, nil, diag.Inputf("with %s of %s the order of sums depends on M", x.Name, strings.Join(given, ", ")).
				Do("leave it out, or give %s", strings.Join(x.Values, ", "))
		}
		s.clear(x.Name)
		if _, err := s.Set(x.Name, kept, d.Axes(kernel)); err != nil {
			return s, nil, err
		}
	}
	return s, sums.Same, nil
}

// SumsOf returns which configurations of a family are invariant, and an error for a family that does not say.
func (d *Description) SumsOf(kernel string) (SumOrder, error) {
	sums := d.family(kernel).Sums
	if len(sums.Same) > 0 {
		return sums, nil
	}
	err := diag.Inputf("nobody knows in which order kernels of the family %s add up", kernel)
	if others := d.familiesThat(func(f *Family) bool { return len(f.Sums.Same) > 0 }); others != nil {
		return sums, err.Do("use %s kernels", strings.Join(others, " or "))
	}
	return sums, err.Do("choose the configurations yourself")
}

// Has reports whether a configuration is invariant.
func (o *SumOrder) Has(c *gemm.Config, declared []gemm.Axis) bool {
	if len(o.Same) == 0 {
		return false
	}
	for _, x := range o.Values {
		if o.Leaves != "" && x.Name == "split_k" {
			if leaves, err := gemm.FindAxis(declared, o.Leaves); err == nil {
				x.Values = append(splits(leaves.Number(c.Axes)), x.Values...)
			}
		}
		if !slices.Contains(x.Values, c.On(x.Name, declared)) {
			return false
		}
	}
	return true
}

// Texts returns the values of the space on an axis as texts, nil if it lists none.
func (s *Space) Texts(name string) (texts []string) {
	for i, values := range s.Numbers() {
		if gemm.Fields()[i].Name != name || values == nil {
			continue
		}
		for _, v := range *values {
			texts = append(texts, strconv.Itoa(v))
		}
		return texts
	}
	return s.Axis(name)
}

// clear makes the space list no values on an axis.
func (s *Space) clear(name string) {
	for i, values := range s.Numbers() {
		if gemm.Fields()[i].Name == name && values != nil {
			*values = nil
		}
	}
	s.Axes = slices.DeleteFunc(s.Axes, func(x AxisValues) bool { return x.Name == name })
}

// family returns what the model says about a kernel family, the zero Family if it says nothing.
func (d *Description) family(kernel string) Family {
	for i := range d.Families {
		if d.Families[i].Name == kernel {
			return d.Families[i]
		}
	}
	return Family{}
}

// Opaque reports whether nobody can look into the kernels of a family.
func (d *Description) Opaque(kernel string) bool { return d.family(kernel).Opaque }

// CheckConfig reports what no configuration of its family can have.
func (d *Description) CheckConfig(c *gemm.Config) error {
	switch {
	case d.Opaque(c.Kernel):
		return c.ValidateKnown()
	case c.Plain():
		return nil
	}
	return c.Validate(d.Axes(c.Kernel)...)
}

// Axes returns the axes that a kernel family declares.
func (d *Description) Axes(kernel string) []gemm.Axis { return d.family(kernel).Axes }

// CheckFamilies reports what makes the declarations of the kernel families impossible. Families whose axes have the
// same name must declare the same axis, as formulas know it by its name alone.
func (d *Description) CheckFamilies() error {
	declared := map[string]gemm.Axis{}
	for i := range d.Families {
		f := &d.Families[i]
		place := "kernel family " + f.Name
		if !slices.Contains(d.Kernels, f.Name) {
			return diag.Inputf("it is not among the families that the model predicts (%s)", strings.Join(d.Kernels,
				", ")).At("%s", place)
		}
		if err := gemm.CheckAxes(f.Axes); err != nil {
			return diag.Within(place, err)
		}
		for _, x := range f.Axes {
			if other, ok := declared[x.Name]; ok && !reflect.DeepEqual(x, other) {
				return diag.Inputf("another family declares the axis %s otherwise", x.Name).At("%s", place).Do("rename it")
			}
			declared[x.Name] = x
		}
		if err := f.Sums.check(f.Axes); err != nil {
			return diag.Within(place, err)
		}
	}
	return nil
}

// check reports an axis that the family does not have, and a value that it does not take.
func (o *SumOrder) check(declared []gemm.Axis) error {
	var s Space
	for _, x := range o.Values {
		if _, err := s.Set(x.Name, x.Values, declared); err != nil {
			return err
		}
	}
	for _, name := range o.Same {
		if _, err := s.Set(name, nil, declared); err != nil {
			return err
		}
	}
	_, err := s.enumerateAxes(&Space{}, declared)
	return err
}

// Candidates is a candidate list.
type Candidates struct {
	// Configs are the usable configurations in the model's order.
	Configs []gemm.Config
	// Rejected are the others, by ascending Position.
	Rejected []Rejection
}

// Rejection is a configuration that cannot be used, and why.
type Rejection struct {
	Config gemm.Config
	// Position is its place in the whole enumeration, usable and rejected together.
	Position int
	Reason   Reason
	// Detail says it in numbers, as "needs 131072 B of shared memory, 101376 B available".
	Detail string
}
