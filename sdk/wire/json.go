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
	"unicode"
	"unicode/utf8"

	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// What is asked once travels as JSON, written from the structs of core and read into them. A key is the json tag of a
// field, else its name in snake case, and the unit of its type ("clock_hertz"). A field at its zero value is left out.
// The tables of vocabulary.go say which words enumerations have, and which values are refused.

// marshal writes the value behind a pointer. It never fails: what cannot be, as NaN, is refused where it is read.
func marshal[T any](v *T) []byte {
	return planOf(reflect.TypeFor[T]()).append(nil, reflect.ValueOf(v).Elem())
}

// unmarshal reads one value into what v points to, which is zero. Unknown keys, keys that come twice, null, text behind
// the value, and what the tables refuse are errors, and so is a value that takes more memory than most.
func unmarshal[T any](text []byte, v *T, most int) error {
	if !utf8.Valid(text) {
		return errors.New("its JSON is not UTF-8")
	}
	r := &reader{text: string(text), left: most - len(text)}
	if err := r.value(planOf(reflect.TypeFor[T]()), reflect.ValueOf(v).Elem(), amount); err != nil {
		return err
	}
	if r.next() != 0 {
		return &flaw{what: "there is more behind the JSON"}
	}
	return nil
}

// read reads an answer, and checks it.
func read[T any](text []byte, checks ...func(*T) error) (T, error) {
	return readWithin(MaxShortAnswerMemory, text, checks)
}

// asked reads a request.
func asked[T any](text []byte, checks ...func(*T) error) (T, error) {
	return readWithin(maxRequestMemory, text, checks)
}

func readWithin[T any](most int, text []byte, checks []func(*T) error) (v T, err error) {
	err = unmarshal(text, &v, most)
	for _, check := range checks {
		if err == nil {
			err = check(&v)
		}
	}
	return v, err
}

func toJSON[T any](v *T) *pb.Json { return &pb.Json{Json: marshal(v)} }

func fromJSON[T any](checks ...func(*T) error) func(*pb.Json) (T, error) {
	return func(q *pb.Json) (T, error) { return read(q.GetJson(), checks...) }
}

// flaw is what is wrong with a value, and where: ".terms[3].kind".
type flaw struct{ path, what string }

// Error implements error.
func (f *flaw) Error() string {
	if f.path == "" {
		return f.what
	}
	return strings.TrimPrefix(f.path, ".") + ": " + f.what
}

func flawed(format string, args ...any) error { return &flaw{what: fmt.Sprintf(format, args...)} }

// within adds the step that led to a value to an error about it.
func within(step string, err error) error {
	if f := (*flaw)(nil); errors.As(err, &f) {
		f.path = step + f.path
		return f
	}
	if IsOversize(err) {
		return err
	}
	return &flaw{path: step, what: err.Error()}
}

// plan is how a type is written.
type plan struct {
	kind reflect.Kind
	size int // of a value in memory
	// words are the values of an enumeration: by number, or all that a text may be beside empty.
	words    []string
	numbers  map[string]uint64
	standIn  *standIn // is written in the place of the type
	elem     *plan    // of a pointer, a list, a map, and of the stand-in
	fields   []field
	keys     map[string]int
	required uint64 // the fields that must be there, a bit each
}

type field struct {
	key   string
	text  string // the key as it is written
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
	switch s, ok := standIns[t]; {
	case ok:
		p.standIn, p.elem = &s, planOf(s.of)
	case p.words != nil:
		p.numbers = map[string]uint64{}
		for i, word := range p.words {
			p.numbers[word] = uint64(i)
		}
		delete(p.numbers, "")
	case p.kind == reflect.Pointer || p.kind == reflect.Slice || p.kind == reflect.Map:
		p.elem = planOf(t.Elem())
	case p.kind == reflect.Struct:
		p.addFields(t)
	}
	plans.Store(t, p)
	return p
}

func (p *plan) addFields(t reflect.Type) {
	own := map[string]rule{}
	for word := range strings.FieldsSeq(rules[t]) {
		name, is, _ := strings.Cut(word, ":")
		own[name] = rule(is)
	}
	p.keys = map[string]int{}
	for _, f := range reflect.VisibleFields(t) {
		is := cmp.Or(own[f.Name], amount)
		if f.Name == "Name" && own[f.Name] == "" {
			is = required
		}
		if f.Anonymous || !f.IsExported() || is == skip {
			continue
		}
		x := field{key: keyOf(f), index: f.Index, rule: is, plan: planOf(f.Type)}
		x.text = strconv.Quote(x.key) + ":"
		if is == required || is == positive || x.numbers != nil && x.kind != reflect.String && is != optional {
			p.required |= 1 << len(p.fields)
		}
		p.keys[x.key] = len(p.fields)
		p.fields = append(p.fields, x)
	}
}

func keyOf(f reflect.StructField) string {
	if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" && tag != "-" {
		return tag
	}
	key := snake(f.Name)
	if unit := snake(f.Type.Name()); strings.HasSuffix(f.Type.PkgPath(), "core/unit") && !strings.HasSuffix(key, unit) {
		key += "_" + unit
	}
	return key
}

// snake is a Go name in snake case.
func snake(name string) string {
	var b []byte
	for i := range len(name) {
		if i > 0 && unicode.IsUpper(rune(name[i])) && !unicode.IsUpper(rune(name[i-1])) {
			b = append(b, '_')
		}
		b = append(b, name[i])
	}
	return strings.ToLower(string(b))
}

func (p *plan) append(b []byte, v reflect.Value) []byte {
	switch {
	case p.standIn != nil:
		return p.standIn.write(p.elem, b, v)
	case p.numbers != nil && p.kind != reflect.String:
		n := v.Uint()
		if n < uint64(len(p.words)) {
			return appendQuoted(b, p.words[n])
		}
		return appendQuoted(b, strconv.FormatUint(n, 10))
	}
	switch p.kind {
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10)
	case reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10)
	case reflect.Float64:
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 64)
	case reflect.Float32:
		return strconv.AppendFloat(b, v.Float(), 'g', -1, 32)
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
		b = append(b, '{')
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		}) {
			b = append(appendQuoted(b, key.String()), ':')
			b = append(p.elem.append(b, v.MapIndex(key)), ',')
		}
		return closed(b, '}')
	}
	b = append(b, '{')
	for i := range p.fields {
		f := &p.fields[i]
		x := v.FieldByIndex(f.index)
		if p.required>>i&1 == 0 && (x.IsZero() || (f.kind == reflect.Slice || f.kind == reflect.Map) && x.Len() == 0) {
			continue
		}
		b = append(f.plan.append(append(b, f.text...), x), ',')
	}
	return closed(b, '}')
}

// closed ends a list whose elements each end with a comma.
func closed(b []byte, end byte) []byte {
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, end)
}

// appendQuoted appends a text in quotes. What is not UTF-8 in it is replaced.
func appendQuoted(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = valid(s)
	}
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			b = fmt.Appendf(append(b, s[from:i]...), `\u%04x`, c)
			from = i + 1
		}
	}
	return append(append(b, s[from:]...), '"')
}

// reader reads a text.
type reader struct {
	text string
	at   int
	left int // of the memory that the value may take
}

func (r *reader) charge(bytes int) error {
	if r.left -= bytes; r.left < 0 {
		return &OversizeError{fmt.Sprintf("JSON of %d bytes that takes too much memory", len(r.text))}
	}
	return nil
}

// next skips white space and returns the byte behind it, 0 at the end.
func (r *reader) next() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// begins reads the byte that a value begins with.
func (r *reader) begins(with byte, what string) error {
	if r.next() != with {
		return flawed("it is no %s but %q", what, r.text[r.at:min(r.at+10, len(r.text))])
	}
	r.at++
	return nil
}

// more reports whether another element comes, and reads the comma before it, or the end of the list.
func (r *reader) more(i int, end byte) (bool, error) {
	switch c := r.next(); {
	case c == end:
		r.at++
		return false, nil
	case i == 0:
		return true, nil
	case c == ',':
		r.at++
		return true, nil
	}
	return false, flawed("%q behind element %d of a list", r.text[r.at:min(r.at+10, len(r.text))], i)
}

// quoted reads a text.
func (r *reader) quoted() (string, error) {
	if err := r.begins('"', "text"); err != nil {
		return "", err
	}
	begin, escaped := r.at, false
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '\\':
			escaped = true
			r.at++
		case c < ' ':
			return "", flawed("a text with the byte %d", c)
		case c == '"':
			r.at++
			if escaped {
				return r.unescaped(r.text[begin-1 : r.at])
			}
			return r.text[begin : r.at-1], nil
		}
	}
	return "", flawed("a text without an end")
}

func (r *reader) unescaped(quoted string) (s string, err error) {
	if err := json.Unmarshal([]byte(quoted), &s); err != nil {
		return "", flawed("%v", err)
	}
	return s, r.charge(textSize + len(s))
}

// bare reads a number or a word.
func (r *reader) bare() string {
	r.next()
	begin := r.at
	for ; r.at < len(r.text); r.at++ {
		switch r.text[r.at] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return r.text[begin:r.at]
		}
	}
	return r.text[begin:]
}

// value reads a value into v. A rule holds for what it consists of.
func (r *reader) value(p *plan, v reflect.Value, is rule) error {
	switch {
	case p.standIn != nil:
		return p.standIn.read(r, p.elem, v)
	case p.numbers != nil:
		word, err := r.quoted()
		n, ok := p.numbers[word]
		switch {
		case err != nil:
			return err
		case p.kind == reflect.String && (ok || word == ""):
			v.SetString(word)
		case !ok:
			return flawed("unknown: %q", word)
		default:
			v.SetUint(n)
		}
		return nil
	}
	switch p.kind {
	case reflect.String:
		s, err := r.quoted()
		if err == nil && s == "" && is == required {
			err = flawed("it is empty")
		}
		v.SetString(s)
		return err
	case reflect.Bool:
		word := r.bare()
		v.SetBool(word == "true")
		if word != "true" && word != "false" {
			return flawed("%q is not true or false", word)
		}
		return nil
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if err := r.charge(p.elem.size); err != nil {
			return err
		}
		return r.value(p.elem, v.Elem(), is)
	case reflect.Slice:
		return r.slice(p, v, is)
	case reflect.Map:
		return r.table(p, v, is)
	case reflect.Struct:
		return r.object(p, v)
	}
	return r.number(p, v, is)
}

func (r *reader) number(p *plan, v reflect.Value, is rule) (err error) {
	text := r.bare()
	if !isNumber(text) {
		return flawed("%q is no number", text)
	}
	switch p.kind {
	case reflect.Int, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
		if n < 0 && is != anything {
			return flawed("it is %d", n)
		}
	case reflect.Uint64:
		var n uint64
		n, err = strconv.ParseUint(text, 10, 64)
		v.SetUint(n)
	default:
		var x float64
		x, err = strconv.ParseFloat(text, 64)
		v.SetFloat(x)
		if err == nil {
			return is.admits(x)
		}
	}
	if err != nil {
		return flawed("%q is out of range, or no whole number", text)
	}
	return nil
}

// isNumber reports whether a text is a number in JSON, which package strconv does not ask.
func isNumber(s string) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	s = strings.TrimPrefix(s, "-")
	zero := strings.HasPrefix(s, "0") && len(s) > 1 && s[1] >= '0' && s[1] <= '9'
	ok := digits() && !zero
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		ok = digits() && ok
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		ok = digits() && ok
	}
	return ok && s == ""
}

func (r *reader) slice(p *plan, v reflect.Value, is rule) error {
	if err := r.begins('[', "list"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if more, err := r.more(i, ']'); err != nil || !more {
			return err
		}
		if err := r.charge(growth * p.elem.size); err != nil {
			return err
		}
		if i == v.Cap() {
			v.Grow(max(1, i))
		}
		v.SetLen(i + 1)
		if err := r.value(p.elem, v.Index(i), is); err != nil {
			return within("["+strconv.Itoa(i)+"]", err)
		}
	}
}

func (r *reader) table(p *plan, v reflect.Value, is rule) error {
	if err := r.begins('{', "object"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if more, err := r.more(i, '}'); err != nil || !more {
			return err
		}
		key, err := r.key()
		if err == nil && key == "" {
			err = flawed("a key is empty")
		}
		if err == nil {
			err = r.charge(entrySize + p.elem.size)
		}
		if err != nil {
			return err
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		x := reflect.New(v.Type().Elem()).Elem()
		if v.MapIndex(reflect.ValueOf(key)).IsValid() {
			err = flawed("it is there twice")
		} else {
			err = r.value(p.elem, x, is)
		}
		if err != nil {
			return within("."+key, err)
		}
		v.SetMapIndex(reflect.ValueOf(key), x)
	}
}

// key reads a key and its colon.
func (r *reader) key() (string, error) {
	key, err := r.quoted()
	if err == nil {
		err = r.begins(':', "colon behind a key")
	}
	return key, err
}

func (r *reader) object(p *plan, v reflect.Value) error {
	if err := r.begins('{', "object"); err != nil {
		return err
	}
	var seen uint64
	for i, at := 0, 0; ; i, at = i+1, at+1 {
		if more, err := r.more(i, '}'); err != nil {
			return err
		} else if !more {
			break
		}
		key, err := r.key()
		if err != nil {
			return err
		}
		for at < len(p.fields) && p.fields[at].key != key { // they come in order
			at++
		}
		if at >= len(p.fields) {
			var known bool
			if at, known = p.keys[key]; !known {
				return within("."+cut(key), flawed("no such key"))
			}
		}
		f := &p.fields[at]
		if seen>>at&1 != 0 {
			err = flawed("it is there twice")
		} else {
			err = r.value(f.plan, v.FieldByIndex(f.index), f.rule)
		}
		if err != nil {
			return within("."+key, err)
		}
		seen |= 1 << at
	}
	if missing := p.required &^ seen; missing != 0 {
		return within("."+p.fields[bits.TrailingZeros64(missing)].key, flawed("it is missing"))
	}
	return sound(v.Addr().Interface())
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
			*v.Addr().Interface().(*T), err = from(&x)
		}
		return err
	}}
}
