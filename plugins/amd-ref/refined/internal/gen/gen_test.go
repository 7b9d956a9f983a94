package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/origami-gemm/origami/plugins/amd-ref/refined/terms"
)

// The code and the page are those of the table, and the code uses every number of it.
func TestUpToDate(t *testing.T) {
	src, err := code()
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile("../../zterms.go"); err != nil || !bytes.Equal(have, src) {
		t.Errorf("zterms.go is not what the table says; run `make generate` (%v)", err)
	}
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	if filled, err := fill(string(text)); err != nil || filled != string(text) {
		t.Errorf("docs/model-amd-refined.md is not what the table says; run `make generate` (%v)", err)
	}
	for _, name := range terms.Numbers() {
		if name == "lds_width" {
			continue // a roof of the roofline
		}
		if !bytes.Contains(src, fmt.Appendf(nil, "value(%q)", name)) {
			t.Errorf("no term uses %s", name)
		}
	}
}
