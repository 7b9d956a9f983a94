// Package must ends a test at an error that it does not expect.
package must

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
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

// Err is the error of a call that has a value too.
func Err[V any](_ V, err error) error { return err }

// Fail reports that an error is missing, or that its text, which is one line, has not some words.
func Fail(t testing.TB, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want %q", err, words)
	}
}

// Refuse is Fail for an error of kind diag.Input.
func Refuse(t testing.TB, err error, words string) {
	t.Helper()
	if Fail(t, err, words); err != nil && diag.KindOf(err) != diag.Input {
		t.Errorf("%v is of another kind than input", err)
	}
}

// Equal reports two values that differ, with what they are about.
func Equal[V comparable](t testing.TB, got, want V, about ...any) {
	t.Helper()
	if got != want {
		t.Error(append(about, fmt.Sprintf("%v, want %v", got, want))...)
	}
}

// Alike is Equal for what cannot be compared by ==: lists, maps and what points to others.
func Alike(t testing.TB, got, want any, about ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Error(append(about, fmt.Sprintf("%+v, want %+v", got, want))...)
	}
}

// That reports what is not so.
func That(t testing.TB, is bool, format string, about ...any) {
	t.Helper()
	if !is {
		t.Errorf(format, about...)
	}
}

// Need is That for what the rest of the test needs.
func Need(t testing.TB, is bool, format string, about ...any) {
	t.Helper()
	if !is {
		t.Fatalf(format, about...)
	}
}
