package mma

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// table has the registers and spills of every kernel of the family, as the assembler reports them: fp16, A and B
// row-major, aligned, no splits.
const table = "compiled/mma.csv"

// TestAssembledTable assembles some of the kernels again and compares them with the table. With -update it assembles
// all of them and writes the table, which takes many minutes:
//
//	go test -run AssembledTable -timeout 0 -update ./plugins/nvidia/gemmgen/mma
func TestAssembledTable(t *testing.T) {
	bin := gentest.Ptxas(t)
	shipped := must.Get(data.Compiled.ReadFile(table))(t)
	var written bytes.Buffer
	fmt.Fprintln(&written, "target,bm,bn,bk,stages,warps,gm,even_k,n_regs,n_spills,shared,status")
	for _, cc := range []int{80, 86, 89, 90} {
		i := 0
		for c := range feasible {
			i++
			if !*update && i%50 != 0 {
				continue
			}
			s := aligned(c)
			r, reason, _ := s.Check(limits(gentest.SharedPerCTA[sm(cc)]))
			if reason != "" {
				continue
			}
			k := must.Get(s.Emit(sm(cc)))(t)
			registers, local := must.Two(gentest.Assemble(t, bin, k.Text, sm(cc)))(t)
			row := fmt.Sprintf("%d,%d,%d,%d,%d,%d,1,1,%d,%d,%d,ok\n", cc, c.BlockM, c.BlockN, c.BlockK, c.NumStages,
				c.NumWarps, registers, (local+3)/4, int64(r.SharedMemory))
			if *update {
				written.WriteString(row)
			} else if !bytes.Contains(shipped, []byte("\n"+row)) {
				t.Errorf("not in data/%s: %sThe generator or assembler changed: write the table with -update",
					table, row)
			}
		}
	}
	if *update {
		must.Do(t, os.WriteFile("../../data/"+table, written.Bytes(), 0o644))
		t.Fatalf("wrote data/%s: look at the difference, then run again without -update", table)
	}
}
