package dataset

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

func gz(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

const (
	describe = `{"arch":"sm90","device":"h200","kernel":"triton","dtype":"bf16","trans_a":false,"trans_b":true,"group_m":8,"warm_l2":false,"input":"normal","library":"cublas","software":"x","source":"y"}`
	times    = "m,n,k,bm,bn,bk,stages,warps,gm,ms,reps\n64,64,100,16,32,64,2,4,8,0.005,20\n64,64,100,16,32,64,2,4,1,0.006,20\n128,64,128,16,32,64,2,4,8,0.0075,1\n"
	kernels  = "bm,bn,bk,stages,warps,gm,even_k,n_regs,n_spills,shared,status,seconds,divisible16\n16,32,64,2,4,8,0,40,0,8192,ok,0.1,1\n16,32,64,2,4,8,1,38,3,8192,ok,0.1,1\n256,256,64,2,4,8,1,,,,OutOfResources,0.1,1\n"
	library  = "m,n,k,ms,reps\n64,64,100,0.004,20\n"
)

func files() fstest.MapFS {
	return fstest.MapFS{
		"dataset.json": {Data: []byte(describe)}, "times.csv.gz": {Data: gz(times)}, "kernels.csv": {Data: []byte(kernels)}, "cublas.csv": {Data: []byte(library)},
		"times_more.csv": {Data: []byte("reps,ms,m,n,k,bm,bn,bk,stages,warps,gm\n3,1.5,8,8,8,16,16,16,3,8,8\n")}, // columns in another order
	}
}

func TestRead(t *testing.T) {
	d, err := Read("here", files())
	if err != nil {
		t.Fatal(err)
	}
	p := gemm.Problem{M: 64, N: 64, K: 100, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorK, DType: gemm.BF16}
	c := gemm.Config{BlockM: 16, BlockN: 32, BlockK: 64, NumStages: 2, NumWarps: 4, GroupM: 8, SplitK: 1, Kernel: "triton"}
	r, ok := d.Find(p, c)
	if !ok || r.Median != 5e-6 || r.Runs != 20 || r.Status != OK {
		t.Errorf("found %v %+v", ok, r)
	}
	// 64 does not divide 100: the masked kernel. Another group is the same kernel.
	c.GroupM = 1
	if m, ok := d.Find(p, c); !ok || m.Resources.Registers != 40 || m.Resources.SpillBytes != 0 || m.Resources.SharedMemory != 8192 {
		t.Errorf("resources %v %+v", ok, m)
	}
	even := p
	even.M, even.K = 128, 128
	// Whatever group is asked for, a candidate counts at the one of the records.
	if m, ok := d.Candidate(even, c); !ok || m.Config.GroupM != 8 || m.Resources.Registers != 38 || m.Resources.SpillBytes != 12 {
		t.Errorf("resources %v %+v", ok, m)
	}
	if r, ok := d.FindLibrary(p, "cublas"); !ok || r.Median != 4e-6 {
		t.Errorf("the library: %v %+v", ok, r)
	}
	if _, ok := d.Find(gemm.New(64, 64, 100), c); ok {
		t.Error("found with another layout and type")
	}
	if len(d.Problems()) != 3 || d.Problems()[0] != p || d.GroupM != 8 || d.Device != "h200" {
		t.Errorf("%+v", d)
	}
}

// Whatever is wrong, nothing of the dataset is used, and the error says which file and where in it.
func TestBrokenDatasets(t *testing.T) {
	for want, change := range map[string]func(fstest.MapFS){
		"here/dataset.json: it cannot be read":                     func(f fstest.MapFS) { delete(f, "dataset.json") },
		`here/dataset.json: not a dataset description`:             func(f fstest.MapFS) { f["dataset.json"].Data = []byte(`{"arhc":"sm90"}`) },
		"here/dataset.json: device is missing":                     func(f fstest.MapFS) { f["dataset.json"].Data = []byte(`{"arch":"sm90"}`) },
		`unknown dtype "fp12"`:                                     func(f fstest.MapFS) { f["dataset.json"].Data = []byte(strings.Replace(describe, "bf16", "fp12", 1)) },
		"here: there are no *.jsonl":                               func(f fstest.MapFS) { delete(f, "times.csv.gz"); delete(f, "times_more.csv") },
		"here/times.csv.gz: it cannot be read: unexpected EOF":     func(f fstest.MapFS) { f["times.csv.gz"].Data = f["times.csv.gz"].Data[:40] },
		"here/times.csv.gz: it cannot be read: gzip":               func(f fstest.MapFS) { f["times.csv.gz"].Data = []byte("plain text and no gzip") },
		"here/times_more.csv:1: column ms is missing":              func(f fstest.MapFS) { f["times_more.csv"].Data = []byte("reps,m,n,k,bm,bn,bk,stages,warps,gm\n") },
		`here/times.csv.gz:2:26: ms "NaN" is not a time`:           func(f fstest.MapFS) { f["times.csv.gz"].Data = gz(strings.Replace(times, "0.005", "NaN", 1)) },
		`here/times.csv.gz:3:26: ms "-1" is not a time`:            func(f fstest.MapFS) { f["times.csv.gz"].Data = gz(strings.Replace(times, "0.006", "-1", 1)) },
		`here/times.csv.gz:2:1: m "6.4" is not a whole number`:     func(f fstest.MapFS) { f["times.csv.gz"].Data = gz(strings.Replace(times, "64,64", "6.4,64", 1)) },
		"here/times.csv.gz:2:11: config 9999x32x64":                func(f fstest.MapFS) { f["times.csv.gz"].Data = gz(strings.Replace(times, "16,32", "9999,32", 1)) },
		"is recorded twice":                                        func(f fstest.MapFS) { f["times.csv.gz"].Data = gz(times + "64,64,100,16,32,64,2,4,8,0.005,20\n") },
		"here/times.csv.gz: it cannot be read: record on line 5":   func(f fstest.MapFS) { f["times.csv.gz"].Data = gz(times + "64,64\n") },
		"here/kernels.csv: it cannot be read":                      func(f fstest.MapFS) { delete(f, "kernels.csv") },
		`here/kernels.csv:2:18: n_regs "many" is not a whole numb`: func(f fstest.MapFS) { f["kernels.csv"].Data = []byte(strings.Replace(kernels, "40", "many", 1)) },
		"here/cublas.csv: it cannot be read":                       func(f fstest.MapFS) { delete(f, "cublas.csv") },
	} {
		f := files()
		change(f)
		d, err := Read("here", f)
		if d != nil || diag.KindOf(err) != diag.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %s", d, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(describe, times, kernels, library)
	f.Add("{", "m\n", "\"", "")
	f.Fuzz(func(t *testing.T, describe, times, kernels, library string) {
		d, err := Read("here", fstest.MapFS{
			"dataset.json": {Data: []byte(describe)}, "times.csv": {Data: []byte(times)}, "kernels.csv": {Data: []byte(kernels)}, "cublas.csv": {Data: []byte(library)},
		})
		if (d == nil) == (err == nil) {
			t.Fatalf("%v, %v", d, err)
		}
		if d == nil {
			return
		}
		for _, m := range d.measurements {
			if !(m.Median > 0) || m.Problem.Validate() != nil {
				t.Errorf("%+v", m)
			}
		}
	})
}
