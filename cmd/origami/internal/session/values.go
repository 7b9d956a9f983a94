package session

import (
	"errors"
	"math"
	"strconv"
	"strings"

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
		if a.bytes[i], err = parseAlign(cell); err != nil {
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
	g.groups, err = parseGroups(text)
	return err
}

// parseGroups reads the rows of each group. The error completes a sentence that begins with the text.
func parseGroups(text string) (gemm.Groups, error) {
	g, err := gemm.ParseGroups(text)
	var d *diag.Error
	if errors.As(err, &d) {
		return g, errors.New("is no list of rows: " + d.What)
	}
	if g.Rows() == 0 {
		return g, errors.New("has no rows")
	}
	return g, nil
}

// parseAlign reads an alignment in bytes.
func parseAlign(text string) (int, error) {
	v, err := parseSize(text)
	if err == nil && v&(v-1) != 0 {
		err = errors.New("is no power of two")
	}
	return v, err
}

// Size is a flag that takes a whole number of at least 1.
type Size struct {
	value int
	set   bool
}

// String implements pflag.Value.
func (s *Size) String() string {
	if s.value == 0 {
		return ""
	}
	return strconv.Itoa(s.value)
}

// Type implements pflag.Value: the name of the argument in help.
func (s *Size) Type() string { return "SIZE" }

// Set implements pflag.Value.
func (s *Size) Set(text string) error {
	v, err := parseSize(text)
	if err != nil {
		return err
	}
	s.value, s.set = v, true
	return nil
}

// exactFloats bounds the whole numbers that a float holds exactly.
const exactFloats = 1 << 53

// parseSize reads a whole number of at least 1. It may be written as a float, as in 4096.0 and 1e3: tools write a
// column of whole numbers so once a value is missing in it.
func parseSize(text string) (int, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		whole, notFloat := strconv.ParseFloat(text, 64)
		if notFloat == nil && whole == math.Trunc(whole) && math.Abs(whole) <= exactFloats {
			v, err = int64(whole), nil
		}
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, errors.New("does not fit in 64 bits")
	case text == "":
		return 0, errors.New("is empty")
	case err != nil:
		return 0, errors.New("is not a whole number")
	case v == 0:
		return 0, errors.New("is zero")
	case v < 0:
		return 0, errors.New("is negative")
	}
	return int(v), nil
}
