package gemm

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/origami-gemm/origami/core/diag"
)

// Axes are the values of a configuration on the axes that its kernel family declares (see Axis), except for those at
// their default. Two are == if they name the same values. The zero value names none. A value is text, so that a file
// says by itself what was measured.
type Axes struct {
	// text is "name=value,name=value", sorted by name. The zero handle stands for the empty text.
	text unique.Handle[string]
}

// AxisValue is a value on a named axis.
type AxisValue struct{ Name, Value string }

// MaxAxesText bounds the text of a configuration's named axes in bytes, so that a C structure holds it.
const MaxAxesText = 127

// maxAxes bounds the axes of a family, maxAxisText the length of a name and of a value.
const (
	maxAxes     = 16
	maxAxisText = 64
)

// NewAxes returns the axes with these values, which must have different names. The order does not matter.
func NewAxes(values ...AxisValue) (Axes, error) {
	if len(values) == 0 {
		return Axes{}, nil
	}
	if len(values) > maxAxes {
		return Axes{}, diag.Inputf("%d named axes in one configuration", len(values)).Do("use at most %d", maxAxes)
	}
	sorted := values
	if !slices.IsSortedFunc(values, byName) {
		sorted = slices.SortedFunc(slices.Values(values), byName)
	}
	size := 0
	for i, v := range sorted {
		if err := v.check(); err != nil {
			return Axes{}, err
		}
		if i > 0 && sorted[i-1].Name == v.Name {
			return Axes{}, diag.Inputf("the axis %s has two values", v.Name).Do("name each axis once")
		}
		size += len(v.Name) + len(v.Value) + 2
	}
	if size-1 > MaxAxesText {
		return Axes{}, tooLong(size - 1)
	}
	text := make([]byte, 0, size)
	for i, v := range sorted {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, v.Name...), '='), v.Value...)
	}
	return Axes{unique.Make(string(text))}, nil
}

func tooLong(length int) error {
	return diag.Inputf("the named axes of a configuration take %d bytes of text", length).Do("use at most %d", MaxAxesText)
}

func byName(a, b AxisValue) int { return strings.Compare(a.Name, b.Name) }

// check reports a name or a value that cannot be written in the text of a configuration.
func (v AxisValue) check() error {
	if !axisName(v.Name) {
		return diag.Inputf("%q is no name of an axis", v.Name).
			Do("use up to %d lower-case letters, digits and underscores that begin with a letter", maxAxisText)
	}
	if v.Value == "" || len(v.Value) > maxAxisText || strings.ContainsFunc(v.Value, notInValue) {
		return diag.Inputf("%q is no value of the axis %s", v.Value, v.Name).
			Do("use up to %d letters, digits and the characters _ . + -", maxAxisText)
	}
	return nil
}

func axisName(s string) bool {
	for i, r := range s {
		letter, later := r >= 'a' && r <= 'z', r >= '0' && r <= '9' || r == '_'
		if !letter && (i == 0 || !later) {
			return false
		}
	}
	return s != "" && len(s) <= maxAxisText
}

// axisValueRunes are the characters of a value.
const axisValueRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-"

func notInValue(r rune) bool { return !strings.ContainsRune(axisValueRunes, r) }

// String returns "name=value,name=value", sorted by name, or the empty string.
func (a Axes) String() string {
	if a == (Axes{}) {
		return ""
	}
	return a.text.Value()
}

// Equal is ==.
func (a Axes) Equal(b Axes) bool { return a == b }

// All iterates over names and values, sorted by name.
func (a Axes) All() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for rest := a.String(); rest != ""; {
			var pair string
			pair, rest, _ = strings.Cut(rest, ",")
			if name, value, _ := strings.Cut(pair, "="); !yield(name, value) {
				return
			}
		}
	}
}

// Get returns the value on an axis, if there is one: an axis at its default has none.
func (a Axes) Get(name string) (value string, ok bool) {
	for n, v := range a.All() {
		if n == name {
			return v, true
		}
	}
	return "", false
}

// With returns the axes with another value on one of them; an empty value takes the axis out.
func (a Axes) With(name, value string) (Axes, error) {
	values := make([]AxisValue, 0, 4)
	for n, v := range a.All() {
		if n != name {
			values = append(values, AxisValue{n, v})
		}
	}
	if value != "" {
		values = append(values, AxisValue{name, value})
	}
	return NewAxes(values...)
}

// AxisType says what the values of an axis are.
type AxisType uint8

// The types of axes.
const (
	// Enumeration is one of a list of names.
	Enumeration AxisType = iota + 1
	// Integer is a whole number from 0 to MaxConfigNumber.
	Integer
)

var axisTypes = [...]string{Enumeration: "enumeration", Integer: "integer"}

// String returns the type's name.
func (t AxisType) String() string {
	if t >= Enumeration && int(t) < len(axisTypes) {
		return axisTypes[t]
	}
	return fmt.Sprintf("axis type(%d)", uint8(t))
}

// Axis is a property of the kernels of one family that other families lack: a cluster shape, a schedule, a vector
// width. The family declares it, and its configurations name their values on it (see Axes).
type Axis struct {
	// Name is the axis's name in text, JSON, CSV, spaces and formulas: snake_case, and not the name of a Field.
	Name string
	// Unit is the unit of an Integer, empty for a bare number.
	Unit string
	Doc  string
	Type AxisType
	// Values are the values that the family takes. An Integer without any takes every number of its type.
	Values []string
	// Default is the value of a configuration that does not name the axis. It must not change once configurations have
	// been written to files, which leave it out.
	Default string
}

// CheckAxes reports what makes the declaration of a family's axes impossible.
func CheckAxes(axes []Axis) error {
	if len(axes) > maxAxes {
		return diag.Inputf("%d named axes in one family", len(axes)).Do("use at most %d", maxAxes)
	}
	length := 0
	for i := range axes {
		x := &axes[i]
		if slices.ContainsFunc(axes[:i], func(other Axis) bool { return other.Name == x.Name }) {
			return diag.Inputf("the axis %s is declared twice", x.Name)
		}
		if slices.ContainsFunc(fields[:], func(f Field) bool { return f.Name == x.Name || f.Key == x.Name }) {
			return diag.Inputf("the axis %s has the name of a number that every configuration has", x.Name).
				Do("call it something else")
		}
		if x.Type != Enumeration && x.Type != Integer {
			return diag.Inputf("the axis %s has no type", x.Name).Do("make it an enumeration or an integer")
		}
		if x.Type == Enumeration && len(x.Values) == 0 {
			return diag.Inputf("the axis %s has no values", x.Name).Do("list them")
		}
		longest := len(strconv.Itoa(MaxConfigNumber))
		for _, v := range append(slices.Clone(x.Values), x.Default) {
			longest = max(longest, len(v))
			if err := (AxisValue{x.Name, v}).check(); err != nil {
				return err
			}
			if _, err := x.number(v); err != nil {
				return err
			}
		}
		length += len(x.Name) + 1 + longest + 1
	}
	if length-1 > MaxAxesText {
		return tooLong(length - 1)
	}
	return nil
}

// Value returns the value on the axis, which is the default if the axes do not name it.
func (x *Axis) Value(a Axes) string {
	if a == (Axes{}) {
		return x.Default
	}
	if v, ok := a.Get(x.Name); ok {
		return v
	}
	return x.Default
}

// Number returns the value on the axis as formulas see it: the number of an Integer, the place in Values, from 0, of an
// Enumeration. The axes have been validated.
func (x *Axis) Number(a Axes) int {
	n, _ := x.number(x.Value(a))
	return n
}

// number returns what Number does, and an error that names the alternatives if the axis does not take a value.
func (x *Axis) number(value string) (int, error) {
	place := slices.Index(x.Values, value)
	switch {
	case x.Type == Enumeration && place >= 0:
		return place, nil
	case x.Type == Integer && (place >= 0 || len(x.Values) == 0):
		n, err := strconv.Atoi(value)
		if err == nil && n >= 0 && n <= MaxConfigNumber && strconv.Itoa(n) == value {
			return n, nil
		}
	}
	err := diag.Inputf("the axis %s has no value %q", x.Name, value)
	if len(x.Values) == 0 {
		return 0, err.Do("give a whole number from 0 to %d", MaxConfigNumber)
	}
	return 0, err.Do("use one of %s", strings.Join(x.Values, ", "))
}

// Set gives a configuration a value on the axis. A value that the axis does not take is an error that names those that
// it does.
func (x *Axis) Set(c *Config, value string) error {
	if _, err := x.number(value); err != nil {
		return err
	}
	if value == x.Default {
		value = "" // not named, so that equal configurations are ==
	}
	axes, err := c.Axes.With(x.Name, value)
	if err == nil {
		c.Axes = axes
	}
	return err
}

// SetAxis gives a configuration a value on one of the axes that its family declares.
func (c *Config) SetAxis(declared []Axis, name, value string) error {
	x, err := FindAxis(declared, name)
	if err != nil {
		return err
	}
	return x.Set(c, value)
}

// On returns what a configuration has on an axis, as text: a number by its name in Fields, or one of the axes that its
// family declares. It is empty for another name.
func (c *Config) On(name string, declared []Axis) string {
	if i := slices.IndexFunc(fields[:], func(f Field) bool { return f.Name == name }); i >= 0 {
		return strconv.Itoa(c.Numbers()[i])
	}
	x, err := FindAxis(declared, name)
	if err != nil {
		return ""
	}
	return x.Value(c.Axes)
}

// FindAxis returns the declared axis of a name. The error names those that are declared.
func FindAxis(declared []Axis, name string) (*Axis, error) {
	for i := range declared {
		if declared[i].Name == name {
			return &declared[i], nil
		}
	}
	names := make([]string, len(declared))
	for i := range declared {
		names[i] = declared[i].Name
	}
	err := diag.Inputf("the kernel family has no axis %q", name)
	if len(names) == 0 {
		return nil, err.Do("leave it out: the family has no named axes")
	}
	return nil, err.Do("its axes are %s", strings.Join(names, ", "))
}

// validate reports an axis that is not declared, a value that the axis does not take, and a named default.
func (a Axes) validate(declared []Axis) error {
	for name, value := range a.All() {
		x, err := FindAxis(declared, name)
		if err != nil {
			return err
		}
		if _, err := x.number(value); err != nil {
			return err
		}
		if value == x.Default {
			return diag.Inputf("%s=%s is the default of the axis", name, value).Do("leave it out")
		}
	}
	return nil
}
