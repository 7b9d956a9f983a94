package nvidia_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

var update = flag.Bool("update", false, "pack the tables of kernels anew")

// The packed tables of kernels in the program say what their text says.
func TestPackedKernels(t *testing.T) {
	k := data.TritonH200
	compiled := must.Get(kernel.ReadTable(data.TritonH200Compiled, gpu.SM90))(t)
	timings := must.Get(kernel.ReadTimings(data.TritonH200Timings))(t)
	for name, tables := range map[string][2][]byte{
		"data/packed/h200-triton.compiled": {compiled, k.PackedCompiled},
		"data/packed/h200-triton.timings":  {timings, k.PackedTimings},
	} {
		if *update {
			must.Do(t, os.WriteFile(name, tables[0], 0o644))
		} else if !bytes.Equal(tables[0], tables[1]) {
			t.Errorf("%s is not what the text says: run with -update", name)
		}
	}
}
