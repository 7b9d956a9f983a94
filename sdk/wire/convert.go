package wire

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/printable"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

//go:generate go run ./internal/gen

// The conversions between core and protobuf are generated (zmessages.go) where a field of core is a field of the
// message. The files with the calls have the rest. toX and encodeX never fail. fromX and decodeX check what the type
// system of protobuf leaves open (lengths, indices, enum values, finite numbers) and say what is wrong, without saying
// who sent it: the caller knows that. Element types, bounds, tiers, keys and dimensions have the same numbers on both
// sides; convert_test.go holds them to that.

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
type check struct {
	err   error
	place place
}

// place is the message with a name that is being read.
type place struct{ what, name string }

func (c *check) fail(format string, args ...any) {
	switch {
	case c.err != nil:
	case c.place.name != "":
		c.err = fmt.Errorf("%s %s: %w", c.place.what, c.place.name, fmt.Errorf(format, args...))
	default:
		c.err = fmt.Errorf(format, args...)
	}
}

// checked is a conversion that tells what it found.
func checked[Q, T any](decode func(*check, Q) T) func(Q) (T, error) {
	return func(q Q) (T, error) {
		var c check
		v := decode(&c, q)
		return v, c.err
	}
}

// each converts the elements of a list to messages.
func each[T, Q any](list []T, to func(*T) Q) []Q {
	if len(list) == 0 {
		return nil
	}
	out := make([]Q, len(list))
	for i := range list {
		out[i] = to(&list[i])
	}
	return out
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

// enum admits the numbers from least to most. An unknown one becomes least.
func (c *check) enum(name string, v, least, most int32) int32 {
	if v < least || v > most {
		c.fail("unknown %s %d", name, v)
		return least
	}
	return v
}

// mostNumber bounds the magnitude of every number, leastNumber that of an amount that is not zero. They lie far outside
// of any quantity, and what the host computes from amounts between them, as a rate from cycles and a clock, is neither
// infinite nor zero.
const (
	leastNumber = 1e-100
	mostNumber  = 1e100
)

func (c *check) finite(name string, v float64) float64 {
	if !(math.Abs(v) <= mostNumber) {
		c.fail("%s is %v", name, v)
	}
	return v
}

// atMost is for a quantity that is known never to be large.
func (c *check) atMost(name string, v, most float64) {
	if v > most {
		c.fail("%s is %v, above %v", name, v, most)
	}
}

// attributes are the numbers of a live device; none is nil.
func (c *check) attributes(attributes map[string]float64) map[string]float64 {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		c.finite(c.named("attribute", name), attributes[name])
	}
	if len(attributes) == 0 {
		return nil
	}
	return attributes
}

// positive admits no zero, amount does; both are finite.
func (c *check) positive(name string, v float64) float64 {
	if c.finite(name, v) < leastNumber {
		c.fail("%s is %v", name, v)
	}
	return v
}

func (c *check) amount(name string, v float64) float64 {
	if c.finite(name, v) < leastNumber && v != 0 {
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

func (c *check) named(what, name string) string {
	if name == "" {
		c.fail("%s without a name", what)
	}
	return name
}

// maxID is the longest id in bytes.
const maxID = 64

// ids refuses ids that nobody can type, or that are more than a word where they are shown: --arch has them between
// commas, "@", ":" and "=", and a shell completes them.
func (c *check) ids(what string, ids ...string) {
	for _, id := range ids {
		if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.+-", r)
		}) {
			c.fail("%q is no id of %s, which has up to %d letters, digits and the characters _ . + -", id, what, maxID)
		}
	}
}

func (c *check) elementType(t pb.ElementType) gemm.DType {
	d := c.optionalType(t)
	if t == 0 {
		c.fail("an unspecified element type")
	}
	return d
}

func (c *check) optionalType(t pb.ElementType) gemm.DType {
	d, err := fromElementType(t)
	return admit(c, d, err)
}

func (c *check) major(m pb.Major) gemm.Major {
	major, err := fromMajor(m)
	return admit(c, major, err)
}

// config admits a missing configuration.
func (c *check) config(q *pb.Configs) (config gemm.Config) {
	if q == nil {
		return config
	}
	config, err := fromConfig(q)
	return admit(c, config, err)
}

func (c *check) problems(list []*pb.Problem) []gemm.Problem {
	return all(list, func(q *pb.Problem) gemm.Problem {
		p, err := fromProblem(q)
		return admit(c, p, err)
	})
}

// admit passes a value through that was checked elsewhere.
func admit[T any](c *check, v T, err error) T {
	if err != nil {
		c.fail("%w", err)
	}
	return v
}

// rung admits the unspecified one: a model may not say what it stands on.
func (c *check) rung(r pb.Rung) arch.Rung {
	return rungs[c.enum("rung", int32(r), 0, int32(len(rungs)-1))]
}

// toTime is zero for no time.
func toTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromTime(nanoseconds int64) (t time.Time) {
	if nanoseconds == 0 {
		return t
	}
	return time.Unix(0, nanoseconds).UTC()
}
