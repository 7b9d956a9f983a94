package wire

import (
	"fmt"
	"strings"

	"github.com/origami-gemm/origami/core/printable"
)

// Problems, configurations, estimates and rankings travel as columns of protobuf messages, and their conversions are by
// hand. All else is JSON (json.go). toX never fails. fromX checks what the types of protobuf leave open (lengths,
// indices, enum values, finite numbers) and says what is wrong, but not who sent it: the caller knows. Element types
// and bounds have the same numbers on both sides, as convert_test.go checks.

// mostText is how many bytes of a text about a failure cross the boundary, in either direction.
const mostText = 4 << 10

// cut bounds a text about a failure. A text that was cut before stays as it is.
func cut(s string) string {
	if s = valid(s); len(s) <= mostText {
		return s
	}
	return printable.Cut(s, mostText-64) // leaves room for what Cut adds
}

// valid makes text that a user may have typed fit for a protobuf string, which must be UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// names is a table of distinct strings.
type names []string

func (t *names) index(name string) uint32 {
	for i, n := range *t {
		if n == name {
			return uint32(i)
		}
	}
	*t = append(*t, name)
	return uint32(len(*t) - 1)
}

// check passes values through and keeps the first complaint about one.
type check struct{ err error }

func (c *check) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// all converts the messages of a list.
func all[Q, T any](list []Q, from func(Q) T) []T {
	if len(list) == 0 {
		return nil
	}
	out := make([]T, len(list))
	for i, q := range list {
		out[i] = from(q)
	}
	return out
}

// number passes a number through that a rule admits.
func (c *check) number(name string, v float64, is rule) float64 {
	if is.admits(v) != nil {
		c.fail("%s is %v", name, v)
	}
	return v
}

func (c *check) count(name string, v int64) int {
	if v < 0 {
		c.fail("%s is %d", name, v)
	}
	return int(v)
}
