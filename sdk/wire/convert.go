package wire

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/printable"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// The conversions between core and protobuf stand in a file per message: problem.go, config.go, space.go, answer.go,
// manifest.go, open.go, description.go, status.go and executor_convert.go. toX never fails. fromX checks what the type
// system of protobuf leaves open (lengths, indices, enum values, finite numbers) and says what is wrong, without saying
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
type check struct{ err error }

func (c *check) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
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

// atMost is amount for a quantity that is known never to be large.
func (c *check) atMost(name string, v, most float64) float64 {
	if c.amount(name, v) > most {
		c.fail("%s is %v, above %v", name, v, most)
	}
	return v
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

func (c *check) elementType(t pb.ElementType) gemm.DType {
	d, err := fromElementType(t)
	if err == nil && d == 0 {
		err = errors.New("an unspecified element type")
	}
	if err != nil {
		c.fail("%v", err)
	}
	return d
}

// rung admits the unspecified one: a model may not say what it stands on.
func (c *check) rung(r pb.Rung) arch.Rung {
	if r < 0 || int(r) >= len(rungs) {
		c.fail("unknown rung %d", r)
		return ""
	}
	return rungs[r]
}
