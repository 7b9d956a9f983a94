package main

import (
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

// The code and the page are made from the table, and the code uses every number of it.
func TestUpToDate(t *testing.T) {
	t.Chdir("../..")
	err := modelgen.Stale(&model)
	must.That(t, err == nil, "%v", err)
}
