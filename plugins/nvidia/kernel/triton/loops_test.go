package triton

import (
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// A family says of each kernel whether ptxas serialises its wgmma instructions, as the assembled loops show: in the
// files that plugins/triton/tools/gather.py wrote, they wait more than once per K step. It cannot be seen of a
// loop with a single instruction. Of 8-bit integers, Triton waits for all instructions once, in front of the copies.
func TestSerial(t *testing.T) {
	for _, test := range []struct {
		family           kernel.Family
		rows             []map[string]string
		wrong            int
		serial, parallel int // at least
	}{
		{Family{}, readLoops(t, "loops.csv.gz"), 1, 300, 2000},
		{Persistent{}, readLoops(t, "persistent-loops.csv"), 0, 25, 60},
	} {
		t.Run(test.family.Name(), func(t *testing.T) {
			counts, wrong := serialAsBuilt(t, test.family, test.rows)
			must.That(t, wrong <= test.wrong, "%d kernels are not as the family says", wrong)
			if counts[true] < test.serial || counts[false] < test.parallel {
				t.Errorf("%d kernels are serial and %d are not", counts[true], counts[false])
			}
		})
	}
}

// serialAsBuilt counts the kernels that a family calls serial and those that it does not, and where the loops differ.
func serialAsBuilt(t *testing.T, f kernel.Family, rows []map[string]string) (counts map[bool]int, wrong int) {
	t.Helper()
	device := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
	counts = map[bool]int{}
	for _, row := range rows {
		number := func(name string) int {
			v, err := strconv.Atoi(row[name])
			must.Need(t, err == nil, "%v %v", name, err)
			return v
		}
		dtype := must.Get(gemm.ParseDType(row["dtype"]))(t)
		p := gemm.New(4096, 4096, 4096)
		p.DType = dtype
		p.SetTrans(number("trans_a") == 1, number("trans_b") == 1)
		c := gemm.Config{
			BlockM: number("bm"), BlockN: number("bn"), BlockK: number("bk"), NumStages: number("stages"),
			NumWarps: number("warps"), SplitK: 1, Kernel: f.Name(),
		}
		waits := number("waits")
		loop := f.Loop(device, kernel.OperandsOf(&p), c)
		must.That(t, loop.WGMMA == (waits > 0), "%s %s: wgmma %v, and the loop waits %d times", p, c, loop.WGMMA, waits)
		if number("matrix") < 2 || waits == 0 {
			continue
		}
		if want := waits > 1 || dtype == gemm.INT8; loop.Serial != want {
			t.Logf("%s %s: serial %v, and the loop waits %d times", p, c, loop.Serial, waits)
			wrong++
		}
		counts[loop.Serial]++
	}
	return counts, wrong
}

// readLoops returns the rows of kernels that were built.
func readLoops(t *testing.T, name string) (rows []map[string]string) {
	t.Helper()
	for _, row := range csvtest.Named(t, "testdata/"+name) {
		if row["status"] == "ok" {
			rows = append(rows, row)
		}
	}
	return rows
}
