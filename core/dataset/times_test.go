package dataset

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

const timesHeader = "m,n,k,bm,bn,bk,stages,warps,gm,ms,reps\n"

// A file of times by itself: what it does not say comes from the caller.
func TestReadTimes(t *testing.T) {
	base := gemm.New(0, 0, 0)
	base.DType = gemm.BF16
	base.SetTrans(false, true)
	stated := Conditions{Arch: "sm90", Device: "h200", Kernel: "triton", Input: "unknown"}
	files := fstest.MapFS{"t.csv": {Data: []byte(timesHeader +
		"64,64,64,16,32,64,2,4,8,0.5,20\n" +
		"64,64,64,32,32,64,2,4,8,0.25,1\n" +
		"64,64,64,32,32,64,2,4,1,0.125,20\n")}}
	d, err := ReadTimes("folder", files, "t.csv", stated, base)
	if err != nil {
		t.Fatal(err)
	}
	p := d.Problems()[0]
	if len(d.Problems()) != 1 || p.DType != gemm.BF16 || !p.TransB() || d.Conditions != stated || d.GroupM != 8 ||
		d.Name != "folder/t.csv" {
		t.Errorf("%v of %+v at group %d from %s", d.Problems(), d.Conditions, d.GroupM, d.Name)
	}
	if rows := d.Sweep(p); len(rows) != 3 || rows[1].Median != 0.25e-3 || rows[2].Config.GroupM != 1 {
		t.Errorf("%+v", rows)
	}

	// No group that most have: each its own.
	files["own.csv"] = &fstest.MapFile{Data: []byte(timesHeader +
		"64,64,64,16,32,64,2,4,8,0.5,20\n" +
		"64,64,64,32,32,64,2,4,1,0.25,1\n")}
	if d, err := ReadTimes(".", files, "own.csv", stated, base); err != nil || d.GroupM != 0 {
		t.Errorf("group %d, %v", d.GroupM, err)
	}
}

// Lines of JSON say everything, and all the same.
func TestReadTimesOfLines(t *testing.T) {
	line := func(device string, block int) string {
		m := Measurement{Problem: gemm.New(64, 64, 64), Config: gemm.Config{BlockM: block, BlockN: 16, BlockK: 16,
			NumWarps: 4, NumStages: 2, SplitK: 1, GroupM: 4, Kernel: "mma"},
			Phase: Sweep, Status: Failed, Detail: "no"}
		text, err := AppendLine(nil, Conditions{Arch: "sm90", Device: device, Kernel: "mma", Input: "normal",
			Executor: "x", ExecutorVersion: "1"}, &m)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	files := fstest.MapFS{"a.jsonl": {Data: []byte(line("h200", 16) + line("h200", 32))},
		"b.jsonl": {Data: []byte(line("h200", 16) + line("h100", 32))}}
	d, err := ReadTimes(".", files, "a.jsonl", Conditions{Kernel: "another"}, gemm.Problem{})
	if err != nil || d.Device != "h200" || d.Kernel != "mma" || d.GroupM != 4 || d.Len() != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	if _, err := ReadTimes(".", files, "b.jsonl", Conditions{}, gemm.Problem{}); diag.KindOf(err) != diag.Input ||
		!strings.HasPrefix(err.Error(), `b.jsonl:2: device is "h100" and was "h200" in the first line; `) {
		t.Errorf("%v", err)
	}
}
