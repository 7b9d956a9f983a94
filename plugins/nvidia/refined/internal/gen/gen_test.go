package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/origami-gemm/origami/plugins/nvidia/refined/internal/terms"
)

// The code and the page are those of the table.
func TestUpToDate(t *testing.T) {
	src, err := code()
	if err != nil {
		t.Fatal(err)
	}
	const remedy = "is not what the table says; run go generate ./plugins/nvidia/refined"
	if have, err := os.ReadFile("../../zterms.go"); err != nil || !bytes.Equal(have, src) {
		t.Errorf("zterms.go %s (%v)", remedy, err)
	}
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	if filled, err := fill(string(text)); err != nil || filled != string(text) {
		t.Errorf("%s %s (%v)", page, remedy, err)
	}
}

// The model has no number that it does not use.
func TestEveryNumberIsUsed(t *testing.T) {
	src, err := code()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range terms.Numbers() {
		if !bytes.Contains(src, fmt.Appendf(nil, "value(%q)", name)) {
			t.Errorf("no term uses %s", name)
		}
	}
}
