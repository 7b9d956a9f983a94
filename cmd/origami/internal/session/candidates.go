package session

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

const candidateForm = "each configuration needs block_m, block_n, block_k, num_warps and num_stages"

// readCandidates reads configurations of one family from JSON (an array of objects, or an object per line) or CSV. The
// names are ours (block_m, or short: warps), or those of triton.Config: BLOCK_M, BLOCK_SIZE_M, GROUP_SIZE_M, with the
// block sizes in an object "kwargs" or beside num_warps. split_k is 1 where it is left out, and an axis at its default.
// Equal configurations count once.
func readCandidates(name string, data []byte, kernel string, axes []gemm.Axis) ([]gemm.Config, error) {
	if name == "-" {
		name = "stdin"
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if len(data) == 0 {
		return nil, diag.Inputf("the file of candidates is empty").At("%s", name).Do(candidateForm)
	}
	l := candidateList{kernel: kernel, axes: axes, seen: map[gemm.Config]bool{}}
	var err error
	if data[0] == '[' || data[0] == '{' {
		err = l.readJSON(name, data)
	} else {
		err = l.readCSV(name, data)
	}
	if err == nil && len(l.configs) == 0 {
		err = diag.Inputf("the file has no configurations").At("%s", name).Do(candidateForm)
	}
	return l.configs, err
}

// candidateList collects configurations.
type candidateList struct {
	kernel  string
	axes    []gemm.Axis
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
		if !given[i] && numbers[i] == 0 && !x.Optional {
			return diag.Inputf("%s is missing", x.Name).At("%s", place).Do(candidateForm)
		}
	}
	c.SetNumbers(numbers)
	if !l.seen[c] {
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
	return unknownAxis(name, place, l.axes)
}

// fieldOf returns the place in gemm.Fields of a name as files write it, −1 if it is none.
func fieldOf(name string) int {
	plain := strings.Replace(strings.ToLower(name), "_size", "", 1)
	return slices.IndexFunc(configFields, func(x gemm.Field) bool {
		return plain == x.Name || plain == x.Key && x.Key != "" || plain == x.Column && x.Column != ""
	})
}

func (l *candidateList) readJSON(name string, data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	array := data[0] == '['
	if array {
		_, _ = dec.Token() // the bracket
	}
	for dec.More() {
		place := fmt.Sprintf("%s: configuration %d", name, len(l.configs)+1)
		var object map[string]any
		if err := dec.Decode(&object); err != nil {
			return notJSON(name, err)
		}
		names, values, err := flatten(place, object)
		if err != nil {
			return err
		}
		if err := l.add(place, names, values); err != nil {
			return err
		}
	}
	if array {
		if _, err := dec.Token(); err != nil {
			return notJSON(name, err)
		}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return diag.Inputf("more follows the list").At("%s", name).Do("give one array, or an object per line")
	}
	return nil
}

func notJSON(name string, err error) error {
	return diag.Inputf("not JSON: %v", err).At("%s", name).Do("give an array of objects, or an object per line")
}

// flatten returns the names, sorted, and the values of an object and of the objects "kwargs" and "axes" in it. A null
// is left out.
func flatten(place string, object map[string]any) (names, values []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch v := object[name].(type) {
		case nil:
		case json.Number:
			names, values = append(names, name), append(values, v.String())
		case string:
			names, values = append(names, name), append(values, v)
		case map[string]any:
			if name != "kwargs" && name != "axes" {
				return nil, nil, diag.Inputf("%s is an object", name).At("%s", place).Do("give numbers and names")
			}
			inner, theirs, err := flatten(place, v)
			if err != nil {
				return nil, nil, err
			}
			names, values = append(names, inner...), append(values, theirs...)
		default:
			return nil, nil, diag.Inputf("%s is %v", name, v).At("%s", place).Do("give numbers and names")
		}
	}
	return names, values, nil
}

func (l *candidateList) readCSV(name string, data []byte) error {
	in := csv.NewReader(bytes.NewReader(data))
	in.Comment = '#'
	in.FieldsPerRecord = -1
	in.TrimLeadingSpace = true
	if line, _, _ := bytes.Cut(data, []byte("\n")); bytes.ContainsRune(line, '\t') {
		in.Comma = '\t'
	}
	header, err := in.Read()
	if err != nil {
		return rowError(name, err)
	}
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return rowError(name, err)
		}
		line, _ := in.FieldPos(0)
		place := fmt.Sprintf("%s:%d", name, line)
		if len(row) != len(header) {
			return diag.Inputf("the row has %d cells, the header %d", len(row), len(header)).At("%s", place).
				Do("give one cell per column")
		}
		var names, values []string
		for i, cell := range row {
			if cell = strings.TrimSpace(cell); cell != "" {
				names, values = append(names, header[i]), append(values, cell)
			}
		}
		if err := l.add(place, names, values); err != nil {
			return err
		}
	}
}
