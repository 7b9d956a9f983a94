package table

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/printable"
)

// JSONLine writes v as one line of JSON.
func JSONLine(s *iostreams.Streams, v any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return notFinite(v, err)
	}
	_, err := s.Data().Write(printable.JSON(line.Bytes()))
	return err
}

// JSONLines writes each value as a line of JSON.
func JSONLines[T any](s *iostreams.Streams, values []T) error {
	for i := range values {
		if err := JSONLine(s, &values[i]); err != nil {
			return err
		}
	}
	return nil
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

// Number is a float64 that JSON can always hold: NaN and the infinities become null.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !Finite(float64(n)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}
