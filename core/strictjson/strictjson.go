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
	s := scanner{text: text}
	return s.value(reflect.TypeOf(v), "")
}

// scanner walks over a text that is known to be valid JSON, and over the type that it was read into.
type scanner struct {
	text []byte
	at   int
}

// next skips white space and returns the byte after it.
func (s *scanner) next() byte {
	for {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return c
		}
	}
}

func (s *scanner) value(t reflect.Type, path string) error {
	switch s.next() {
	case '{':
		return s.object(t, path)
	case '[':
		return s.array(t, path)
	case '"':
		s.str()
	default: // a number or a word
		for s.at < len(s.text) && strings.IndexByte(" \t\r\n,]}", s.text[s.at]) < 0 {
			s.at++
		}
	}
	return nil
}

// str returns the string that begins here, still quoted.
func (s *scanner) str() []byte {
	begin := s.at
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
	return s.text[begin:s.at]
}

func (s *scanner) array(t reflect.Type, path string) error {
	if t = plain(t); t != nil {
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			t = t.Elem()
		} else {
			t = nil
		}
	}
	s.at++
	for s.next() != ']' {
		if s.text[s.at] == ',' {
			s.at++
			continue
		}
		if err := s.value(t, path); err != nil {
			return err
		}
	}
	s.at++
	return nil
}

func (s *scanner) object(t reflect.Type, path string) error {
	var fields map[string]reflect.Type
	var elem reflect.Type
	if t = plain(t); t != nil {
		switch t.Kind() {
		case reflect.Struct:
			fields = fieldsOf(t)
		case reflect.Map:
			elem = t.Elem()
		default: // an interface holds whatever there is
		}
	}
	seen := make(map[string]struct{}, len(fields))
	s.at++
	for s.next() != '}' {
		if s.text[s.at] == ',' {
			s.at++
			continue
		}
		key := unquote(s.str())
		here := path + key
		if _, twice := seen[key]; twice {
			return &KeyError{Path: here}
		}
		seen[key] = struct{}{}
		inner := elem
		if fields != nil {
			var known bool
			if inner, known = fields[key]; !known {
				return &KeyError{Path: here, Want: path + spelled(fields, key)}
			}
		}
		s.next()
		s.at++ // the colon
		if err := s.value(inner, here+"."); err != nil {
			return err
		}
	}
	s.at++
	return nil
}

func unquote(quoted []byte) string {
	var key string
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	_ = json.Unmarshal(quoted, &key) // it is valid
	return key
}

// spelled returns the field that encoding/json took the key for.
func spelled(fields map[string]reflect.Type, key string) string {
	for name := range fields {
		if strings.EqualFold(name, key) {
			return name
		}
	}
	return key
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// plain returns the type behind pointers, nil for a type that reads itself.
func plain(t reflect.Type) reflect.Type {
	for t != nil {
		if t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
			return nil
		}
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	return t
}

var known sync.Map // from reflect.Type to map[string]reflect.Type

// fieldsOf returns the types of a struct's fields by their keys, those of embedded structs included.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if have, ok := known.Load(t); ok {
		return have.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Tag.Get("json") == "-", f.PkgPath != "" && !f.Anonymous, f.Anonymous && name == "":
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	known.Store(t, fields)
	return fields
}
