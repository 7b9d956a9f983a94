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
	"strconv"

	"golang.org/x/term"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/printable"
)

// Streams are the standard streams.
type Streams struct {
	In io.Reader
	// InTerminal says that the standard input is a terminal.
	InTerminal bool
	// Terminal says that the standard output is a terminal, ErrTerminal that the standard error is one, Colour that
	// escape sequences are welcome in the output, and ErrColour in the standard error.
	Terminal    bool
	ErrTerminal bool
	Colour      bool
	ErrColour   bool
	// Width is the number of columns of the terminal, 0 if there is none or it is unknown. Wide says that tables need not
	// fit it.
	Width int
	Wide  bool
	// JSONErrors makes Report write JSON objects.
	JSONErrors bool
	// Hint, if set, adds to an error what the user of this program can do about it.
	Hint func(error) error

	out    *filter
	err    io.Writer
	screen *screen
}

// System returns the streams of the process. Colour follows https://no-color.org. COLUMNS, if it is exported, wins over
// the width of the terminal.
func System() *Streams {
	s := Plain(os.Stdin, os.Stdout, os.Stderr)
	coloured := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	s.InTerminal = term.IsTerminal(int(os.Stdin.Fd()))
	s.ErrTerminal = term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb"
	s.ErrColour = s.ErrTerminal && coloured
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		s.Terminal, s.Colour = true, coloured
		s.Width, _, _ = term.GetSize(fd) // unknown where it fails
		s.out.to = bufio.NewWriterSize(above{s.screen, os.Stdout}, 1<<16)
	} else if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 && s.ErrTerminal {
		s.Width, _, _ = term.GetSize(int(os.Stderr.Fd())) // head, grep and less write to the same terminal
	}
	s.screen.width = func() int {
		width, _, _ := term.GetSize(int(os.Stderr.Fd())) // unknown where it fails
		return width
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		s.Width = columns
	}
	return s
}

// Plain returns streams over the given readers and writers, without a terminal.
func Plain(in io.Reader, out, err io.Writer) *Streams {
	on := &screen{to: err}
	s := &Streams{In: in, err: above{on, err}, screen: on}
	s.out = &filter{to: bufio.NewWriterSize(out, 1<<16), styled: func() bool { return s.Colour }}
	return s
}

// Flush writes out what is buffered. Call it when what has been written should be seen.
func (s *Streams) Flush() error { return s.out.flush() }

// Printf writes to the standard output. The format is the program's own. The arguments may be foreign: each becomes
// printable and stays on its line.
func (s *Streams) Printf(format string, args ...any) {
	fmt.Fprint(s.out, string(s.Sprintf(format, args...))) // a failure comes back from Flush
}

// Sprintf returns what Printf writes.
func (s *Streams) Sprintf(format string, args ...any) Styled {
	for i, arg := range args {
		args[i] = printed(arg)
	}
	return Styled(fmt.Sprintf(format, args...))
}

// Writer returns the standard output for a library that writes whole texts, such as tables or JSON. Line ends and tabs
// in them are kept, everything else becomes printable.
func (s *Streams) Writer() io.Writer { return s.out }

// ErrWriter is Writer for the standard error, which is not buffered.
func (s *Streams) ErrWriter() io.Writer {
	return &filter{to: s.err, whole: true}
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
		fmt.Fprintf(s.err, "%s %s\n", styled("origami:", s.ErrColour, []Style{Bold, Red}), diag.Line(err))
		return
	}
	fmt.Fprintf(s.err, "%s\n", encoded(ask.Failure{Error: ask.ErrorOf(err)}))
}

// Warn writes a warning to stderr: something that does not stop the answer but may affect it.
func (s *Streams) Warn(text string) { fmt.Fprintln(s.err, s.Warning(text)) }

// Note writes a note to stderr.
func (s *Streams) Note(text string) { fmt.Fprintln(s.err, s.remark("note", text)) }

// Warning returns the line that Warn writes.
func (s *Streams) Warning(text string) string { return s.remark("warning", text) }

// remark is a line of one kind, or a JSON object.
func (s *Streams) remark(kind, text string) string {
	if !s.JSONErrors {
		begin := Styled("origami: " + kind + ":")
		if kind == "warning" {
			begin = styled(string(begin), s.ErrColour, []Style{Bold, Yellow})
		}
		return string(begin) + " " + diag.Line(errors.New(text))
	}
	what := (&diag.Error{What: text}).Bounded().What
	return encoded(map[string]map[string]string{kind: {"what": what}})
}

// encoded is a value of strings as a line of JSON.
func encoded(v any) string {
	line, _ := json.Marshal(v)
	return string(printable.JSON(line))
}

// Reported is an error that was already written to stderr. It only carries the exit code.
type Reported struct{ Err error }

// Error implements error.
func (r *Reported) Error() string { return r.Err.Error() }

// Unwrap returns the error that was reported.
func (r *Reported) Unwrap() error { return r.Err }

// IsReported reports whether an error was already written to stderr.
func IsReported(err error) bool {
	var r *Reported
	return errors.As(err, &r)
}
