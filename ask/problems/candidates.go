package problems

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
)

// configFields are the numbers that every configuration has.
var configFields = gemm.Fields()

const candidateForm = "each configuration needs block_m, block_n, block_k, num_warps and num_stages"

// Candidates reads configurations of one family from JSON (an array of objects, or an object per line) or CSV. The
// names are ours (block_m, or short: warps), or those of triton.Config: BLOCK_M, BLOCK_SIZE_M, GROUP_SIZE_M, with the
// block sizes in an object "kwargs" or beside num_warps. split_k is 1 where it is left out, and an axis at its default.
// Equal configurations count once.
func Candidates(name string, data []byte, kernel string, d *arch.Description) ([]gemm.Config, error) {
	if name == "-" {
		name = "stdin"
	}
	l := candidateList{
		kernel: kernel, axes: d.Axes(kernel), opaque: d.Opaque(kernel), seen: map[gemm.Config]bool{},
	}
	rows, err := openRows(name, bytes.NewReader(data), int64(len(data)),
		jsonForm{within: map[string]int{"kwargs": 1, "axes": 1}, fix: "give an array of objects, or an object per line",
			first: true, held: data})
	for err == nil {
		var cells []string
		var bad error
		if cells, bad, err = rows.next(false); err == nil && bad == nil {
			err = l.add(rows.line(), rows.columns(), cells)
		}
		err = cmp.Or(err, bad)
	}
	switch {
	case !errors.Is(err, io.EOF):
		return nil, err
	case len(l.configs) == 0:
		return nil, diag.Inputf("the file has no configurations").At("%s", name).Do(candidateForm)
	}
	return l.configs, nil
}

// candidateList collects configurations.
type candidateList struct {
	kernel  string
	axes    []gemm.Axis
	opaque  bool // the family, see arch.Family
	configs []gemm.Config
	seen    map[gemm.Config]bool
}

// add makes a configuration of names and values as the file has them.
func (l *candidateList) add(place string, names, values []string) error {
	c := gemm.Config{Kernel: l.kernel, SplitK: 1}
	numbers := c.Numbers()
	var given [gemm.NumFields]bool
	for i, name := range names {
		value := values[i]
		switch at := fieldOf(name); {
		case value == "": // another row has it
		case at >= 0 && given[at]:
			return diag.Inputf("%s is given twice", configFields[at].Name).At("%s", place).Do("leave one of them out")
		case at >= 0:
			v, err := strconv.Atoi(value)
			if err != nil || v < 1 || v > gemm.MaxConfigNumber {
				return diag.Inputf("%s is %q", name, value).At("%s", place).
					Do("give a whole number from 1 to %d", gemm.MaxConfigNumber)
			}
			numbers[at], given[at] = v, true
		default:
			if err := l.setAxis(&c, place, name, value); err != nil {
				return err
			}
		}
	}
	for i, x := range configFields {
		if !given[i] && numbers[i] == 0 && !x.Optional && (!x.MayBeUnknown || !l.opaque) {
			return diag.Inputf("%s is missing", x.Name).At("%s", place).Do(candidateForm)
		}
	}
	c.SetNumbers(numbers)
	if !l.seen[c] {
		if len(l.configs) == limit.Rows {
			return diag.Inputf("there are more than %d configurations, the most that are read", limit.Rows).
				At("%s", place).Do("leave configurations out")
		}
		l.seen[c] = true
		l.configs = append(l.configs, c)
	}
	return nil
}

// setAxis gives a configuration a value on one of the family's axes.
func (l *candidateList) setAxis(c *gemm.Config, place, name, value string) error {
	if _, err := gemm.FindAxis(l.axes, name); err == nil {
		return diag.Within(place, c.SetAxis(l.axes, name, value))
	}
	if name == "num_ctas" { // triton.Config's name for the size of a cluster
		if value == "1" {
			return nil
		}
		return diag.Inputf("the kernel family %s has no clusters of %s CTAs", l.kernel, value).
			At("%s", place).Do("leave num_ctas at 1")
	}
	return arch.UnknownAxis(name, l.axes).At("%s", place)
}

// fieldOf returns the place in gemm.Fields of a name as files write it, −1 if it is none.
func fieldOf(name string) int {
	plain := strings.Replace(strings.ToLower(name), "_size", "", 1)
	return slices.IndexFunc(configFields, func(x gemm.Field) bool {
		return plain == x.Name || plain == x.Key && x.Key != "" || plain == x.Column && x.Column != ""
	})
}
