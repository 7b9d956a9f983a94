package problems

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// ParseGroups reads the rows of each group. The error completes a sentence that begins with the text.
func ParseGroups(text string) (gemm.Groups, error) {
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

// ParseAlign reads an alignment in bytes. The error completes a sentence that begins with the text.
func ParseAlign(text string) (int, error) {
	v, err := ParseSize(text)
	if err == nil && v&(v-1) != 0 {
		err = errors.New("is no power of two")
	}
	return v, err
}

// ParseSizes reads a list of sizes and of ranges as in gemm.Steps, with colons: 64,128:1024. It returns them in
// ascending order, each once. The error completes a sentence that begins with the text.
func ParseSizes(text string) ([]int, error) {
	var values []int
	for _, part := range strings.Split(text, ",") {
		var numbers []int
		for _, cell := range strings.Split(part, ":") {
			v, err := strconv.Atoi(cell)
			if err != nil {
				return nil, errors.New("is no list of sizes: " + strconv.Quote(cell) + " is not a whole number")
			}
			numbers = append(numbers, v)
		}
		steps, err := gemm.Steps(numbers...)
		var d *diag.Error
		if errors.As(err, &d) {
			return nil, errors.New("is no list of sizes: " + d.What)
		}
		if values = append(values, steps...); len(values) > gemm.MostSteps {
			return nil, errors.New("has too many sizes")
		}
	}
	slices.Sort(values)
	return slices.Compact(values), nil
}

// exactFloats bounds the whole numbers that a float holds exactly.
const exactFloats = 1 << 53

// ParseSize reads a whole number of at least 1. It may be written as a float, as in 4096.0 and 1e3: tools write a
// column of whole numbers so once a value is missing in it. The error completes a sentence that begins with the text.
func ParseSize(text string) (int, error) {
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
