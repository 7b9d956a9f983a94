package ask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
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

// notFinite names the number for which v cannot be encoded, if that is why: JSON holds neither NaN nor infinities.
func notFinite(v any, err error) error {
	var unsupported *json.UnsupportedValueError
	if !errors.As(err, &unsupported) {
		return err
	}
	where, found := findNotFinite(reflect.ValueOf(v))
	if !found {
		where = "a number"
	}
	return &diag.Error{Kind: diag.Plugin, Where: strings.TrimPrefix(where, "."),
		What: "the model's numbers lead to " + unsupported.Str + ", which is no result",
		Fix:  "see whether an override is out of range, otherwise report it to the plugin's author", Err: err}
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// findNotFinite returns the path of keys to the first number in v that JSON cannot hold.
func findNotFinite(v reflect.Value) (path string, found bool) {
	if !v.IsValid() {
		return "", false
	}
	if fields, ok := v.Interface().(Fields); ok {
		for _, f := range fields {
			if path, found := findNotFinite(reflect.ValueOf(f.Value)); found {
				return "." + f.Name + path, true
			}
		}
		return "", false
	}
	if v.Type().Implements(marshaler) {
		return "", false // it writes what it is
	}
	switch v.Kind() {
	case reflect.Float64:
		return "", !digits.Finite(v.Float())
	case reflect.Pointer, reflect.Interface:
		return findNotFinite(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if path, found := findNotFinite(v.Index(i)); found {
				return fmt.Sprintf("[%d]%s", i, path), true
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if path, found := findNotFinite(v.MapIndex(key)); found {
				return "." + key.String() + path, true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			path, found := findNotFinite(v.Field(i))
			if !found {
				continue
			}
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				path = "." + name + path
			}
			return path, true
		}
	default:
	}
	return "", false
}
