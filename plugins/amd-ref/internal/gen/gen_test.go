package main

import (
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/modelgen"
)

// The code is made from the tables.
func TestUpToDate(t *testing.T) {
	for i, folder := range []string{"tensile", "amd-origami", "triton"} {
		t.Chdir("../../" + folder)
		err := modelgen.Stale(models[i])
		must.That(t, err == nil, "%v", err)
		t.Chdir("../internal/gen")
	}
}
