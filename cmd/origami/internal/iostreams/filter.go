package iostreams

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/printable"
)

// printed returns an argument of Printf in a form that is safe to print.
func printed(arg any) any {
	switch v := arg.(type) {
	case Styled:
		return string(v)
	case error:
		return diag.Line(v)
	case fmt.Stringer:
		return printable.Line(v.String())
	}
	switch kind := reflect.ValueOf(arg).Kind(); {
	case reflect.Bool <= kind && kind <= reflect.Complex128:
		return arg // numbers have their own verbs
	default:
		return printable.Line(fmt.Sprint(arg))
	}
}

// filter makes what passes through it printable, except for line ends, tabs, and origami's escape sequences where they
// are welcome. It is the last of several layers: what comes here has usually been made printable with its line.
type filter struct {
	to     io.Writer
	styled func() bool // nil for never
	whole  bool        // each Write ends with a whole character
	rest   []byte      // the incomplete character or escape sequence at the end of what was written
	buffer []byte
}

// Write implements io.Writer.
func (f *filter) Write(p []byte) (int, error) {
	text := p
	if len(f.rest) > 0 {
		text = append(f.rest, p...)
	}
	end := len(text)
	if !f.whole {
		end = f.complete(text)
	}
	err := f.pass(text[:end])
	f.rest = append([]byte(nil), text[end:]...)
	return len(p), err
}

// complete returns how much of a text does not depend on what follows.
func (f *filter) complete(text []byte) int {
	for back := 1; back < max(utf8.UTFMax, len(Red)) && back <= len(text); back++ {
		switch last := text[len(text)-back:]; {
		case f.styles() && beginsSequence(string(last)):
			return len(text) - back
		case back < utf8.UTFMax && utf8.RuneStart(last[0]) && !utf8.FullRune(last):
			return len(text) - back
		}
	}
	return len(text)
}

func (f *filter) styles() bool { return f.styled != nil && f.styled() }

func (f *filter) pass(text []byte) error {
	clean := true
	for i := 0; i < len(text) && clean; i++ {
		clean = ' ' <= text[i] && text[i] < 0x7f || text[i] == '\n' || text[i] == '\t'
	}
	if clean {
		_, err := f.to.Write(text)
		return err
	}
	f.buffer = f.buffer[:0]
	for rest := string(text); rest != ""; {
		end := len(rest)
		if f.styles() {
			if sequence := sequenceAt(rest); sequence != "" {
				f.buffer = append(f.buffer, sequence...)
				rest = rest[len(sequence):]
				continue
			}
			if next := strings.IndexByte(rest[1:], plain[0]); next >= 0 {
				end = 1 + next
			}
		}
		f.buffer = printable.Append(f.buffer, rest[:end], "\n\t")
		rest = rest[end:]
	}
	_, err := f.to.Write(f.buffer)
	return err
}

// flush writes what is left.
func (f *filter) flush() error {
	err := f.pass(f.rest)
	f.rest = nil
	if b, ok := f.to.(*bufio.Writer); ok && err == nil {
		err = b.Flush()
	}
	return err
}

// Log returns a writer for a log that writes an entry at a time, which stays on one line.
func Log(to io.Writer) io.Writer { return log{to} }

type log struct{ to io.Writer }

func (l log) Write(entry []byte) (int, error) {
	line := printable.Line(strings.TrimSuffix(string(entry), "\n"))
	_, err := io.WriteString(l.to, line+"\n")
	return len(entry), err
}
