// Package question has what may be asked. The tags of its structs are the flags of the command line, the parameters of
// the server and the keys of the JSON that the C library takes, so that each is described once.
package question

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/core/strictjson"
)

// Field is a field of a question: `json:"trans_a" help:"A is M-contiguous"`, and if there are any, `short:"m"`, one
// letter; `arg:"SIZE"`, the name of its value in help; `default:"1"`; `rare:"yes"` for help that few need; `file:"yes"`
// for a value that names a file, a folder or a program, which no request to a server may name.
type Field struct {
	// Key is its name in JSON and in requests.
	Key                       string
	Short, Arg, Help, Default string
	Rare, File                bool

	index []int // of the field in the question, as reflect has it
	value reflect.Value
}

// Flag is the field's name on the command line.
func (f *Field) Flag() string { return strings.ReplaceAll(f.Key, "_", "-") }

// setter is a field that reads its text itself. The error completes a sentence that begins with the text.
type setter interface {
	Set(text string) error
	String() string
}

// names are lists that help has in braces.
var names = strings.NewReplacer("{types}", gemm.TypeNames(gemm.DTypes()), "{outputs}",
	gemm.TypeNames(gemm.OutputTypes()), "{activations}", gemm.ActivationNames())

// Fields returns the fields of a question, and the fields of its embedded structs, with their defaults set. q is a
// pointer to a struct.
func Fields(q any) []Field {
	v := reflect.ValueOf(q).Elem()
	fields := slices.Clone(fieldsOf(v.Type()))
	for i := range fields {
		f := &fields[i]
		f.value = v.FieldByIndex(f.index)
		if f.Default != "" && f.value.IsZero() {
			if err := f.Set(f.Default); err != nil {
				panic(fmt.Sprintf("the default of %s %v", f.Key, err)) // every question is made in tests
			}
		}
	}
	return fields
}

// tags are the fields by type, without values: to read their tags takes longer than a known pick.
var tags sync.Map

func fieldsOf(t reflect.Type) []Field {
	if known, ok := tags.Load(t); ok {
		return known.([]Field)
	}
	var fields []Field
	for _, f := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || key == "" || key == "-" {
			continue
		}
		fields = append(fields, Field{Key: key, Short: f.Tag.Get("short"), Arg: f.Tag.Get("arg"),
			Help: names.Replace(f.Tag.Get("help")), Default: f.Tag.Get("default"), Rare: f.Tag.Get("rare") != "",
			File: f.Tag.Get("file") != "", index: f.Index})
	}
	tags.Store(t, fields)
	return fields
}

// Set reads a text. A list takes one value more. The error completes a sentence that begins with the text.
func (f *Field) Set(text string) error {
	if s, ok := f.value.Addr().Interface().(setter); ok {
		return s.Set(text)
	}
	switch f.value.Kind() {
	case reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("is neither true nor false")
		}
		f.value.SetBool(v)
	case reflect.Int:
		v, err := strconv.Atoi(text)
		if errors.Is(err, strconv.ErrRange) {
			return errors.New("is too large")
		} else if err != nil {
			return errors.New("is not a whole number")
		}
		f.value.SetInt(int64(v))
	case reflect.Slice:
		f.value.Set(reflect.Append(f.value, reflect.ValueOf(text)))
	default:
		f.value.SetString(text)
	}
	return nil
}

// String implements fmt.Stringer: what Set reads, empty for what is not given.
func (f *Field) String() string {
	if s, ok := f.value.Addr().Interface().(setter); ok {
		return s.String()
	}
	switch f.value.Kind() {
	case reflect.Slice:
		return strings.Join(f.value.Interface().([]string), ",")
	default:
		return fmt.Sprint(f.value.Interface())
	}
}

// Type is the type of the field's value in JSON.
func (f *Field) Type() string {
	switch f.value.Interface().(type) {
	case bool:
		return "boolean"
	case int, Size:
		return "integer"
	default:
		return "string"
	}
}

// given returns the first of some fields that has another value than its default, nil if none has.
func given(q any, keys ...string) *Field {
	fields := Fields(q)
	for i := range fields {
		f := &fields[i]
		if !slices.Contains(keys, f.Key) || f.value.IsZero() {
			continue
		}
		if f.Default == "" || f.String() != f.Default {
			return f
		}
	}
	return nil
}

// Decode reads a question from a JSON object with the keys of its fields. A value may be a text as on the command line,
// a number, true or false, or a list of them. An object stands for a list of words key=value. The field of a file takes
// the text of the file. Keys that the question does not have, and keys that are there twice, are errors.
func Decode(text []byte, q any) error {
	values, err := Object(text)
	if err != nil {
		return err
	}
	return Fill(values, q)
}

// Object reads a JSON object.
func Object(text []byte) (values map[string]json.RawMessage, err error) {
	if err := strictjson.Unmarshal(text, &values); err != nil {
		if errors.Is(err, strictjson.ErrTrailing) {
			err = errors.New("data follows the first JSON object")
		}
		return nil, diag.Inputf("not understood: %v", err).At("question").
			Do(`write a JSON object, as in {"arch":"h200","m":64}`)
	}
	return values, nil
}

// Fill sets the fields of a question to the values of a JSON object, as Decode does.
func Fill(values map[string]json.RawMessage, q any) error {
	fields := Fields(q)
	keys := make([]string, len(fields))
	for i := range fields {
		keys[i] = fields[i].Key
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		i := slices.Index(keys, key)
		if i < 0 {
			return Unknown("key", key, keys)
		}
		if err := fields[i].decode(values[key]); err != nil {
			return diag.Inputf("%s %v", printable.Cut(string(values[key]), 100), err).At("%s", key).Do("see docs/reference")
		}
	}
	return nil
}

// Unknown is the error about a name that a question does not have.
func Unknown(what, name string, known []string) error {
	err := diag.Inputf("there is no %s %q", what, name)
	if near := diag.Nearest(name, known, 1); len(near) > 0 {
		return err.Do("did you mean %s?", near[0])
	}
	if len(known) == 0 {
		return err.Do("leave it out: there are none")
	}
	return err.Do("the %ss: %s", what, strings.Join(known, ", "))
}

func (f *Field) decode(value json.RawMessage) error {
	value = bytes.TrimSpace(value)
	if string(value) == "null" {
		return nil
	}
	if at, ok := f.value.Addr().Interface().(json.Unmarshaler); ok {
		return at.UnmarshalJSON(value)
	}
	words, err := wordsOf(value)
	if err != nil {
		return err
	}
	if value[0] != '[' && value[0] != '{' || f.value.Kind() == reflect.Slice {
		for _, word := range words {
			if err := f.Set(word); err != nil {
				return err
			}
		}
		return nil
	}
	return f.Set(strings.Join(words, ","))
}

// wordsOf writes a JSON value as words of the command line.
func wordsOf(value json.RawMessage) ([]string, error) {
	switch value[0] {
	case '"':
		var text string
		err := json.Unmarshal(value, &text)
		return []string{text}, err
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, err
		}
		var words []string
		for _, one := range list {
			more, err := wordsOf(bytes.TrimSpace(one))
			if err != nil {
				return nil, err
			}
			words = append(words, more...)
		}
		return words, nil
	case '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(value, &object); err != nil {
			return nil, err
		}
		var words []string
		for _, key := range slices.Sorted(maps.Keys(object)) {
			one := bytes.TrimSpace(object[key])
			if one[0] == '{' { // {"value": 1500, "unit": "MHz"}
				var q struct {
					Value json.Number `json:"value"`
					Unit  string      `json:"unit"`
				}
				if err := strictjson.Unmarshal(one, &q); err != nil {
					return nil, err
				}
				words = append(words, key+"="+q.Value.String()+q.Unit)
				continue
			}
			values, err := wordsOf(one)
			if err != nil {
				return nil, err
			}
			words = append(words, key+"="+strings.Join(values, ","))
		}
		return words, nil
	default:
		return []string{string(value)}, nil
	}
}

// ByKey reads words of the form key=value. A key may be given once. form says how a word is written, for an error.
func ByKey(place, form string, words []string) (map[string]string, error) {
	var values map[string]string
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, diag.Inputf("%q is not key=value", word).At("%s", place).Do("write it as in %s", form)
		}
		if _, again := values[key]; again {
			return nil, diag.Inputf("%s is given twice", key).At("%s", place).Do("give each key once")
		}
		if values == nil {
			values = map[string]string{}
		}
		values[key] = value
	}
	return values, nil
}
