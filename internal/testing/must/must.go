// Package must ends a test at an error that it does not expect.
package must

import (
	"os"
	"testing"
)

// Do ends the test if there is an error.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get gives the value of a call, or ends the test at its error: v := must.Get(call())(t).
func Get[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Two is Get for calls with two values.
func Two[V, W any](v V, w W, err error) func(testing.TB) (V, W) {
	return func(t testing.TB) (V, W) {
		t.Helper()
		Do(t, err)
		return v, w
	}
}

// Hold logs a figure that a test checks, as an error if it is not as it has to be.
func Hold(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if t.Logf(format, args...); !ok {
		t.Fail()
	}
}

// File compares a text with that of a file, which it writes first if told so.
func File(t testing.TB, path, text string, update bool) {
	t.Helper()
	if update {
		Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != text {
		t.Errorf("%s is another text (%v); the test's flag writes it:\n%.10000s", path, err, text)
	}
}
