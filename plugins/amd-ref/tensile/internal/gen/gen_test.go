package main

import (
	"testing"

	"github.com/origami-gemm/origami/sdk/modelgen"
)

// The code and the page are those of the table, and the code uses every number of it.
func TestUpToDate(t *testing.T) {
	t.Chdir("../..")
	if err := modelgen.Stale(&model); err != nil {
		t.Error(err)
	}
}
