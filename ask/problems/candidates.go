package problems

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if len(data) == 0 {
		return nil, diag.Inputf("the file of candidates is empty").At("%s", name).Do(candidateForm)
	}
	l := candidateList{
		kernel: kernel, axes: d.Axes(kernel), opaque: d.Opaque(kernel), seen: map[gemm.Config]bool{},
	}
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

func (l *candidateList) readJSON(name string, data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	array := data[0] == '['
	if array {
		_, _ = dec.Token() // the bracket
	}
	for dec.More() {
		place := fmt.Sprintf("%s: configuration %d", name, len(l.configs)+1)
		o := object{dec: dec, place: place}
		if err := o.read(); err != nil {
			return notJSON(name, err)
		}
		if err := l.add(place, o.names, o.values); err != nil {
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
	var ours *diag.Error
	if errors.As(err, &ours) {
		return err
	}
	return diag.Inputf("not JSON: %v", err).At("%s", name).Do("give an array of objects, or an object per line")
}

// object is a JSON object with its members and those of the objects "kwargs" and "axes" in it. It is read token by
// token: a decoded tree can take twenty times the space of its text. A null is left out.
type object struct {
	dec           *json.Decoder
	place         string
	names, values []string
}

func (o *object) read() error {
	switch start, err := o.dec.Token(); {
	case err != nil:
		return err
	case start != json.Delim('{'):
		return diag.Inputf("it is not an object").At("%s", o.place).Do(candidateForm)
	}
	return o.members(0)
}

// members reads up to the end of an object, which is in depth others.
func (o *object) members(depth int) error {
	for {
		token, err := o.dec.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return nil // the closing brace: the decoder allows nothing else
		}
		if token, err = o.dec.Token(); err != nil {
			return err
		}
		if len(o.names) == limit.Cells {
			return diag.Inputf("it has more than %d members", limit.Cells).At("%s", o.place).Do("give numbers and names")
		}
		switch v := token.(type) {
		case nil:
		case json.Number:
			o.names, o.values = append(o.names, name), append(o.values, v.String())
		case string:
			o.names, o.values = append(o.names, name), append(o.values, v)
		case json.Delim:
			if v != '{' || depth > 1 || name != "kwargs" && name != "axes" {
				return diag.Inputf("%s is neither a number nor a name", name).At("%s", o.place).
					Do("give numbers and names")
			}
			if err := o.members(depth + 1); err != nil {
				return err
			}
		default:
			return diag.Inputf("%s is %v", name, v).At("%s", o.place).Do("give numbers and names")
		}
	}
}

func (l *candidateList) readCSV(name string, data []byte) error {
	form := limit.CSV{Comment: '#', TrimLeadingSpace: true, Rows: limit.Rows}
	if line, _, _ := bytes.Cut(data, []byte("\n")); bytes.ContainsRune(line, '\t') {
		form.Comma, form.TrimLeadingSpace = '\t', false // a leading tab is an empty cell
	}
	in := form.Reader(bytes.NewReader(data), name, "leave configurations out")
	in.FieldsPerRecord = -1
	first, err := in.Read()
	if err != nil {
		return rowError(name, err)
	}
	header := slices.Clone(first)
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
