// Package iostreams holds the three standard streams and what the program may do with them, so that no verb touches
// the os package and every verb can be run in a test.
package iostreams

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/origami-gemm/origami/core/diag"
)

// Streams are the standard streams.
type Streams struct {
	In io.Reader
	// Out is buffered: call Flush when what has been written should be seen.
	Out *bufio.Writer
	Err io.Writer
	// Terminal says that Out is a terminal, ErrTerminal that Err is one, Colour that escape sequences are welcome in
	// Out.
	Terminal    bool
	ErrTerminal bool
	Colour      bool
	// JSONErrors makes Report write JSON objects.
	JSONErrors bool
	// Hint, if set, adds to an error what the user of this program can do about it.
	Hint func(error) error
}

// System returns the streams of the process. Colour follows https://no-color.org.
func System() *Streams {
	s := &Streams{In: os.Stdin, Out: bufio.NewWriterSize(os.Stdout, 1<<16), Err: os.Stderr}
	s.ErrTerminal = term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb"
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		s.Terminal = true
		s.Colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return s
}

// Plain returns streams over the given readers and writers, without a terminal.
func Plain(in io.Reader, out, err io.Writer) *Streams {
	return &Streams{In: in, Out: bufio.NewWriter(out), Err: err}
}

// Flush writes out what is buffered.
func (s *Streams) Flush() error { return s.Out.Flush() }

// Bold returns text in bold where colour is welcome.
func (s *Streams) Bold(text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// Hinted returns the error as it is shown, with its hint.
func (s *Streams) Hinted(err error) error {
	if s.Hint == nil {
		return err
	}
	return s.Hint(err)
}

// Report writes an error to stderr: one line "origami: where: what; fix", or one JSON object.
func (s *Streams) Report(err error) {
	err = s.Hinted(err)
	if !s.JSONErrors {
		// Whatever the error is, it stays on one line.
		fmt.Fprintf(s.Err, "origami: %v\n", &diag.Error{What: err.Error()})
		return
	}
	line, _ := json.Marshal(struct {
		Error JSONError `json:"error"`
	}{AsJSON(err)})
	fmt.Fprintf(s.Err, "%s\n", line)
}

// Warn writes a warning to stderr: something that does not stop the answer but may affect it.
func (s *Streams) Warn(text string) { fmt.Fprintln(s.Err, s.Warning(text)) }

// Note writes a note to stderr.
func (s *Streams) Note(text string) { fmt.Fprintln(s.Err, s.remark("note", text)) }

// Warning returns the line that Warn writes.
func (s *Streams) Warning(text string) string { return s.remark("warning", text) }

// remark is a line of one kind, or a JSON object.
func (s *Streams) remark(kind, text string) string {
	if !s.JSONErrors {
		return fmt.Sprintf("origami: %s: %v", kind, &diag.Error{What: text})
	}
	line, _ := json.Marshal(map[string]any{kind: map[string]string{"what": text}})
	return string(line)
}

// JSONError is how an error looks in JSON.
type JSONError struct {
	Kind  string `json:"kind"`
	What  string `json:"what"`
	Where string `json:"where,omitempty"`
	Fix   string `json:"fix,omitempty"`
	// Count is how many faults the error stands for, if they are counted.
	Count int `json:"count,omitempty"`
}

// Counted is an error that stands for many.
type Counted struct {
	Count int
	Err   error
}

// Error implements error.
func (c *Counted) Error() string { return c.Err.Error() }

// Unwrap returns the error with the text.
func (c *Counted) Unwrap() error { return c.Err }

// AsJSON converts an error.
func AsJSON(err error) JSONError {
	var counted *Counted
	count := 0
	if errors.As(err, &counted) {
		count = counted.Count
	}
	var d *diag.Error
	if errors.As(err, &d) {
		return JSONError{d.Kind.String(), d.What, d.Where, d.Fix, count}
	}
	return JSONError{Kind: diag.Internal.String(), What: err.Error()}
}
