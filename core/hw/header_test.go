package hw

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"reflect"
	"testing"
)

// A header that is read without YAML's decoder is the one that the decoder reads.
func FuzzPlainHeader(f *testing.F) {
	const good = "# A GPU\narch: sm89\ndevice: rtx4090\nname: GeForce RTX 4090\nvendor: NVIDIA\n"
	if _, ok := plainHeader(good + "aliases: [\"4090\", rtx-4090]\ndefault: true\n"); !ok {
		f.Error("the usual header is left to the decoder")
	}
	for _, more := range []string{
		"", "aliases: [a, b]", "aliases: [a,b]", "aliases: []", "aliases: [\"a\\n\"]", "aliases: [a: b]", "arch: sm90",
		"default: yes",
		"default: false", "alias: a", " x: y", "---", "...", "# \x01", "aliases: [null, Null, nulls]", "aliases: [true, a b]",
	} {
		f.Add(good + more)
	}
	for _, name := range []string{
		"null", "~", "yes", "1e3", "a # b", "a: b", "'a'", "a  b", "a ", "a\r", "*a", "é", "[a]", "a\tb",
	} {
		f.Add("arch: a\nname: " + name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := plainHeader(text)
		if !ok {
			return
		}
		var want Header
		err := decodeStrictly("fuzz.yaml", []byte(text), &want)
		must.That(t, err == nil && reflect.DeepEqual(got, want), "%q: %+v, the decoder reads %+v, %v", text, got, want, err)
	})
}
