package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
)

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
	fields, ok := v.Interface().(Fields)
	if object, is := v.Interface().(Object); is {
		fields, ok = Fields(object), true
	}
	if ok {
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
