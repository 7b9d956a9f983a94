package gemm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// axesKey is the JSON key under which the values on named axes stand, by name.
const axesKey = "axes"

// MarshalJSON writes the numbers by the names of Fields and, if there are any, the values on named axes under "axes".
// What nobody knows, warps among it, is null. The family is not part of it.
func (c Config) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 128)
	for i, v := range c.Numbers() {
		b = append(append(append(b, ",\""...), fields[i].Name...), "\":"...)
		if v == 0 && c.NumWarps == 0 {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendInt(b, int64(v), 10)
		}
	}
	b[0] = '{'
	if c.Axes != (Axes{}) {
		b = append(b, ",\""+axesKey+"\":{"...)
		for name, value := range c.Axes.All() { // letters and digits, which need no quoting
			b = append(append(append(append(append(b, '"'), name...), "\":\""...), value...), "\","...)
		}
		b[len(b)-1] = '}'
	}
	return append(b, '}'), nil
}

// Columns are the keys that MarshalJSON writes.
func (Config) Columns() (names []string) {
	for i := range fields {
		names = append(names, fields[i].Name)
	}
	return append(names, axesKey)
}

// Cells are the values under Columns: empty for null, and axes as "name=value name=value".
func (c Config) Cells() (cells []string) {
	for _, v := range c.Numbers() {
		cell := strconv.Itoa(v)
		if v == 0 && c.NumWarps == 0 {
			cell = ""
		}
		cells = append(cells, cell)
	}
	var axes []string
	for name, value := range c.Axes.All() {
		axes = append(axes, name+"="+value)
	}
	return append(cells, strings.Join(axes, " "))
}

// UnmarshalJSON reads what MarshalJSON writes and keeps the family. A missing number or null becomes 0; an unknown key
// is an error.
func (c *Config) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	var numbers [NumFields]int
	var axes []AxisValue
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return &json.UnmarshalTypeError{Value: kindOf(t)}
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if name == axesKey {
			if axes, err = unmarshalAxes(dec); err != nil {
				return err
			}
			continue
		}
		i := 0
		for i < NumFields && fields[i].Name != name {
			i++
		}
		if i == NumFields {
			return fmt.Errorf("unknown field %q", name)
		}
		if err := dec.Decode(&numbers[i]); err != nil {
			return within(name, err)
		}
	}
	own, err := NewAxes(axes...)
	if err != nil {
		return err
	}
	c.SetNumbers(numbers)
	c.Axes = own
	return nil
}

// unmarshalAxes reads the object of axis values that comes next.
func unmarshalAxes(dec *json.Decoder) ([]AxisValue, error) {
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, &json.UnmarshalTypeError{Value: kindOf(t), Field: axesKey}
	}
	var axes []AxisValue
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		var value string
		if err := dec.Decode(&value); err != nil {
			return nil, within(axesKey+"."+name, err)
		}
		axes = append(axes, AxisValue{name, value})
	}
	_, err := dec.Token() // the closing brace
	return axes, err
}

// within puts the name of a field before that in an error about its value.
func within(field string, err error) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		kind.Field = field
	}
	return err
}

// kindOf names the kind of a token as package json does.
func kindOf(t json.Token) string {
	switch t.(type) {
	case bool:
		return "bool"
	case float64, json.Number:
		return "number"
	case string:
		return "string"
	case json.Delim:
		return "array"
	default:
		return "null"
	}
}
