package session

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Align is a flag that takes the alignment of all three matrices, or of each.
type Align struct {
	bytes [3]int
	text  string
}

// String implements pflag.Value.
func (a *Align) String() string { return a.text }

// Type implements pflag.Value: the name of the argument in help.
func (a *Align) Type() string { return "BYTES" }

// Set implements pflag.Value.
func (a *Align) Set(text string) error {
	cells := strings.Split(text, ",")
	if len(cells) == 1 {
		cells = []string{text, text, text}
	}
	if len(cells) != len(a.bytes) {
		return errors.New("is neither one number nor three, as in 2,16,16 for A, B and C")
	}
	for i, cell := range cells {
		var err error
		if a.bytes[i], err = problems.ParseAlign(cell); err != nil {
			return err
		}
	}
	a.text = text
	return nil
}

// Groups is a flag that takes the rows of each group.
type Groups struct{ groups gemm.Groups }

// String implements pflag.Value.
func (g *Groups) String() string { return g.groups.String() }

// Type implements pflag.Value: the name of the argument in help.
func (g *Groups) Type() string { return "ROWS" }

// Set implements pflag.Value.
func (g *Groups) Set(text string) (err error) {
	g.groups, err = problems.ParseGroups(text)
	return err
}

// Size is a flag that takes a whole number of at least 1. With Ranges it takes a range too, as in 1:4096, or a list,
// as in 1,16,64 or 16:16:64. value is the largest size.
type Size struct {
	value, low  int
	list        Sizes
	set, ranges bool
}

// String implements pflag.Value.
func (s *Size) String() string {
	switch {
	case s.value == 0:
		return ""
	case s.list.values != nil:
		return s.list.text
	case s.low > 0:
		return fmt.Sprintf("%d:%d", s.low, s.value)
	}
	return strconv.Itoa(s.value)
}

// Type implements pflag.Value: the name of the argument in help.
func (s *Size) Type() string { return "SIZE" }

// Set implements pflag.Value.
func (s *Size) Set(text string) error {
	if s.ranges && (strings.Contains(text, ",") || strings.Count(text, ":") > 1) {
		var list Sizes
		if err := list.Set(text); err != nil {
			return err
		}
		s.value, s.low, s.list, s.set = slices.Max(list.values), 0, list, true
		return nil
	}
	first, last, ranged := strings.Cut(text, ":")
	if !s.ranges || !ranged {
		last = text
	}
	v, err := problems.ParseSize(last)
	low := 0
	if err == nil && s.ranges && ranged {
		if low, err = problems.ParseSize(first); err == nil && low > v {
			err = errors.New("is a range that ends before it begins")
		}
	}
	if err != nil {
		return err
	}
	s.value, s.low, s.list, s.set = v, low, Sizes{}, true
	return nil
}

// Ranges lets the flag take a range or a list.
func (s *Size) Ranges() { s.ranges = true }

// Several returns the sizes of a range or a list, and false for one size.
func (s *Size) Several() (ask.Range, bool) {
	return ask.Range{Low: s.low, List: s.list.values}, s.low > 0 || s.list.values != nil
}

// Sizes is a flag that takes several sizes: a list of numbers and of ranges as in gemm.Steps, with colons.
type Sizes struct {
	values []int
	text   string
}

// String implements pflag.Value.
func (s *Sizes) String() string { return s.text }

// Type implements pflag.Value: the name of the argument in help.
func (s *Sizes) Type() string { return "SIZES" }

// Set implements pflag.Value.
func (s *Sizes) Set(text string) error {
	values, err := problems.ParseSizes(text)
	if err != nil {
		return err
	}
	s.values, s.text = values, text
	return nil
}

// ScalarFlags are what C = activation(alpha·scale_a·scale_b·A·B + beta·C + bias) + R has besides the matrices.
type ScalarFlags struct{ Alpha, Beta, Epilogue string }

// Register adds the flags.
func (f *ScalarFlags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Alpha, "alpha", "", "`FACTOR` of the product (default 1)")
	flags.StringVar(&f.Beta, "beta", "", "`FACTOR` of what C holds before; C is not read if it is 0, the default")
	flags.StringVar(&f.Epilogue, "epilogue", "", "what is done to C before it is stored: scales, bias or bias_fp32, an "+
		"`ACTIVATION` ("+gemm.ActivationNames()+"), residual, or several in this order, as bias+gelu (default none)")
}

// set sets what the flags say.
func (f *ScalarFlags) set(p *gemm.Problem) error {
	for _, x := range []struct {
		flag, text string
		to         *float32
	}{{"--alpha", f.Alpha, &p.Alpha}, {"--beta", f.Beta, &p.Beta}} {
		if x.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(x.text, 32)
		if err != nil || v-v != 0 {
			return diag.Inputf("%q is no finite number", x.text).At("%s", x.flag).Do("give a number such as 0.5")
		}
		*x.to = float32(v)
	}
	if f.Alpha != "" && p.Alpha == 0 {
		return diag.Inputf("an alpha of 0 leaves nothing to multiply").At("--alpha").Do("give another number")
	}
	var err error
	p.Epilogue, err = gemm.ParseEpilogue(f.Epilogue)
	return diag.Within("--epilogue", err)
}
