package page_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/formula/page"
)

func TestFill(t *testing.T) {
	text := "a\n<!-- x: written by make generate -->\nold\n<!-- end of x -->\nb\n"
	got, err := page.Fill(text, map[string]string{"x": "new\n"})
	if want := "a\n<!-- x: written by make generate -->\nnew\n<!-- end of x -->\nb\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := page.Fill(text, map[string]string{"y": ""}); err == nil {
		t.Error("a part without a place is no error")
	}
}

func TestLayout(t *testing.T) {
	if got, want := page.Layout("x = max(a,\n\t\t\tb,\n\t\t\t\tc)"), "x = max(a,\n    b,\n        c)\n"; got != want {
		t.Errorf("%q", got)
	}
}
