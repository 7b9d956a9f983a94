package ask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/printable"
)

// Encode returns v as one line of JSON. A number that JSON cannot hold is an error of kind diag.Plugin.
func Encode(v any) ([]byte, error) {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, notFinite(err)
	}
	return printable.JSON(line.Bytes()), nil
}

// Later makes a value when it is encoded, so that a long answer is in memory once.
type Later func() any

// MarshalJSON implements json.Marshaler.
func (l Later) MarshalJSON() ([]byte, error) { return Encode(l()) }

// Labels names the labels of a problem.
func Labels(names, values []string) (fields Fields) {
	for i, name := range names {
		fields = append(fields, Field{name, values[i]})
	}
	return fields
}

// Fields is a JSON object that keeps the order of its keys.
type Fields []Field

// Field is one key of Fields.
type Field struct {
	Name  string
	Value any
}

// MarshalJSON implements json.Marshaler. It writes <, > and & as escapes.
func (f Fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	separator := byte('{')
	for _, field := range f {
		b.WriteByte(separator)
		separator = ','
		if err := e.Encode(field.Name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(field.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
	}
	if len(f) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Named returns the keys and the values.
func (f Fields) Named() (names []string, values []any) {
	for i := range f {
		names, values = append(names, f[i].Name), append(values, f[i].Value)
	}
	return names, values
}

// Texts returns the values of labels.
func (f Fields) Texts() []string {
	texts := make([]string, len(f))
	for i := range f {
		texts[i] = fmt.Sprint(f[i].Value)
	}
	return texts
}

// Number is a float64 that JSON can always hold.
type Number = digits.Number

// notFinite says that a number of v is none that JSON holds, if that is why v cannot be encoded.
func notFinite(err error) error {
	var unsupported *json.UnsupportedValueError
	if !errors.As(err, &unsupported) {
		return err
	}
	return &diag.Error{Kind: diag.Plugin, Where: "a number",
		What: "the model's numbers lead to " + unsupported.Str + ", which is no result",
		Fix:  "see whether an override is out of range, otherwise report it to the plugin's author", Err: err}
}
