package serving_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/serving"
)

// On AMD the servers' kernels of fp8 have two stages, without a table as in tables that are silent, and those for one
// matrix were tuned with 16x16 instructions.
func TestKernelsOnAMD(t *testing.T) {
	amd := &arch.Description{Vendor: "AMD"}
	for _, k := range []serving.Kernel{{Server: serving.SGLang, Experts: 64, DType: gemm.FP8},
		{Experts: 64, DType: gemm.FP8, Blocks: true}, {DType: gemm.FP8, Blocks: true}} {
		c := k.Default(amd, 4096)
		must.That(t, c.NumStages == 2 && c.BlockM >= 64, "%+v: %v", k, &c)
	}
	c := (&serving.Kernel{Server: serving.SGLang, Experts: 64, DType: gemm.FP8}).Default(amd, 4096)
	must.Equal(t, c.BlockN, 256) // and not the kernel for little shared memory
	const name = "N=1536,K=7168,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8,block_shape=[128,128].json"
	for rows, c := range serving.Shipped(serving.VLLM, name) {
		must.That(t, c.NumStages == 2 && c.Axes.String() == "matrix_instr_nonkdim=16", "%d rows: %v", rows, &c)
	}
	must.That(t, len(serving.Shipped(serving.VLLM, name)) > 10, "%s is not shipped", name)
}
