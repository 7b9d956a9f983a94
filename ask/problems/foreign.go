package problems

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/formats/shapes"
)

var (
	// notJSON are beginnings of logs that look like JSON's, and traced are keys at the beginning of a trace.
	notJSON = regexp.MustCompile(`^\s*(\[\s*\w|\{"num_choices")`)
	traced  = regexp.MustCompile(`"(traceEvents|schemaVersion|ph)"\s*:`)
)

// listRows are rows in memory: the products that another program names, or what is written in place of a file.
type listRows struct {
	name  string
	names []string // of the columns
	list  []shapes.Row
	at    int
}

// openForeign reads the text of another program, through gzip if it is compressed. For any other text, rows is nil, and
// rest reads that text from its beginning.
func openForeign(name string, r io.Reader) (rows rows, rest io.Reader, err error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		zip, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, unreadable(name, err)
		}
		in = bufio.NewReader(zip)
	}
	header := trimmed(strings.FieldsFunc(strings.ToLower(string(headerLine(in))),
		func(r rune) bool { return r == ',' || r == '\t' }))
	head, _ := in.Peek(in.Buffered())
	read, sizes := shapes.Text, 0
	for _, size := range columns[:3] {
		if slices.Contains(header, size) {
			sizes++
		}
	}
	switch {
	case beginsJSON(bytes.TrimPrefix(head, []byte("\ufeff"))) && !notJSON.Match(head):
		head = peek(in, in.Size(), func([]byte) bool { return false }) // a text in JSON is read before it is answered
		if read = shapes.Trace; !traced.Match(head) {
			return nil, in, nil
		}
	case sizes == 3 && shapes.Table(header) == nil, len(head) == 0:
		return nil, in, nil
	}
	head = bytes.Clone(head)
	list, err := read(limit.Reader(in, name, limit.Log, splitFiles))
	var said *diag.Error
	switch {
	case errors.As(err, &said):
		return nil, nil, said.At("%s", name)
	case err != nil && !errors.Is(err, limit.ErrLongLine):
		return nil, nil, unreadable(name, err)
	case len(list) > 0:
		return &listRows{name: name, names: shapes.Columns, list: list}, nil, nil
	case sizes == 0 && (!beginsJSON(head) || notJSON.Match(head)) &&
		strings.ContainsAny(strings.Join(header, ""), "()[]{}=<>:"):
		return nil, nil, diag.Inputf("it is in no format that is read").At("%s", name).Do(headerForm)
	}
	return nil, bytes.NewReader(head), nil // for what is wrong with its header
}

func (f *listRows) columns() []string { return f.names }
func (f *listRows) place(int) string  { return f.line() }
func (f *listRows) share() float64    { return float64(f.at) / float64(len(f.list)) }

func (f *listRows) line() string {
	if f.at == 0 || f.list[f.at-1].Line == 0 {
		return f.name
	}
	return fmt.Sprintf("%s:%d", f.name, f.list[f.at-1].Line)
}

func (f *listRows) next(brief bool) (cells []string, bad, err error) {
	if f.at == len(f.list) {
		return nil, nil, io.EOF
	}
	row := f.list[f.at]
	if f.at++; row.Bad != nil && brief {
		return nil, errUnread, nil
	}
	return row.Cells, diag.Within(f.line(), row.Bad), nil
}
