package mma

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/internal/gentest"
	"github.com/origami-gemm/origami/plugins/nvidia/records"
)

// table is the file of records that says what the assembler makes of every kernel of the family: fp16, A and B row-major,
// aligned, no splits.
const table = "compiled/mma.csv"

// TestAssembledTable assembles some of the kernels anew and compares them with the table. With -update it assembles all of
// them and writes the table, which takes many minutes: go test -run AssembledTable -timeout 0 -update ./plugins/nvidia/gemmgen/mma
func TestAssembledTable(t *testing.T) {
	bin := gentest.Ptxas(t)
	shipped, err := records.Compiled.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	fmt.Fprintln(&written, "target,bm,bn,bk,stages,warps,gm,even_k,n_regs,n_spills,shared,status")
	for _, cc := range []int{80, 86, 89, 90} {
		i := 0
		for c := range feasible {
			i++
			if !*update && i%50 != 0 {
				continue
			}
			s := Spec{DType: gemm.FP16, Out: gemm.FP16, AMajor: gemm.MajorK, BMajor: gemm.MajorN, AlignA: 16, AlignB: 16, AlignC: 16, Config: c}
			r, reason, _ := s.Check(limits(gentest.SharedPerCTA[sm(cc)]))
			if reason != "" {
				continue
			}
			k, err := s.Emit(sm(cc))
			if err != nil {
				t.Fatal(err)
			}
			registers, local, err := gentest.Assemble(t, bin, k.Text, sm(cc))
			if err != nil {
				t.Fatal(err)
			}
			row := fmt.Sprintf("%d,%d,%d,%d,%d,%d,1,1,%d,%d,%d,ok\n", cc, c.BlockM, c.BlockN, c.BlockK, c.NumStages, c.NumWarps, registers, (local+3)/4, int64(r.SharedMemory))
			if *update {
				written.WriteString(row)
			} else if !bytes.Contains(shipped, []byte("\n"+row)) {
				t.Errorf("not in records/%s: %sThe generator or the assembler has changed: rewrite the table with -update", table, row)
			}
		}
	}
	if *update {
		if err := os.WriteFile("../../records/"+table, written.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("wrote records/%s: look at the difference, then run again without -update", table)
	}
}
