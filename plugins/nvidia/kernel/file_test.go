package kernel

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
)

// compiledColumns is the header of a file of compiled kernels.
const compiledColumns = "bm,bn,bk,stages,warps,even_k,n_regs,n_spills,shared,status"

// A file of compiled kernels is refused with a one-line error, or every kernel in it is possible.
func FuzzCompiled(f *testing.F) {
	f.Add([]byte(compiledColumns + "\n128,256,64,3,8,1,255,12,196608,ok\n64,64,64,2,4,0,,,,OutOfResources\n"))
	f.Add(data.TritonH200Compiled[:2000])
	f.Add([]byte("target,trans_a," + compiledColumns + "\n90,0,1,1,1,1,1,1,1,1,1,ok\n89,0,1,1,1,1,1,1,1,1,1,ok\n"))
	f.Add([]byte("bm,bn,bk\n1,2\n"))
	f.Add([]byte(compiledColumns + "\n-1,99999999999999999999,\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := ReadTable(data, gpu.SM90)
		if err != nil {
			must.That(t, table == nil && diag.KindOf(err) == diag.Input && !strings.ContainsAny(err.Error(), "\r\n"),
				"%d kernels, %q", len(table), err)
			return
		}
		for v := range all(table, resourceNumbers) {
			k := resourcesOf(v)
			must.That(t, min(k.Registers, k.SpillBytes) >= 0 && k.SharedMemory >= 0, "%+v", k)
		}
	})
}

// A characterization is refused, or it has a positive time for every kernel.
func FuzzTimings(f *testing.F) {
	f.Add([]byte(strings.Join(timingsTable.Columns, ",") + "\n128,256,64,3,8,0,1,24,60,28,71,28,71\n"))
	f.Add(data.TritonH200Timings[:2000])
	f.Add([]byte("bm,bn,bk\n1,2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := ReadTimings(data)
		must.That(t, (err == nil) == (len(table) > 0), "%d kernels, %v", len(table), err)
		for k := range table.All() {
			for _, times := range [][2]float64{k.One, k.Chip, k.Full} {
				must.That(t, min(times[0], times[1]) >= 0 && k.CTAs > 0, "%+v", k)
			}
		}
	})
}
