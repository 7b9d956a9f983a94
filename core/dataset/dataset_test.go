package dataset

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func gz(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

const (
	describe = `{"arch":"sm90","device":"h200","kernel":"triton","dtype":"bf16","trans_a":false,"trans_b":true,` +
		`"group_m":8,"warm_l2":false,"input":"normal","library":"cublas","software":"x","source":"y"}`
	times = "m,n,k,bm,bn,bk,stages,warps,gm,ms,reps\n" +
		"64,64,100,16,32,64,2,4,8,0.005,20\n" +
		"64,64,100,16,32,64,2,4,1,0.006,20\n" +
		"128,64,128,16,32,64,2,4,8,0.0075,1\n"
	kernels = "bm,bn,bk,stages,warps,gm,even_k,n_regs,n_spills,shared,status,seconds,divisible16\n" +
		"16,32,64,2,4,8,0,40,0,8192,ok,0.1,1\n" +
		"16,32,64,2,4,8,1,38,3,8192,ok,0.1,1\n" +
		"256,256,64,2,4,8,1,,,,OutOfResources,0.1,1\n"
	library = "m,n,k,ms,reps\n64,64,100,0.004,20\n"
)

func files() fstest.MapFS {
	return fstest.MapFS{
		"dataset.json": {Data: []byte(describe)}, "times.csv.gz": {Data: gz(times)},
		"kernels.csv": {Data: []byte(kernels)}, "cublas.csv": {Data: []byte(library)},
		// with the columns in another order
		"times_more.csv": {Data: []byte("reps,ms,m,n,k,bm,bn,bk,stages,warps,gm\n3,1.5,8,8,8,16,16,16,3,8,8\n")},
	}
}

func TestRead(t *testing.T) {
	d := must.Get(Read("here", files()))(t)
	p := gemm.Problem{M: 64, N: 64, K: 100, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorK, DType: gemm.BF16}
	c := gemm.Config{BlockM: 16, BlockN: 32, BlockK: 64, NumStages: 2, NumWarps: 4, GroupM: 8, SplitK: 1,
		Kernel: "triton"}
	r, ok := d.Find(p, c)
	must.That(t, ok && r.Median == 5e-6 && r.Runs == 20 && r.Status == OK, "found %v %+v", ok, r)
	// 64 does not divide 100: the masked kernel. Another group is the same kernel.
	c.GroupM = 1
	m, ok := d.Find(p, c)
	must.That(t, ok && m.Resources.Registers == 40 && m.Resources.SpillBytes == 0 &&
		m.Resources.SharedMemory == 8192, "resources %v %+v", ok, m)
	even := p
	even.M, even.K = 128, 128
	// Whatever group is asked for, a candidate counts at the one of the records.
	m, ok = d.Candidate(even, c)
	must.That(t, ok && m.Config.GroupM == 8 && m.Resources.Registers == 38 &&
		m.Resources.SpillBytes == 12, "resources %v %+v", ok, m)
	// Of two kernels without a time, the compiler's report knows one. It is of multiples of block_k.
	failed := c
	failed.BlockM, failed.BlockN = 256, 256
	m, ok = d.Candidate(even, failed)
	must.That(t, ok && m.Status == NotBuilt, "a kernel that was not built: %v %+v", ok, m)
	m, ok = d.Candidate(p, failed)
	must.That(t, !ok, "a kernel that nobody tried: %+v", m)
	r, ok = d.FindLibrary(p, "cublas")
	must.That(t, ok && r.Median == 4e-6, "the library: %v %+v", ok, r)
	_, ok = d.Find(gemm.New(64, 64, 100), c)
	must.That(t, !ok, "found with another layout and type")
	must.That(t, len(d.Problems()) == 3 && d.Problems()[0] == p && d.GroupM == 8 && d.Device == "h200", "%+v", d)
}

// Whatever is wrong, nothing of the dataset is used, and the error says which file and where in it.
func TestBrokenDatasets(t *testing.T) {
	type change func(fstest.MapFS)
	remove := func(names ...string) change {
		return func(f fstest.MapFS) {
			for _, name := range names {
				delete(f, name)
			}
		}
	}
	set := func(name, text string) change {
		return func(f fstest.MapFS) {
			if f[name].Data = []byte(text); strings.HasSuffix(name, ".gz") {
				f[name].Data = gz(text)
			}
		}
	}
	raw := func(name string, data []byte) change { return func(f fstest.MapFS) { f[name].Data = data } }
	swap := func(text, from, to string) string { return strings.Replace(text, from, to, 1) }
	for _, c := range []struct {
		want   string
		change change
	}{
		{"here/dataset.json: it cannot be read", remove("dataset.json")},
		{`here/dataset.json: not a dataset description`, set("dataset.json", `{"arhc":"sm90"}`)},
		{"here/dataset.json: device is missing", set("dataset.json", `{"arch":"sm90"}`)},
		{`here/dataset.json: untried: `, set("dataset.json", swap(describe, `"group_m"`, `"untried":"16x","group_m"`))},
		{`unknown dtype "fp12"`, set("dataset.json", swap(describe, "bf16", "fp12"))},
		{"here: there are no *.jsonl", remove("times.csv.gz", "times_more.csv")},
		{"here/times.csv.gz: it cannot be read: unexpected EOF", raw("times.csv.gz", gz(times)[:40])},
		{"here/times.csv.gz: it cannot be read: gzip", raw("times.csv.gz", []byte("plain text and no gzip"))},
		{"here/times_more.csv:1: column ms is missing", set("times_more.csv", "reps,m,n,k,bm,bn,bk,stages,warps,gm\n")},
		{`here/times.csv.gz:2:26: ms "NaN" is no time of a kernel`, set("times.csv.gz", swap(times, "0.005", "NaN"))},
		{`here/times.csv.gz:3:26: ms "-1" is no time of a kernel`, set("times.csv.gz", swap(times, "0.006", "-1"))},
		{`here/times.csv.gz:2:26: ms "1e-300" is no time of a kernel`, set("times.csv.gz", swap(times, "0.005", "1e-300"))},
		{`here/times.csv.gz:2:1: m "6.4" is not a whole number`, set("times.csv.gz", swap(times, "64,64", "6.4,64"))},
		{"here/times.csv.gz:2:11: config 9999x32x64", set("times.csv.gz", swap(times, "16,32", "9999,32"))},
		{"is recorded twice", set("times.csv.gz", times+"64,64,100,16,32,64,2,4,8,0.005,20\n")},
		{"here/times.csv.gz: it cannot be read: record on line 5", set("times.csv.gz", times+"64,64\n")},
		{"here/kernels.csv: it cannot be read", remove("kernels.csv")},
		{`here/kernels.csv:2:18: n_regs "many" is not a whole numb`, set("kernels.csv", swap(kernels, "40", "many"))},
		{"here/cublas.csv: it cannot be read", remove("cublas.csv")},
	} {
		f := files()
		c.change(f)
		d, err := Read("here", f)
		must.That(t, d == nil && diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), c.want),
			"%v, %v, want %s", d, err, c.want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(describe, times, kernels, library)
	f.Add("{", "m\n", "\"", "")
	f.Fuzz(func(t *testing.T, describe, times, kernels, library string) {
		d, err := Read("here", fstest.MapFS{
			"dataset.json": {Data: []byte(describe)}, "times.csv": {Data: []byte(times)},
			"kernels.csv": {Data: []byte(kernels)}, "cublas.csv": {Data: []byte(library)},
		})
		must.Need(t, (d == nil) != (err == nil), "%v, %v", d, err)
		if d == nil {
			return
		}
		for _, m := range d.All() {
			must.That(t, m.Median > 0 && m.Problem.Validate() == nil, "%+v", m)
		}
	})
}

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
	d := must.Get(ReadTimes("folder", files, "t.csv", stated, base))(t)
	p := d.Problems()[0]
	if len(d.Problems()) != 1 || p.DType != gemm.BF16 || !p.TransB() || d.Conditions != stated || d.GroupM != 8 ||
		d.Name != "folder/t.csv" {
		t.Errorf("%v of %+v at group %d from %s", d.Problems(), d.Conditions, d.GroupM, d.Name)
	}
	rows := d.Sweep(p)
	must.That(t, len(rows) == 3 && rows[1].Median == 0.25e-3 && rows[2].Config.GroupM == 1, "%+v", rows)

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
		text := must.Get(AppendLine(nil, Conditions{Arch: "sm90", Device: device, Kernel: "mma", Input: "normal",
			Executor: "x", ExecutorVersion: "1"}, &m))(t)
		return string(text)
	}
	files := fstest.MapFS{"a.jsonl": {Data: []byte(line("h200", 16) + line("h200", 32))},
		"b.jsonl": {Data: []byte(line("h200", 16) + line("h100", 32))}}
	d, err := ReadTimes(".", files, "a.jsonl", Conditions{Kernel: "another"}, gemm.Problem{})
	must.Need(t, err == nil && d.Device == "h200" && d.Kernel == "mma" && d.GroupM == 4 && d.Len() == 2,
		"%+v, %v", d, err)
	_, err = ReadTimes(".", files, "b.jsonl", Conditions{}, gemm.Problem{})
	must.That(t, diag.KindOf(err) == diag.Input &&
		strings.HasPrefix(err.Error(), `b.jsonl:2: device is "h100" and was "h200" in the first line; `), "%v", err)
}

// A problem that needs more than its sizes is another key, and other lines stay what they were.
func TestLineOfAWholeProblem(t *testing.T) {
	m := full()
	d := New("d", Conditions{Arch: "sm90", Device: "h200", Kernel: m.Config.Kernel, Input: "normal"})
	m.Phase, m.Block, m.Arms, m.Null = Sweep, 0, 0, false
	plain, err := AppendLine(nil, d.Conditions, &m)
	must.Need(t, err == nil && bytes.Contains(plain, []byte(`"dtype":"`+m.Problem.DType.String()+`"},`)),
		"%s, %v", plain, err)
	whole := m
	whole.Problem.Out, whole.Problem.LDA, whole.Problem.AlignB = gemm.FP32, m.Problem.K+5, 4
	whole.Problem.LDC = m.Problem.N // the default
	line, err := AppendLine(nil, d.Conditions, &whole)
	want := fmt.Sprintf(`,"out_dtype":"fp32","lda":%d,"align_b":4},`, m.Problem.K+5)
	must.Need(t, err == nil && bytes.Contains(line, []byte(want)), "%s, %v", line, err)
	_, back, err := ParseLine(bytes.TrimSuffix(line, []byte("\n")))
	must.Need(t, err == nil && back.Problem == whole.Problem.Canonical() && back.Problem != whole.Problem,
		"%+v, %v", back.Problem, err)
	for _, one := range []Measurement{m, whole} {
		must.Do(t, d.Add(one))
	}
	must.Fail(t, d.Add(back), "is recorded twice")
	for _, p := range []gemm.Problem{m.Problem, back.Problem} {
		found, ok := d.Find(p, m.Config)
		must.That(t, ok && found.Problem == p, "%s is not found", p)
	}
	must.Equal(t, len(d.Problems()), 2)
}
