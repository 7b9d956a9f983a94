// Package strictjson reads JSON whose keys must be exactly those that are documented. Package encoding/json takes the
// last of two equal keys and matches keys in any case, so a file could say two things and be read as one of them.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// ErrTrailing is wrapped by the error about text after the value.
var ErrTrailing = errors.New("there is more behind it")

// KeyError is a key that must not be where it is.
type KeyError struct {
	// Path is the key with the keys around it: "problem.m".
	Path string
	// Want is the key as it must be written. It is empty if the key is there twice.
	Want string
}

// Error implements error.
func (e *KeyError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("the key %q is there twice", e.Path)
	}
	return fmt.Sprintf("the key %q is written %q", e.Path, e.Want)
}

// Unmarshal reads one JSON value into v as json.Unmarshal does. Unknown keys of a struct, keys in another case, keys
// that an object has twice, and text after the value are errors. Keys of what has its own UnmarshalJSON are its
// business, except that none may be there twice. If there is an error, v holds anything.
func Unmarshal(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return ErrTrailing
	}
	c := checker{Scanner{Text: string(text)}}
	return c.value(shapeOf(reflect.TypeOf(v)))
}

// Foreign reads a JSON text of another program into v as json.Unmarshal does: its other keys do not matter. An object
// with a key twice is an error.
func Foreign(text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return err
	}
	c := checker{Scanner{Text: string(text)}}
	return c.value(nil)
}

// shape has the keys of a type. It is nil for a value whose keys are not known: an interface,
// or a type that reads itself.
type shape struct {
	// keys are the indices of a struct's keys in fields; nil for other types.
	keys   map[string]int
	fields []*shape
	// elem is the shape of the elements of a map, a slice or an array.
	elem *shape
}

var (
	shapes      sync.Map // from reflect.Type to *shape
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

func shapeOf(t reflect.Type) *shape {
	if have, ok := shapes.Load(t); ok {
		return have.(*shape)
	}
	s := newShape(t, map[reflect.Type]*shape{})
	shapes.Store(t, s)
	return s
}

// newShape returns the shape of a type. begun has those of the types around it, which may recur in it.
func newShape(t reflect.Type, begun map[reflect.Type]*shape) *shape {
	for {
		if t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
			return nil
		}
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	if s, ok := begun[t]; ok {
		return s
	}
	s := &shape{}
	begun[t] = s
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		s.elem = newShape(t.Elem(), begun)
	case reflect.Struct:
		s.keys = map[string]int{}
		for _, f := range reflect.VisibleFields(t) {
			tag := f.Tag.Get("json")
			name, _, _ := strings.Cut(tag, ",")
			if tag == "-" || !f.IsExported() || f.Anonymous && name == "" {
				continue // not read, or its fields are those of the struct around it
			}
			if name == "" {
				name = f.Name
			}
			s.keys[name] = len(s.fields)
			s.fields = append(s.fields, newShape(f.Type, begun))
		}
	default:
		return nil
	}
	return s
}

// spelled returns the key that encoding/json took another one for.
func (s *shape) spelled(key string) string {
	for name := range s.keys {
		if strings.EqualFold(name, key) {
			return name
		}
	}
	return key
}

// checker walks over a text that is known to be valid JSON, and over the shape of what it was read into.
type checker struct{ Scanner }

func (c *checker) value(of *shape) error {
	switch c.Next() {
	case '{':
		return c.object(of)
	case '[':
		var elem *shape
		if of != nil {
			elem = of.elem
		}
		return c.Each('[', ']', func(int) error { return c.value(elem) })
	case '"':
		_, _, err := c.Quoted()
		return err
	}
	c.Bare()
	return nil
}

func (c *checker) object(of *shape) error {
	var seen keys // on the stack: a closure for Each would need memory for each object
	c.At++
	for c.Next() != '}' {
		if c.Text[c.At] == ',' {
			c.At++
			continue
		}
		key, _, err := c.Quoted()
		if err != nil {
			return err
		}
		if !utf8.ValidString(key) {
			key = string([]rune(key)) // as encoding/json reads it
		}
		if !seen.add(key) {
			return &KeyError{Path: key}
		}
		var inner *shape
		switch {
		case of == nil:
		case of.keys == nil:
			inner = of.elem
		default:
			i, known := of.keys[key]
			if !known {
				return &KeyError{Path: key, Want: of.spelled(key)}
			}
			inner = of.fields[i]
		}
		c.Next()
		c.At++ // the colon
		if err := c.value(inner); err != nil {
			return within(key, err)
		}
	}
	c.At++
	return nil
}

// within adds the key around it to an error.
func within(key string, err error) error {
	var e *KeyError
	if !errors.As(err, &e) {
		return err
	}
	outer := KeyError{Path: key + "." + e.Path}
	if e.Want != "" {
		outer.Want = key + "." + e.Want
	}
	return &outer
}

// keys are the keys of an object that were seen. A few are faster compared one by one.
type keys struct {
	few  [32]string
	n    int
	many map[string]struct{}
}

// add adds a key and reports whether it is new.
func (k *keys) add(key string) bool {
	if slices.Contains(k.few[:k.n], key) {
		return false
	}
	if k.n < len(k.few) {
		k.few[k.n] = key
		k.n++
		return true
	}
	if _, twice := k.many[key]; twice {
		return false
	}
	if k.many == nil {
		k.many = map[string]struct{}{}
	}
	k.many[key] = struct{}{}
	return true
}
