package wire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/origami-gemm/origami/core/strictjson"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// What is asked once travels as JSON, written from the structs of core and read into them. A key is the json tag of a
// field, else its name in snake case and the unit of its type ("clock_hz"). A field at its zero value is left out.
// The tables of vocabulary.go say which words enumerations have, and which values are refused.

func toJSON[T any](v *T) *pb.Json { return &pb.Json{Json: marshal(v)} }

func fromJSON[T any](checks ...func(*T) error) func(*pb.Json) (T, error) {
	return func(q *pb.Json) (T, error) { return unmarshal(q.GetJson(), MaxShortAnswerMemory, checks...) }
}

// nothing is a question, or an answer, that says nothing. It may be missing.
type nothing struct{}

// answered serves a call: it reads the question, and writes the answer or the error.
func answered[Q, A any](req *pb.Json, do func(*Q) (A, error)) (*pb.Json, error) {
	var q Q
	var err error
	if _, none := any(q).(nothing); !none {
		q, err = unmarshal[Q](req.GetJson(), maxRequestMemory)
	}
	if err != nil {
		return nil, malformed(err)
	}
	a, err := do(&q)
	if err != nil {
		return nil, toStatus(err)
	}
	return toJSON(&a), nil
}

// marshal writes the value behind a pointer. It never fails: what cannot be, as NaN, is refused where it is read.
func marshal[T any](v *T) []byte {
	p := planOf(reflect.TypeFor[T]())
	b := p.append(make([]byte, 0, p.length.Load()), reflect.ValueOf(v).Elem())
	p.length.Store(int64(len(b)))
	return b
}

// unmarshal reads a value and checks it. Unknown keys, keys that come twice, null, text behind the value, and what the
// tables refuse are errors with their place, and so is a value that takes more memory than most.
func unmarshal[T any](text []byte, most int, checks ...func(*T) error) (v T, err error) {
	r := &reader{strictjson.Scanner{Text: string(text)}, most - len(text)}
	switch err = r.value(planOf(reflect.TypeFor[T]()), reflect.ValueOf(&v).Elem(), amount); {
	case err != nil && !IsOversize(err):
		err = errors.New(strings.TrimLeft(err.Error(), ".: "))
	case err == nil && (r.Next() != 0 || !utf8.Valid(text)):
		err = errors.New("there is more behind the JSON, or it is not UTF-8")
	}
	for _, check := range checks {
		if err == nil {
			err = check(&v)
		}
	}
	return v, err
}

// plan is how a type is written.
type plan struct {
	kind     reflect.Kind
	size     int      // of a value in memory
	words    []string // of an enumeration: by number, or all that a text may be beside empty
	standIn  *standIn // is written in the place of the type
	elem     *plan    // of a pointer, a list, a map, and of the stand-in
	fields   []field
	required uint64       // the fields that must be there, a bit each
	length   atomic.Int64 // of the last text
}

type field struct {
	key   string
	index []int
	rule  rule
	*plan
}

var plans sync.Map // from reflect.Type to *plan

// planOf returns the plan of a type. No type of core contains itself.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{kind: t.Kind(), size: int(t.Size()), words: words[t]}
	if s, ok := standIns[t]; ok {
		p.standIn, p.elem = &s, planOf(s.of)
	} else if p.kind == reflect.Pointer || p.kind == reflect.Slice || p.kind == reflect.Map {
		p.elem = planOf(t.Elem())
	} else if p.kind == reflect.Struct {
		own := map[string]rule{}
		for word := range strings.FieldsSeq(rules[t]) {
			name, is, _ := strings.Cut(word, ":")
			own[name] = rule(is)
		}
		for _, f := range reflect.VisibleFields(t) {
			x := field{key: keyOf(f), index: f.Index, rule: cmp.Or(own[f.Name], amount)}
			if f.Name == "Name" {
				x.rule = cmp.Or(own[f.Name], required)
			}
			if f.Anonymous || !f.IsExported() || x.rule == skip {
				continue
			}
			x.plan = planOf(f.Type)
			needed := x.rule == required || x.rule == positive || x.rule == id && x.kind == reflect.String
			if needed || x.enumerates() && x.rule != optional {
				p.required |= 1 << len(p.fields)
			}
			p.fields = append(p.fields, x)
		}
	}
	plans.Store(t, p)
	return p
}

// enumerates reports whether the type is a number with words.
func (p *plan) enumerates() bool { return p.words != nil && p.kind != reflect.String }

func keyOf(f reflect.StructField) string {
	if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" && tag != "-" {
		return tag
	}
	key, unit := snake(f.Name), strings.Replace(snake(f.Type.Name()), "hertz", "hz", 1)
	if strings.HasSuffix(f.Type.PkgPath(), "core/unit") && !strings.HasSuffix(key, unit) {
		key += "_" + unit
	}
	return key
}

// snake is a Go name in snake case.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && unicode.IsUpper(c) && !unicode.IsUpper(rune(name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// append writes a value behind a text.
func (p *plan) append(b []byte, v reflect.Value) []byte {
	switch {
	case p.standIn != nil:
		return p.standIn.write(p.elem, b, v)
	case p.enumerates() && v.Uint() < uint64(len(p.words)):
		return appendQuoted(b, p.words[v.Uint()])
	}
	switch p.kind {
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Uint8, reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10)
	case reflect.Float64, reflect.Float32:
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 8*p.size)
	case reflect.String:
		return appendQuoted(b, v.String())
	case reflect.Pointer:
		return p.elem.append(b, v.Elem())
	case reflect.Slice:
		b = append(b, '[')
		for i := range v.Len() {
			if cap(b)-len(b) < 256 {
				b = slices.Grow(b, cap(b)) // append alone would copy a long text often
			}
			b = append(p.elem.append(b, v.Index(i)), ',')
		}
		return closed(b, ']')
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		b = append(b, '{')
		x := reflect.New(v.Type().Elem()).Elem() // stand-ins need an address
		for _, key := range keys {
			x.Set(v.MapIndex(key))
			b = append(p.elem.append(append(appendQuoted(b, key.String()), ':'), x), ',')
		}
		return closed(b, '}')
	default:
		b = append(b, '{')
		for i := range p.fields {
			f := &p.fields[i]
			x := v.FieldByIndex(f.index)
			if p.required>>i&1 == 0 && (x.IsZero() || (f.kind == reflect.Slice || f.kind == reflect.Map) && x.Len() == 0) {
				continue
			}
			b = append(f.append(append(appendQuoted(b, f.key), ':'), x), ',')
		}
		return closed(b, '}')
	}
}

// closed ends a list whose elements each end with a comma.
func closed(b []byte, end byte) []byte {
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, end)
}

// appendQuoted writes a text. What is not UTF-8 in it is replaced.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			text, _ := json.Marshal(s)
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// reader reads a text. The path to what is wrong is put together on the way back: ".terms[3].kind: it is missing".
type reader struct {
	strictjson.Scanner
	left int // of the memory that the value may take
}

func (r *reader) charge(bytes int) error {
	if r.left -= bytes; r.left < 0 {
		return &OversizeError{fmt.Sprintf("JSON of %d bytes that takes too much memory", len(r.Text))}
	}
	return nil
}

// quoted reads a text. One with escapes takes memory of its own.
func (r *reader) quoted() (string, error) {
	s, escaped, err := r.Quoted()
	if err == nil && escaped {
		err = r.charge(textSize + len(s))
	}
	return s, err
}

// value reads a value into v. A rule holds for what it consists of.
func (r *reader) value(p *plan, v reflect.Value, is rule) error {
	switch {
	case p.standIn != nil:
		return p.standIn.read(r, p.elem, v)
	case p.words != nil:
		word, err := r.quoted()
		n := slices.Index(p.words, word)
		switch {
		case err != nil:
			return err
		case p.kind == reflect.String && (n >= 0 || word == ""):
			v.SetString(word)
		case n < 0 || word == "":
			return fmt.Errorf(": unknown: %q", word)
		default:
			v.SetUint(uint64(n))
		}
		return nil
	}
	switch p.kind {
	case reflect.String:
		s, err := r.quoted()
		if v.SetString(s); err == nil {
			err = is.admitsText(s)
		}
		return err
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return r.value(p.elem, v.Elem(), is)
	case reflect.Slice:
		return r.Each('[', ']', func(i int) error {
			if err := r.charge(growth * p.elem.size); err != nil {
				return err
			}
			if i == v.Cap() {
				v.Grow(max(1, i))
			}
			v.SetLen(i + 1)
			if err := r.value(p.elem, v.Index(i), is); err != nil {
				return fmt.Errorf("[%d]%w", i, err)
			}
			return nil
		})
	case reflect.Map:
		return r.Each('{', '}', func(int) error { return r.entry(p, v, is) })
	case reflect.Struct:
		return r.object(p, v)
	default:
		return r.bare(p, v, is)
	}
}

// entry reads an entry of a map.
func (r *reader) entry(p *plan, v reflect.Value, is rule) error {
	key, err := r.key()
	if err == nil {
		err = r.charge(entrySize + p.elem.size)
	}
	if err != nil {
		return err
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	x, name := reflect.New(v.Type().Elem()).Elem(), reflect.ValueOf(key)
	if key == "" || v.MapIndex(name).IsValid() {
		return fmt.Errorf(": the key %.40q is empty, or there twice", key)
	}
	if err := r.value(p.elem, x, is); err != nil {
		return fmt.Errorf("[%.40q]%w", key, err)
	}
	v.SetMapIndex(name, x)
	return nil
}

// key reads a key and its colon.
func (r *reader) key() (string, error) {
	key, err := r.quoted()
	if err == nil && r.Next() != ':' {
		err = r.Odd("colon")
	}
	r.At++
	return key, err
}

func (r *reader) object(p *plan, v reflect.Value) error {
	var seen uint64
	err := r.Each('{', '}', func(int) error {
		key, err := r.key()
		if err != nil {
			return err
		}
		i := 0
		for i < len(p.fields) && p.fields[i].key != key {
			i++
		}
		switch {
		case i == len(p.fields):
			return fmt.Errorf(": no such key: %.40q", key)
		case seen>>i&1 != 0:
			err = errors.New(": it is there twice")
		default:
			err = r.value(p.fields[i].plan, v.FieldByIndex(p.fields[i].index), p.fields[i].rule)
		}
		if err != nil {
			return fmt.Errorf(".%s%w", key, err)
		}
		seen |= 1 << i
		return nil
	})
	if err != nil {
		return err
	}
	if missing := p.required &^ seen; missing != 0 {
		return fmt.Errorf(".%s: it is missing", p.fields[bits.TrailingZeros64(missing)].key)
	}
	if err := sound(v.Addr().Interface()); err != nil {
		return fmt.Errorf(": %w", err)
	}
	return nil
}

// bare reads a number or a word.
func (r *reader) bare(p *plan, v reflect.Value, is rule) (err error) {
	text := r.Bare()
	switch p.kind {
	case reflect.Bool:
		if v.SetBool(text == "true"); text == "true" || text == "false" {
			return nil
		}
		err = strconv.ErrSyntax
	case reflect.Int, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
		if n < 0 {
			return fmt.Errorf(": it is %d", n)
		}
	case reflect.Uint64:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 64)
		v.SetUint(n)
	default:
		var x float64
		x, err = strconv.ParseFloat(text, 64)
		if err = cmp.Or(err, is.admits(x)); err == nil {
			v.SetFloat(x)
		}
	}
	if err != nil || !strictjson.IsNumber(text) {
		return fmt.Errorf(": it is %.40q", text)
	}
	return nil
}

// standIn is how a type is written and read as another one.
type standIn struct {
	of    reflect.Type
	write func(p *plan, b []byte, v reflect.Value) []byte
	read  func(r *reader, p *plan, v reflect.Value) error
}

func stands[T, S any](to func(T) S, from func(*S) (T, error)) standIn {
	return standIn{reflect.TypeFor[S](), func(p *plan, b []byte, v reflect.Value) []byte {
		x := to(*v.Addr().Interface().(*T))
		return p.append(b, reflect.ValueOf(&x).Elem())
	}, func(r *reader, p *plan, v reflect.Value) error {
		var x S
		err := r.value(p, reflect.ValueOf(&x).Elem(), amount)
		if err == nil {
			if *v.Addr().Interface().(*T), err = from(&x); err != nil {
				err = fmt.Errorf(": %w", err)
			}
		}
		return err
	}}
}
