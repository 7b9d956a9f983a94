package problems

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/strictjson"
)

// jsonWithin is how much blank space may come before a JSON text.
const jsonWithin = 512

func beginsJSON(text []byte) bool {
	text = blanksCut(text)
	return len(text) > 0 && (text[0] == '[' || text[0] == '{')
}

func blanksCut(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }

// jsonRows are the objects of a JSON text: an array, or one object after the other. Their members are the cells.
// Members of a nested object that within names are cells too. The text stays in memory, because the columns are the
// names of all members.
type jsonRows struct {
	name string
	jsonForm
	text   []byte
	array  bool
	lines  bool // an object per line
	header []string

	dec       *json.Decoder
	from      int // where dec began in text
	begin     int // where the row begins in text
	positions []int
	// counted is a place in text, ends how many line ends are before it, and begun where its line begins.
	counted, ends, begun int
}

// jsonForm is what objects have.
type jsonForm struct {
	within map[string]int // objects by name, with the depth up to which they are looked into
	fix    string         // the advice for other texts
	first  bool           // the first object that cannot be read is the last, and so is one beyond limit.Rows
	held   []byte         // the text, if the caller has it in memory
}

// openJSON reads the text, of about size bytes, and collects the names of members.
func openJSON(name string, r *bufio.Reader, size int64, form jsonForm) (rows, error) {
	f := &jsonRows{name: name, text: form.held, jsonForm: form}
	if f.text == nil {
		text := bytes.NewBuffer(make([]byte, 0, max(size, 0)+bytes.MinRead))
		if _, err := text.ReadFrom(r); err != nil {
			return nil, unreadable(name, err)
		}
		f.text = text.Bytes()
	}
	f.rewind()
	for count := 0; ; count++ {
		members, bad, err := f.object(true)
		if errors.Is(err, io.EOF) || f.first && (bad != nil || count == limit.Rows) {
			break
		}
		if err != nil || bad != nil {
			continue // next reports it
		}
		for _, m := range members {
			if slices.Contains(f.header, m.name) {
				continue
			}
			if len(f.header) == limit.Cells {
				return nil, diag.Inputf("the objects have more than %d different members", limit.Cells).
					At("%s", f.line()).Do("leave members out")
			}
			f.header = append(f.header, m.name)
		}
	}
	if len(f.header) == 0 {
		f.header = slices.Clone(columns[:3]) // so that the first object is reported, and not its columns
	}
	f.rewind()
	f.positions = make([]int, len(f.header))
	return f, nil
}

// rewind goes to the first object.
func (f *jsonRows) rewind() {
	f.begin, f.counted, f.ends, f.begun, f.positions = 0, 0, 0, 0, nil
	at := bytes.IndexAny(f.text, "[{")
	first, _, _ := bytes.Cut(f.text[at:], []byte("\n"))
	f.array = f.text[at] == '['
	f.lines = !f.array && json.Valid(first)
	f.decodeFrom(at)
	if f.array {
		_, _ = f.dec.Token() // the bracket
	}
}

func (f *jsonRows) decodeFrom(at int) {
	f.from, f.dec = at, json.NewDecoder(bytes.NewReader(f.text[at:]))
}

func (f *jsonRows) columns() []string { return f.header }

func (f *jsonRows) line() string {
	line, _ := f.position(f.begin)
	return fmt.Sprintf("%s:%d", f.name, line)
}

func (f *jsonRows) place(column int) string {
	if f.positions == nil || f.positions[column] == 0 {
		return f.line() // the row has no such member
	}
	line, at := f.position(f.positions[column])
	return fmt.Sprintf("%s:%d:%d", f.name, line, at)
}

// position converts a place in the text into a line and a column. It counts on from the place before, so that a text
// of one line takes no longer than another.
func (f *jsonRows) position(at int) (line, column int) {
	lineEnd := []byte("\n")
	if at < f.counted { // a cell before another of its row
		if n := bytes.Count(f.text[at:f.counted], lineEnd); n > 0 {
			f.ends, f.begun = f.ends-n, bytes.LastIndex(f.text[:at], lineEnd)+1
		}
	} else if passed := f.text[f.counted:at]; len(passed) > 0 {
		f.ends += bytes.Count(passed, lineEnd)
		if end := bytes.LastIndex(passed, lineEnd); end >= 0 {
			f.begun = f.counted + end + 1
		}
	}
	f.counted = at
	return f.ends + 1, at - f.begun + 1
}

func (f *jsonRows) share() float64 {
	return float64(f.from+int(f.dec.InputOffset())) / float64(len(f.text))
}

func (f *jsonRows) next(brief bool) (cells []string, bad, err error) {
	members, bad, err := f.object(brief)
	if err != nil || bad != nil {
		return nil, bad, err
	}
	cells = make([]string, len(f.header))
	clear(f.positions)
	for _, m := range members {
		i := slices.Index(f.header, m.name)
		f.positions[i] = m.at
		cells[i] = m.cell
	}
	return cells, nil, nil
}

// member is a member of an object, and where its value stands in the text.
type member struct {
	name, cell string
	at         int
}

// object reads the next object. Behind a wrong object it goes on with the next line, unless the text is an array.
func (f *jsonRows) object(brief bool) (members []member, bad, err error) {
	if !f.dec.More() {
		if rest := bytes.TrimSpace(f.text[f.from+int(f.dec.InputOffset()):]); !f.array && len(rest) > 0 {
			return nil, f.notJSON(fmt.Errorf("unexpected %q", rest[0]), brief), nil
		}
		return nil, nil, f.end()
	}
	var raw json.RawMessage
	if err := f.dec.Decode(&raw); err != nil {
		return nil, f.notJSON(err, brief), nil
	}
	f.begin = f.from + int(f.dec.InputOffset()) - len(raw)
	if brief && raw[0] != '{' { // a place in a long line takes long to find
		return nil, errUnread, nil
	}
	if members, bad = f.members(nil, string(raw), f.begin, 0); bad != nil && brief {
		bad = errUnread
	}
	return members, bad, nil
}

// end checks what follows the last object.
func (f *jsonRows) end() error {
	if f.array {
		f.array = false
		if _, err := f.dec.Token(); err != nil {
			f.begin = len(f.text)
			return diag.Inputf("the array does not end").At("%s", f.line()).Do("close it with ]")
		}
		if rest := f.from + int(f.dec.InputOffset()); len(bytes.TrimSpace(f.text[rest:])) > 0 {
			f.begin = rest
			return diag.Inputf("more follows the array").At("%s", f.line()).Do("%s", f.fix)
		}
	}
	return io.EOF
}

// notJSON says where the text stopped being JSON, and skips to the next line.
func (f *jsonRows) notJSON(err error, brief bool) error {
	at := min(f.from+int(f.dec.InputOffset()), len(f.text))
	at += len(f.text[at:]) - len(bytes.TrimLeft(f.text[at:], ", \t\r\n"))
	// The offset of a decoder's error is not where the wrong letter is.
	rest := f.text[at:]
	if f.lines {
		rest, _, _ = bytes.Cut(rest, []byte("\n"))
	}
	var syntax *json.SyntaxError
	if wrong := json.Unmarshal(rest, new(json.RawMessage)); errors.As(wrong, &syntax) {
		at, err = min(at+max(int(syntax.Offset)-1, 0), len(f.text)), wrong
	}
	f.begin = at
	next := len(f.text)
	if end := bytes.IndexByte(f.text[at:], '\n'); end >= 0 && !f.array {
		next = at + end + 1
	}
	f.array = false
	f.decodeFrom(next)
	if brief {
		return errUnread
	}
	line, column := f.position(at)
	return diag.Inputf("not JSON: %v", err).At("%s:%d:%d", f.name, line, column).Do("%s", f.fix)
}

// members reads the members of an object that begins at a place in the text.
func (f *jsonRows) members(list []member, raw string, begin, depth int) ([]member, error) {
	if raw[0] != '{' {
		return nil, diag.Inputf("it is not an object").At("%s", f.line()).Do("%s", f.fix)
	}
	if len(raw) > int(limit.Row) {
		return nil, diag.Inputf("the object is longer than %v", limit.Row).At("%s", f.line()).Do("leave members out")
	}
	s := strictjson.Scanner{Text: raw}
	err := s.Each('{', '}', func(int) (err error) {
		name := strings.TrimSpace(quoted(&s))
		s.Next()
		s.At++ // the colon
		s.Next()
		from := s.At
		skip(&s)
		value, at := raw[from:s.At], begin+from
		if deepest, ok := f.within[name]; ok && depth <= deepest && value[0] == '{' {
			before := len(list)
			list, err = f.members(list, value, at, depth+1)
			for i := before; i < len(list) && name == "labels"; i++ {
				list[i].name = "labels." + list[i].name
			}
			return err
		}
		if lower := strings.ToLower(name); slices.Contains(columns, lower) {
			name = lower
		}
		if slices.ContainsFunc(list, func(m member) bool { return m.name == name }) {
			return diag.Inputf("%s is there twice", name).At("%s", f.line()).Do("leave one of them out")
		}
		if len(list) == limit.Cells {
			return diag.Inputf("the object has more than %d members", limit.Cells).At("%s", f.line()).
				Do("leave members out")
		}
		list = append(list, member{name: name, cell: jsonCell(name, value), at: at})
		return nil
	})
	return list, err
}

// skip goes behind a value of a text that is JSON.
func skip(s *strictjson.Scanner) {
	switch s.Next() {
	case '{':
		_ = s.Each('{', '}', func(int) error {
			quoted(s)
			s.Next()
			s.At++ // the colon
			skip(s)
			return nil
		})
	case '[':
		_ = s.Each('[', ']', func(int) error {
			skip(s)
			return nil
		})
	case '"':
		quoted(s)
	default:
		s.Bare()
	}
}

// quoted reads a string as encoding/json does, of a text that is JSON.
func quoted(s *strictjson.Scanner) string {
	text, _, _ := s.Quoted()
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	return text
}

// jsonCell is a value as a cell: a text without its quotes, nothing for null, and a list of numbers for a column of the
// problem without its brackets.
func jsonCell(name, value string) string {
	switch value[0] {
	case '"':
		return strings.TrimSpace(quoted(&strictjson.Scanner{Text: value}))
	case 'n':
		return ""
	case '[', '{':
		var compact bytes.Buffer
		_ = json.Compact(&compact, []byte(value))
		if text := compact.String(); text[0] == '[' && slices.Contains(columns, name) {
			return text[1 : len(text)-1]
		}
		return compact.String()
	}
	return value
}
