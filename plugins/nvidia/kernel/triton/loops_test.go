package triton

import (
	"compress/gzip"
	"encoding/csv"
	"os"
	"strconv"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gputest"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// The family says of each kernel whether ptxas serialises its wgmma instructions, as the assembled loops show: in
// loops.csv.gz, which plugins/triton/tools/gather_loops.py wrote, they wait more than once per K step. It cannot be
// seen of a loop with a single instruction. Of 8-bit integers, Triton waits for all instructions once, in front of the
// copies.
func TestSerial(t *testing.T) {
	device := gputest.Device(t, gpu.SM90, "sm90-h200", nil)
	counts, wrong := map[bool]int{}, 0
	for _, row := range readLoops(t) {
		number := func(name string) int {
			v, err := strconv.Atoi(row[name])
			if err != nil {
				t.Fatal(name, err)
			}
			return v
		}
		dtype, err := gemm.ParseDType(row["dtype"])
		if err != nil {
			t.Fatal(err)
		}
		p := gemm.New(4096, 4096, 4096)
		p.DType = dtype
		p.SetTrans(number("trans_a") == 1, number("trans_b") == 1)
		c := gemm.Config{
			BlockM: number("bm"), BlockN: number("bn"), BlockK: number("bk"), NumStages: number("stages"),
			NumWarps: number("warps"), SplitK: 1, Kernel: "triton",
		}
		waits := number("waits")
		loop := Family{}.Loop(device, kernel.OperandsOf(&p), c)
		if loop.WGMMA != (waits > 0) {
			t.Errorf("%s %s: wgmma %v, and the loop waits %d times", p, c, loop.WGMMA, waits)
		}
		if number("matrix") < 2 || waits == 0 {
			continue
		}
		if want := waits > 1 || dtype == gemm.INT8; loop.Serial != want {
			t.Logf("%s %s: serial %v, and the loop waits %d times", p, c, loop.Serial, waits)
			wrong++
		}
		counts[loop.Serial]++
	}
	if wrong > 1 {
		t.Errorf("%d kernels are not as the family says", wrong)
	}
	if counts[true] < 300 || counts[false] < 2000 {
		t.Errorf("%d kernels are serial and %d are not", counts[true], counts[false])
	}
}

// readLoops returns the rows of kernels that were built.
func readLoops(t *testing.T) (rows []map[string]string) {
	t.Helper()
	file, err := os.Open("testdata/loops.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(plain).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, cells := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = cells[i]
		}
		if row["status"] == "ok" {
			rows = append(rows, row)
		}
	}
	return rows
}
