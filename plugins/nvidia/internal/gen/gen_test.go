package main

import (
	"testing"

	"github.com/origami-gemm/origami/sdk/modelgen"
)

// The code is made from the tables.
func TestUpToDate(t *testing.T) {
	for i, folder := range []string{"pipelined", "sgemm", "tritonblas", "fusedmoe", "pin"} {
		t.Chdir("../../" + folder)
		if err := modelgen.Stale(models[i]); err != nil {
			t.Error(err)
		}
		t.Chdir("../internal/gen")
	}
}
