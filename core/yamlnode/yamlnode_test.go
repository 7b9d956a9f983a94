package yamlnode

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/origami-gemm/origami/internal/testing/must"
	"go.yaml.in/yaml/v3"
)

func nodes(n *yaml.Node) int {
	sum := 1
	for _, x := range n.Content {
		sum += nodes(x)
	}
	return sum
}

// No text has more values than the bound, which is known before it is parsed. The texts are short words of YAML's own
// characters in a random order; most of them cannot be parsed, and say nothing.
func TestNoTextHasMoreValuesThanTheBound(t *testing.T) {
	words := []string{"- ", "-\n", "-\t", ": ", ":", ":\n", "? ", "?", ",", "[", "]", "{", "}", "a", "b: c", "'", "\"",
		"\n", "\r", " ", "  ", "&x ", "*x", "#", "---\n", "!!str ", "| \n", "\u0085", "\u2028", "<<: "}
	random := rand.New(rand.NewPCG(1, 2))
	parsed := 0
	check := func(text string) {
		var n yaml.Node
		if yaml.Unmarshal([]byte(text), &n) != nil {
			return
		}
		if parsed++; nodes(&n) > mostValues([]byte(text)) {
			t.Errorf("%q has %d values, and the bound is %d", text, nodes(&n), mostValues([]byte(text)))
		}
	}
	for range 100_000 {
		var text strings.Builder
		for range 1 + random.IntN(12) {
			text.WriteString(words[random.IntN(len(words))])
		}
		check(text.String())
	}
	for _, unit := range []string{"-\n", "- {a}\n", "- - - a\n", "a:\n- b\n", "? - a\n: - b\n"} {
		check(strings.Repeat(unit, 20))
	}
	for _, unit := range []string{"1,", "{},", "{a},", "{a,b},", ":,", "a:,", "? ,", "a: b,", "[],", "[a],", "'a':b,"} {
		check("[" + strings.Repeat(unit, 20) + "]")
		check("{" + strings.Repeat(unit, 20) + "}")
		wide := utf16.Encode([]rune("\ufeff- [" + strings.Repeat(unit, 20) + "]"))
		var text strings.Builder
		for _, c := range wide {
			text.WriteByte(byte(c))
			text.WriteByte(byte(c >> 8))
		}
		check(text.String())
	}
	must.That(t, parsed >= 5000, "%d texts were parsed", parsed)
}
