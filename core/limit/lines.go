package limit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Line bounds a line of records, at a thousand times the length of a line with fifty samples.
const Line = 1 << 20

// ErrLongLine is the error for a line of more than Line bytes.
var ErrLongLine = fmt.Errorf("a line has more than %d bytes", Line)

// Lines reads lines of up to Line bytes and copies only those that do not fit its buffer.
type Lines struct {
	in   *bufio.Reader
	long []byte
}

// NewLines returns a reader of lines.
func NewLines(in io.Reader) *Lines { return &Lines{in: bufio.NewReaderSize(in, 64<<10)} }

// Next returns the next line with its line feed, valid until the next call. With io.EOF it returns what follows the
// last line feed.
func (l *Lines) Next() ([]byte, error) {
	text, err := l.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}
	l.long = append(l.long[:0], text...)
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = l.in.ReadSlice('\n')
		if l.long = append(l.long, text...); len(l.long) > Line {
			return nil, ErrLongLine
		}
	}
	return l.long, err
}

// JSONLine returns a value as a line of JSON that Lines can read, with its line feed.
func JSONLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if err == nil && b.Len() > Line {
		err = fmt.Errorf("its line has %d bytes, and at most %d are read", b.Len(), Line)
	}
	return b.Bytes(), err
}
