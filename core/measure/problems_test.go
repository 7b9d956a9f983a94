package measure

import (
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
)

func TestTritonBLASProblems(t *testing.T) {
	seen := map[gemm.Problem]bool{}
	for _, p := range TritonBLASProblems() {
		if err := p.Validate(); err != nil || seen[p] {
			t.Errorf("%s: %v", p, err)
		}
		seen[p] = true
	}
	if len(seen) != 23 {
		t.Errorf("%d problems", len(seen))
	}
}
