package mma

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu/target"
)

// TestAssemble assembles kernels of every kind for every target and compares registers and spills with what Check
// promises. It needs no GPU. Of the types' kernels a sixth is assembled, every configuration and every layout among
// them, and all with ORIGAMI_TEST_ALL=1.
func TestAssemble(t *testing.T) {
	bin := gentest.Ptxas(t)
	for c, config := range []string{
		"16x16x64,warps=4,stages=4", "32x64x32,warps=4,stages=3", "64x64x64,warps=4,stages=2,split=2",
		"128x128x32,warps=4,stages=4", "128x128x64,warps=4,stages=2", "128x256x32,warps=8,stages=3",
		"256x128x64,warps=8,stages=2", "128x256x64,warps=8,stages=3", "64x16x16,warps=8,stages=6",
		"128x128x64,warps=4,stages=2,warp_count_m=4", "128x128x64,warps=8,stages=3,warp_count_m=1",
		"64x64x64,warps=4,stages=4,warp_count_k=2", "64x128x64,warps=8,stages=4,warp_count_m=2,warp_count_k=4",
	} {
		for i, align := range []int{16, 16, 16, 16, 8, 4} {
			s := spec(t, config, []string{"kn", "kk", "mn", "mk"}[i%4], gemm.FP16, gemm.FP16, align, align, align)
			if i%2 == 1 {
				s.DType, s.Out = gemm.BF16, gemm.FP32
			}
			if i == 4 {
				s.Epilogue = gemm.Epilogue{Bias: true, Activation: gemm.GELU}
			}
			for to, shared := range gentest.SharedPerCTA {
				if i != c%2 && to != sm(90) { // the layouts and widths differ little between targets
					continue
				}
				r, reason, _ := s.Check(limits(shared))
				if reason == arch.ReasonSharedMemory {
					continue
				}
				if reason != "" {
					t.Fatalf("%s: %s", s.name(), reason)
				}
				assembled(t, bin, s, to, r.Accumulators, 0)
			}
		}
	}
	for _, d := range []gemm.DType{gemm.FP16, gemm.FP8, gemm.FP8E5M2, gemm.INT8, gemm.TF32, gemm.FP32} {
		assembleType(t, bin, d)
	}
	t.Run("peak", func(t *testing.T) {
		k := must.Get(EmitPeak(gemm.FP16, sm(80)))(t)
		registers, spills, err := gentest.Assemble(t, bin, k.Text, sm(80))
		must.That(t, err == nil && spills <= 0 &&
			registers >= 4*peakTilesM*peakTilesN, "%d registers, %d bytes of spills: %v", registers, spills, err)
	})
}

// assembleType assembles kernels of an element type in the layouts that it has.
func assembleType(t *testing.T, bin string, d gemm.DType) {
	out, majors, to := gemm.FP32, []string{"kn", "kk", "mn", "mk"}, sm(80)
	if d.Bytes() == 1 {
		majors = majors[1:2]
	}
	switch d {
	case gemm.INT8:
		out = gemm.INT32
	case gemm.FP8:
		to = sm(90) // fp8 as fp16
	case gemm.FP8E5M2:
		to = sm(89)
	default:
	}
	for c, config := range []string{
		"16x16x64,warps=4,stages=4", "32x64x32,warps=4,stages=3", "64x64x64,warps=4,stages=2,split=2",
		"128x128x32,warps=4,stages=4", "128x128x64,warps=8,stages=3", "128x256x32,warps=8,stages=2",
		"256x128x64,warps=8,stages=2", "64x16x32,warps=8,stages=6", "128x64x128,warps=4,stages=2",
	} {
		for i := range len(majors) + 3 { // each layout, one without alignment, one with ragged rows, one with a nest
			if (i+c)%6 != 0 && os.Getenv("ORIGAMI_TEST_ALL") != "1" {
				continue
			}
			align := 16
			if i == len(majors) || i == len(majors)+2 {
				align = d.Bytes()
			}
			s := spec(t, config, majors[i%len(majors)], d, out, align, align, max(align, out.Bytes()))
			switch i - len(majors) {
			case 1:
				s.RaggedA, s.RaggedB, s.RaggedC = true, true, true
			case 2:
				s.Nested, s.AlignC = true, out.Bytes()
			}
			room := limits(gentest.SharedPerCTA[sm(90)])
			room.Target = to
			r, reason, detail := s.Check(room)
			if reason == arch.ReasonSharedMemory {
				continue
			}
			if reason != "" {
				t.Logf("%s: %s %s", s.name(), reason, detail)
				continue
			}
			allowed := 0
			if s.RaggedA {
				allowed = 16 // a few words, in the largest kernels, for what is left of K
			}
			assembled(t, bin, s, to, r.Accumulators, allowed)
		}
	}
}

// assembled assembles a kernel, which has registers for its sums and may spill so many bytes.
func assembled(t *testing.T, bin string, s Spec, to target.Target, accumulators, allowed int) {
	t.Run(fmt.Sprintf("%s/%s", s.name(), to), func(t *testing.T) {
		t.Parallel()
		k := must.Get(s.Emit(to))(t)
		registers, spills := must.Two(gentest.Assemble(t, bin, k.Text, to))(t)
		must.That(t, spills <= allowed && registers >= accumulators && registers*k.Threads <= 1<<16,
			"%d registers, %d bytes of stack and spills; %d accumulators", registers, spills, accumulators)
	})
}

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
