package gemm

import (
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
)

// Field is a number that every configuration has. The fields are enumerated here once: text, JSON, CSV, spaces,
// formulas and the wire format are derived from the list.
type Field struct {
	// Name is the field's name in JSON, in CSV, in spaces and in formulas.
	Name string
	// Key is its name in the text of a configuration, and Letter its short name, in which texts are written. The three of
	// the tile have none: they come first.
	Key    string
	Letter byte
	// Column is its name in the CSV layout of recorded sweeps.
	Column string
	// Optional says that it may be 0, which means not chosen yet.
	Optional bool
	// MayBeUnknown says that it is 0 where nobody can look into a kernel, such as one of a vendor's library.
	MayBeUnknown bool
}

// NumFields is the number of fields.
const NumFields = 7

// tileFields is how many of them are the tile; they come first.
const tileFields = 3

// fields are in the order of Numbers, which is the order of JSON keys, CSV columns and the axes of a space.
var fields = [NumFields]Field{
	{Name: "block_m", Column: "bm"},
	{Name: "block_n", Column: "bn"},
	{Name: "block_k", Column: "bk"},
	{Name: "group_m", Key: "group", Letter: 'g', Column: "gm", Optional: true},
	{Name: "num_warps", Key: "warps", Letter: 'w', Column: "warps", MayBeUnknown: true},
	{Name: "num_stages", Key: "stages", Letter: 's', Column: "stages", MayBeUnknown: true},
	{Name: "split_k", Key: "split", Letter: 'k', Column: "split"},
}

// splitField is the field of SplitK, whose default is 1 everywhere.
const splitField = 6

// textOrder lists the fields that follow the tile in the text of a configuration.
var textOrder = [NumFields - tileFields]int{4, 5, 3, 6}

// Fields lists the numbers of a configuration, in the order of Config.Numbers; the first three are the tile.
func Fields() []Field { return slices.Clone(fields[:]) }

// Numbers returns the numbers of a configuration in the order of Fields.
func (c *Config) Numbers() [NumFields]int {
	return [...]int{c.BlockM, c.BlockN, c.BlockK, c.GroupM, c.NumWarps, c.NumStages, c.SplitK}
}

// SetNumbers sets the numbers of a configuration, in the order of Fields.
func (c *Config) SetNumbers(v [NumFields]int) {
	c.BlockM, c.BlockN, c.BlockK, c.GroupM, c.NumWarps, c.NumStages, c.SplitK = v[0], v[1], v[2], v[3], v[4], v[5], v[6]
}

// Validate reports a number outside 1 to MaxConfigNumber (GroupM may be 0), a named axis that is not among those
// declared, and a value that the axis does not take. Models divide by the numbers, so they validate every
// configuration. They pass the axes that the configuration's family declares; a model that passes none refuses all
// named axes. Without named axes it costs a few nanoseconds.
func (c *Config) Validate(declared ...Axis) error {
	if c.Plain() {
		return nil
	}
	return c.invalid(declared)
}

// Plain reports whether the numbers are in range and no axis is named. Such a configuration is valid in every family.
// The compiler inlines it where a model checks a list.
func (c *Config) Plain() bool { return c.inRange() && c.Axes == (Axes{}) }

// ValidateNumbers is Validate for a reader that does not know the family's axes: it passes any.
func (c *Config) ValidateNumbers() error {
	if c.inRange() {
		return nil
	}
	return diag.Inputf("config %s has a number outside 1 to %d", *c, MaxConfigNumber).
		Do("give whole numbers in that range")
}

// ValidateKnown is Validate for a family that nobody can look into: what MayBeUnknown is 0, so is GroupM, and no axis
// is named.
func (c *Config) ValidateKnown() error {
	numbers, known := c.Numbers(), *c
	for i, v := range numbers {
		if !fields[i].MayBeUnknown && !fields[i].Optional {
			continue
		}
		if numbers[i] = 1; v != 0 {
			return diag.Inputf("config %s has %s = %d, which nobody knows of these kernels", *c, fields[i].Name, v).
				Do("leave it out")
		}
	}
	known.SetNumbers(numbers)
	return known.Validate()
}

func (c *Config) inRange() bool {
	// Less one, a number in range has no bit that MaxConfigNumber − 1 lacks, and a number below 1 has all bits.
	return uint(c.BlockM-1)|uint(c.BlockN-1)|uint(c.BlockK-1)|
		uint(c.NumWarps-1)|uint(c.NumStages-1)|uint(c.SplitK-1) < MaxConfigNumber && uint(c.GroupM) <= MaxConfigNumber
}

func (c *Config) invalid(declared []Axis) error {
	if err := c.ValidateNumbers(); err != nil {
		return err
	}
	if err := c.Axes.validate(declared); err != nil {
		return diag.Within(fmt.Sprintf("config %s", *c), err)
	}
	return nil
}
