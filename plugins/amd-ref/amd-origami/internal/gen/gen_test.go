package main

import (
	"testing"

	"github.com/origami-gemm/origami/sdk/modelgen"
)

// The code is made from the table.
func TestUpToDate(t *testing.T) {
	t.Chdir("../..")
	if err := modelgen.Stale(&model); err != nil {
		t.Error(err)
	}
}
