package ask

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/printable"
)

// Encode returns v as one line of JSON. The error of a number that JSON cannot hold names its key.
func Encode(v any) ([]byte, error) {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, notFinite(v, err)
	}
	return printable.JSON(line.Bytes()), nil
}

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
func (f Fields) MarshalJSON() ([]byte, error) { return marshalled(f, true) }

func marshalled(fields []Field, escaped bool) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escaped)
	separator := byte('{')
	for _, field := range fields {
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
	if len(fields) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Object is a JSON object that keeps the order of its keys, and the letters of its texts.
type Object []Field

// With puts a value at the end of an object, at a path of keys.
func (o Object) With(path []string, v any) Object {
	if len(path) == 1 {
		return append(o, Field{path[0], v})
	}
	if last := len(o) - 1; last >= 0 && o[last].Name == path[0] {
		o[last].Value = o[last].Value.(Object).With(path[1:], v)
		return o
	}
	return append(o, Field{path[0], Object{}.With(path[1:], v)})
}

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) { return marshalled(o, false) }

// Texts returns the values of labels.
func (f Fields) Texts() []string {
	texts := make([]string, len(f))
	for i := range f {
		texts[i] = fmt.Sprint(f[i].Value)
	}
	return texts
}

// Number is a float64 that JSON can always hold: NaN and the infinities become null.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !digits.Finite(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}
