package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
)

// Python reads the names of element types itself, as the command line does.
func TestNamesInPython(t *testing.T) {
	text, err := os.ReadFile("../python/origami_gemm/_dtypes.py")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[gemm.DType]bool{}
	for _, m := range regexp.MustCompile(`"(\w+)": (\d)\b`).FindAllStringSubmatch(string(text), -1) {
		code, _ := strconv.Atoi(m[2])
		d, err := gemm.ParseDType(m[1])
		if err != nil || int(d) != code {
			t.Errorf("%s is %d in Python, and %s (%d, %v) in Go", m[1], code, d, d, err)
		}
		seen[d] = true
	}
	for _, d := range append(gemm.DTypes(), gemm.OutputTypes()...) {
		if !seen[d] {
			t.Errorf("Python has no name for %s", d)
		}
	}
}
