package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
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
		l := layers{viper.New(), pflag.NewFlagSet("", pflag.ContinueOnError), "settings.yaml", nil}
		err := l.parse(text)
		if err != nil {
			must.Need(t, diag.KindOf(err) == diag.Input && !strings.ContainsAny(err.Error(), "\r\n"), "%q: %q", text, err)
			return
		}
		for key := range l.AllSettings() {
			must.Need(t, slices.Contains(keys(), key), "%q passes with %s", text, key)
		}
	})
}
