package config

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
)

// Any text is either settings or an error of one line.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{
		"arch: [sm89, sm90]\ntimeout: 5s\nlog_level: debug\n", "plugins: a,b\nplugin_path: [/opt]\nlock_file: x\n",
		"Arch: x\narch: y\n", "timeout: [1]\n", "arch: {a: b}\n", "",
		"- a\n", "a: &x [*x]\n", "? [a]\n: b\n", "arch: !!binary x\n", "timeout: 1e400\n", "\xff", "arch.sub: 1\n",
		"---\narch: a\n---\narch: b\n", "null: 1\n", "1: 2\n", "<<: {arch: a}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v := &layers{values: map[string]any{"timeout": "30s"}, sources: map[string]string{}}
		err := parse(v, "settings.yaml", text)
		if err != nil {
			if diag.KindOf(err) != diag.Input || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("%q: %q", text, err)
			}
			return
		}
		for key := range v.values {
			if strings.Contains(key, ".") {
				t.Fatalf("%q passes with %s", text, key)
			}
		}
	})
}
