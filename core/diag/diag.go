// Package diag holds the one error shape that reaches a user: what is wrong, where, and what to do about it, on one
// line. Every layer wraps its failures in an *Error, plugins send them across the process boundary as data, and the
// command line turns the Kind into the documented exit code.
package diag

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/printable"
)

// Kind says whose problem an error is. It decides the exit code of the command line (docs/exit-codes.md).
type Kind uint8

const (
	// Internal is a failure that is nobody's input: a bug, an unwritable output.
	Internal Kind = iota
	// Input is a request that cannot be answered as asked: a bad flag, file, shape, architecture, option.
	Input
	// Plugin is a plugin that is missing, died, hung, spoke another version or answered nonsense.
	Plugin
	// Device is a GPU or driver that is not there.
	Device
)

// String returns the kind's name as it appears in JSON errors.
func (k Kind) String() string {
	switch k {
	case Input:
		return "input"
	case Plugin:
		return "plugin"
	case Device:
		return "device"
	default:
		return "internal"
	}
}

// Error is a failure that a user reads. What is required. Where (a flag, a file:line:column, a plugin) and Fix (what to
// do) are left out of the text if they are empty.
//
// Every front end shows the same text, so it names no flag, command or function. A front end adds a hint by Code, as
// the command line does.
type Error struct {
	Kind  Kind
	What  string
	Where string
	Fix   string
	// Code names the failure for front ends. It is empty if no front end has a hint for it.
	Code Code
	// Subject is the name that a hint for Code mentions: an architecture, the path of a plugin. It is not printed.
	Subject string
	// Err is the cause, for errors.Is and errors.As. It is not printed: What already says it.
	Err error
}

// mostText is how many bytes of each text of an error are shown: it may quote what somebody wrote.
const mostText = 4 << 10

// unexplained is the What of an error without one.
const unexplained = "it failed, and no reason is given"

// Error returns "where: what; fix" on one line.
func (e *Error) Error() string {
	bounded := e.Bounded()
	var b strings.Builder
	if bounded.Where != "" {
		b.WriteString(bounded.Where)
		b.WriteString(": ")
	}
	b.WriteString(bounded.What)
	if bounded.Fix != "" {
		b.WriteString("; ")
		b.WriteString(bounded.Fix)
	}
	// Many texts of other programs have several lines, so line ends become blanks here and not escapes.
	return printable.Line(strings.Join(strings.FieldsFunc(b.String(), blank), " "))
}

func blank(r rune) bool { return r == ' ' || '\t' <= r && r <= '\r' }

// Bounded returns a copy of the error as it is shown: no text is longer than the limit, and What is not empty. A front
// end that does not show Error's line shows these texts.
func (e *Error) Bounded() *Error {
	c := *e
	c.Where, c.What, c.Fix = printable.Cut(c.Where, mostText), printable.Cut(c.What, mostText),
		printable.Cut(c.Fix, mostText)
	if strings.TrimFunc(c.What, blank) == "" {
		c.What = unexplained
	}
	return &c
}

// Line returns the text of any error as Error.Error does: on one line, printable and bounded.
func Line(err error) string {
	if e, ok := err.(*Error); ok { //nolint:errorlint // a wrapping error says more than the error within
		return e.Error()
	}
	return (&Error{What: err.Error()}).Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Inputf returns an Input error; chain At and Do to add where it is and what to do.
func Inputf(format string, args ...any) *Error {
	return &Error{Kind: Input, What: fmt.Sprintf(format, args...)}
}

// At returns a copy of the error that says where it happened.
func (e *Error) At(format string, args ...any) *Error {
	c := *e
	c.Where = fmt.Sprintf(format, args...)
	return &c
}

// Do returns a copy of the error that says what to do about it.
func (e *Error) Do(format string, args ...any) *Error {
	c := *e
	c.Fix = fmt.Sprintf(format, args...)
	return &c
}

// Coded returns a copy of the error with a code for front ends, and the name that it is about, if any.
func (e *Error) Coded(code Code, subject string) *Error {
	c := *e
	c.Code, c.Subject = code, subject
	return &c
}

// Also returns a copy of the error with one more piece of advice behind what Fix says.
func (e *Error) Also(format string, args ...any) *Error {
	c := *e
	advice := fmt.Sprintf(format, args...)
	switch {
	case c.Fix == "":
		c.Fix = advice
	case strings.HasSuffix(c.Fix, "?"):
		c.Fix += " " + advice
	default:
		c.Fix += "; " + advice
	}
	return &c
}

// Within puts a place before an error: "place: where: what". It changes nothing if the place is empty or the error has
// it already.
func Within(place string, err error) error {
	var e *Error
	switch {
	case place == "" || err == nil:
		return err
	case !errors.As(err, &e):
		return &Error{What: err.Error(), Where: place, Err: err}
	case e.Where == "" || e.Where == place:
		return e.At("%s", place)
	default:
		return e.At("%s: %s", place, e.Where)
	}
}

// WithoutPath drops the operation and the path from the error of a file, for a message that has the path anyway.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// KindOf returns the Kind of the first *Error in err's chain, Internal if there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Nearest returns the names closest to got by edit distance, at most n of them and none further than half of got's
// length (at least two edits). The closest is first; among equals, the one that begins like got for longer, and then
// the order of names. A name that begins with got, or of which got is a word, is one edit away. It feeds "did you
// mean".
func Nearest(got string, names []string, n int) []string {
	limit := max(2, len(got)/2)
	type neighbour struct {
		name         string
		away, begins int
	}
	var near []neighbour
	lower := strings.ToLower(got)
	for _, name := range names {
		if len(got)-len(name) > limit { // so is the distance then, and got may be a whole file
			continue
		}
		other := strings.ToLower(name)
		d := distance(lower, other)
		if slices.Contains(strings.FieldsFunc(other, notWord), lower) || len(got) > 2 && strings.HasPrefix(other, lower) {
			d = min(d, 1)
		}
		if d <= limit {
			near = append(near, neighbour{name, d, common(lower, other)})
		}
	}
	slices.SortStableFunc(near, func(a, b neighbour) int {
		return cmp.Or(cmp.Compare(a.away, b.away), cmp.Compare(b.begins, a.begins))
	})
	var closest []string
	for _, x := range near[:min(n, len(near))] {
		closest = append(closest, x.name)
	}
	return closest
}

func notWord(r rune) bool { return r == '_' || r == '-' || r == ' ' }

// common is how many bytes two texts begin with alike.
func common(a, b string) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return i
}

// Typo returns the name of several letters that got is one edit away from, empty if there is none.
func Typo(got string, names []string) string {
	near := Nearest(got, names, 1)
	if len(near) == 0 || len(near[0]) == 1 || distance(strings.ToLower(got), strings.ToLower(near[0])) != 1 {
		return ""
	}
	return near[0]
}

// distance counts the edits that turn a into b: insertions, deletions, substitutions and exchanges of neighbours, over
// bytes (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			substitute := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				substitute++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, substitute)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
