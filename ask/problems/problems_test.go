package problems

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

var base = gemm.New(0, 0, 0)

// readCSV reads a whole problems file. bad are the rows that cannot be read.
func readCSV(name string, r io.Reader, base gemm.Problem) (good []Problem, bad []error, err error) {
	file, err := Open(name, r, 0, base)
	if err != nil {
		return nil, nil, err
	}
	for {
		p, why, err := file.next(false)
		switch {
		case errors.Is(err, io.EOF):
			return good, bad, nil
		case err != nil:
			return good, bad, err
		case why != nil:
			bad = append(bad, why)
		default:
			good = append(good, p)
		}
	}
}

func TestReadCSV(t *testing.T) {
	const file = "\ufeff# shapes of a layer\r\n" +
		"k,m,n,trans_b,dtype,batch,trans_a\r\n" +
		"3,1,2,1,bf16,4,0\r\n" +
		" 30 ,10,20,,,,\n" +
		"\n" +
		"300,100,200,false,fp8,7,true\n"
	good, bad, err := readCSV("p.csv", strings.NewReader(file), base)
	must.Need(t, err == nil && len(bad) == 0, "%v %v", err, bad)
	want := []Problem{
		{gemm.Problem{M: 1, N: 2, K: 3, Batch: 4, AMajor: gemm.MajorK, BMajor: gemm.MajorK,
			DType: gemm.BF16}, "p.csv:3", nil, 0},
		{gemm.Problem{M: 10, N: 20, K: 30, Batch: 1, AMajor: gemm.MajorK, BMajor: gemm.MajorN,
			DType: gemm.FP16}, "p.csv:4", nil, 0},
		{gemm.Problem{M: 100, N: 200, K: 300, Batch: 7, AMajor: gemm.MajorM, BMajor: gemm.MajorN, DType: gemm.FP8},
			"p.csv:6", nil, 0},
	}
	must.Equal(t, cmp.Diff(want, good), "")
}

// A command that passes labels through gets them in the order of the file. What looks like a column of the problem is
// still taken for a mistake, and so is a file without a header.
func TestReadCSVLabels(t *testing.T) {
	file := must.Get(Open("p.csv", strings.NewReader("layer,m,n,id,k\nqkv,1,2,7,3\n"), 0, base))(t)
	p, bad, err := file.next(false)
	must.That(t, err == nil && bad == nil && p.M == 1 && p.K == 3 && slices.Equal(p.Labels, []string{"qkv", "7"}),
		"got %+v, %v, %v", p, bad, err)
	for _, header := range []string{"m,n,k,btach", "1,2,3", "m,n,k,"} {
		must.Fail(t, must.Err(Open("p.csv", strings.NewReader(header+"\n1,2,3,4\n"), 0, base)), "unknown column")
	}
}

// The same problems in every form, in any case, with whole floats, and with labels.
func TestProblemForms(t *testing.T) {
	const second = `{"m":4,"n":5,"k":6,"batch":7,"dtype":"bf16"}`
	want := []string{"1000x2x3 fp16 A:MxK B:KxN q=qkv", "4x5x6 bf16, batch 7"}
	for name, text := range map[string]string{
		"csv":      "M,N,K,Name,batch,DType\n1e3,2.0,3,qkv,,\n4,5,6,,7,BF16\n",
		"tsv":      "\n# a comment\nname\tm\tn\tk\tbatch\tdtype\nqkv\t1000\t2\t3\t\t\n\t4\t5\t6\t7.0\tbfloat16\n",
		"array":    `[{"m":1000,"n":2,"k":3,"name":"qkv"}, {"m":4,"n":"5","k":6.0,"batch":7,"dtype":"bf16","name":null}]`,
		"lines":    `{"M":1e3,"N":2,"K":3,"name":"qkv"}` + "\n" + second + "\n",
		"indented": "{\n \"m\": 1000,\n \"n\": 2,\n \"k\": 3,\n \"name\": \"qkv\"\n}\n" + second,
		"origami":  `{"problem":{"m":1000,"n":2,"k":3},"labels":{"name":"qkv"}} {"problem":` + second + `}`,
	} {
		good, bad, err := readCSV("p", strings.NewReader(text), base)
		must.Need(t, err == nil && len(bad) == 0 && len(good) == 2, "%v %v %v %v", name, err, bad, good)
		must.That(t, good[0].Problem == gemm.New(1000, 2, 3) && slices.Equal(good[0].Labels, []string{"qkv"}),
			"%s: %+v, want %s", name, good[0], want[0])
		other := gemm.New(4, 5, 6)
		other.Batch, other.DType = 7, gemm.BF16
		must.That(t, good[1].Problem == other && slices.Equal(good[1].Labels, []string{""}),
			"%s: %+v, want %s", name, good[1], want[1])
	}
}

// A row with lists and ranges stands for all combinations, the last size changing first.
func TestProblemRanges(t *testing.T) {
	file, ok, err := Inline("--problems", "m=16:16:16:100,n=7,k=64,128", base)
	must.Need(t, err == nil && ok, "%v %v", ok, err)
	fromCSV := must.Get(Open("p.csv", strings.NewReader("m,n,k\n16:16:16:100,7,\"64,128\"\n"), 0, base))(t)
	fromJSON := must.Get(Open("p.json", strings.NewReader(`{"m":"16:16:16:100","n":7,"k":[64,128]}`), 0, base))(t)
	for _, m := range []int{16, 32, 64} {
		for _, k := range []int{64, 128} {
			for _, f := range []*File{file, fromCSV, fromJSON} {
				p, bad, err := f.next(false)
				must.That(t, bad == nil && err == nil && p.Problem == gemm.New(m, 7, k),
					"%s: %v, %v, %v, want %dx7x%d", f.name, p, bad, err, m, k)
			}
		}
	}
	_, _, err = file.next(false)
	must.That(t, errors.Is(err, io.EOF), "%v", err)
	for _, name := range []string{"shapes.csv", "-", "m,n,k", "x=1,m=2", "dir=a/p.csv"} {
		_, ok, _ := Inline("--problems", name, base)
		must.That(t, !ok, "%s is taken for ranges", name)
	}
}

// An object that cannot be read is blamed on its place, and those behind it on later lines are still answered.
func TestReadJSONBadRows(t *testing.T) {
	const file = `{"m": 1, "n": 2, "k": 3, "name": "a"}
{"m": 1, "n": 2.5, "k": 3}
{"m": 1, "n": 2,
7
{"m": 1, "k": 3}
{"m": 1, "M": 1, "n": 2, "k": 3}
} {"m": 7, "n": 8, "k": 9}
{"m": 4, "n": 5, "k": 6, "name": {"of": ["b", 1]}}
`
	good, bad := must.Two(readCSV("p.csv", strings.NewReader(file), base))(t)
	must.That(t, len(good) == 2 && good[1].Where == "p.csv:8" && good[1].Labels[0] == `{"of":["b",1]}`,
		"good rows: %+v", good)
	wants := []string{
		`p.csv:2:15: n "2.5" is not a whole number`, `p.csv:3:16: not JSON: `, `p.csv:4: it is not an object`,
		`p.csv:5: n "" is empty`,
		`p.csv:6: m is there twice`, `p.csv:7:1: not JSON: `,
	}
	must.Need(t, len(bad) == len(wants), "got %d errors, want %d: %v", len(bad), len(wants), bad)
	for i, want := range wants {
		must.That(t, strings.HasPrefix(bad[i].Error(), want), "got %q, want %q…", bad[i], want)
	}
}

// Columns that the file lacks, and empty cells, take what the flags say.
func TestReadCSVDefaults(t *testing.T) {
	flags := gemm.Problem{Batch: 3, DType: gemm.FP8}
	flags.SetTrans(true, true)
	good, bad, err := readCSV("p.csv", strings.NewReader("m,n,k,trans_a,batch\n1,2,3,0,\n"), flags)
	must.Need(t, err == nil && len(bad) == 0, "%v %v", err, bad)
	p := good[0]
	must.That(t, !p.TransA() && p.TransB() && p.Batch == 3 && p.DType == gemm.FP8, "got %+v", p)
}

// An error names the place of a bad row, and the good rows are still returned.
func TestReadCSVBadRows(t *testing.T) {
	const file = `m,n,k,dtype,trans_a
1,2,3,fp16,0
x,2,3,fp16,0
1,0,3,fp16,0
1,2,-3,fp16,0
1,2,99999999999999999999,fp16,0
1,2,3,fp17,0
1,2,3,fp16,maybe
1,2
1,2,3,fp16,0,9
1,2"2,3,fp16,0
9000000000,9000000000,9000000000,fp16,0
4,5,6,bf16,1
`
	good, bad := must.Two(readCSV("p.csv", strings.NewReader(file), base))(t)
	must.That(t, len(good) == 2 && good[1].M == 4 && good[1].Where == "p.csv:13", "good rows: %+v", good)
	wants := []string{
		`p.csv:3:1: m "x" is not a whole number`, `p.csv:4:3: n "0" is zero`, `p.csv:5:5: k "-3" is negative`,
		`p.csv:6:5: k "99999999999999999999" does not fit`, `p.csv:7:7: dtype "fp17" is none of fp16,`,
		`p.csv:8:12: trans_a "maybe" is neither`,
		`p.csv:9:3: the row has 2 cells, the header 5`, `p.csv:10:14: the row has 6 cells, the header 5`,
		`p.csv:11:4: not CSV`,
		`p.csv:12: m·n·k·batch of 9000000000x9000000000x9000000000`,
	}
	must.Need(t, len(bad) == len(wants), "got %d errors, want %d: %v", len(bad), len(wants), bad)
	for i, want := range wants {
		must.That(t, strings.HasPrefix(bad[i].Error(), want), "got %q, want %q…", bad[i], want)
	}
}

func TestReadCSVBadFile(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"empty":          {"", "p.csv: the problems file is empty"},
		"no rows":        {"m,n,k\n", "p.csv: the problems file has no rows"},
		"no header":      {"1,2,3\n", `p.csv:1:1: unknown column "1"`},
		"unknown column": {"m,n,k,btach\n1,2,3,4\n", `p.csv:1:7: unknown column "btach"; did you mean batch?`},
		"missing column": {"m,k\n1,2\n", "p.csv:1: column n is missing"},
		"twice":          {"m,n,k,m\n1,2,3,4\n", "p.csv:1:7: column m is there twice"},
		"broken header":  {"m,\"n,k\n", "p.csv:1:"},
	} {
		good, bad, err := readCSV("p.csv", strings.NewReader(tc.file), base)
		must.That(t, err != nil && strings.HasPrefix(err.Error(), tc.want) && diag.KindOf(err) == diag.Input,
			"%s: got %v, %v, %v; want %s…", name, good, bad, err, tc.want)
	}
}

// FuzzProblems: whatever the bytes are, every problem that comes back is valid, and every error is one line of kind
// input that says which line it is about.
func FuzzProblems(f *testing.F) {
	for _, seed := range []string{
		"m,n,k\n1,2,3\n", "m,n,k,batch,trans_a,trans_b,dtype\n1,2,3,4,true,0,bf16\n", "\ufeffm,n,k\r\n1,,3\r\n",
		"m,n,k\n\"1\n2,3\n", "m,n\n1,2", "#\n", "m,n,k\n1,2,3,4\n1\n",
		"m,n,k,out_dtype,lda,ldb,ldc,align_a,align_b,align_c\n8,8,8,fp32,9,8,64,2,16,512\n8,8,8,int8,7,x,-1,3,0,\n",
		"M\tn\tK\tname\n1e3\t2.0\t3:9\tx\n", `[{"m":1,"n":[1,2],"k":"1:9"},{"m":1}`, "{\"m\":1,\"n\":2,\"k\":3}\n{]\n{}",
		`{"problem":{"m":1,"n":2,"k":3},"labels":{"a":null}} }`, "m,n,k\n1:9999,1:9999,1\n", "[]", "{}",
		"m,n,k,layout,a_type,b_type,batch count,right_trans_b,count\n1,2,3,nt,f8_r,e4m3,4,1,7\n1,2,3,xx,half,bf16,,0,x\n",
		"AUTOTUNE mm(4x8, 8x2)\nstrides: [8, 1], [2, 1]\ndtypes: torch.half, torch.half\n",
		"hipblaslt-bench -m 1 -n 2 -k 3\n", "[cublasLt] x\n",
		`{"traceEvents": [{"cat": "cpu_op", "name": "aten::mm", "args": {"Input Dims": [[1, 2], [2, 3]]}}]}`,
		strings.Repeat("\xb9", 1<<16) + ",n,k\n", // compared with each name, letter by letter, it would take minutes
	} {
		f.Add([]byte(seed))
	}
	at := regexp.MustCompile(`^p\.csv(:[0-9]+)*$`)
	f.Fuzz(func(t *testing.T, data []byte) {
		good, bad, err := readCSV("p.csv", strings.NewReader(string(data)), base)
		for _, p := range good {
			must.Do(t, p.Validate())
		}
		if err != nil {
			bad = append(bad, err)
		}
		for _, err := range bad {
			var d *diag.Error
			must.That(t, errors.As(err, &d) && d.Kind == diag.Input && at.MatchString(d.Where) && d.Fix != "", "error %v", err)
			must.That(t, !strings.ContainsAny(err.Error(), "\r\n"), "error of several lines: %q", err)
		}
		must.That(t, len(good) != 0 || len(bad) != 0, "neither problems nor errors")
	})
}

// Whatever a file of candidates holds, it is refused in one line, or every configuration in it can be asked for.
func FuzzCandidates(f *testing.F) {
	axes := []gemm.Axis{{Name: "cluster", Type: gemm.Enumeration, Values: []string{"1x1", "2x1"}, Default: "1x1"}}
	d := &arch.Description{Families: []arch.Family{{Name: "family", Axes: axes}}}
	f.Add([]byte(`[{"BLOCK_SIZE_M":128,"BLOCK_SIZE_N":256,"BLOCK_SIZE_K":64,"num_warps":8,"num_stages":3,` +
		`"axes":{"cluster":"2x1"}}]`))
	f.Add([]byte("bm\tbn\tbk\twarps\tstages\tcluster\n64\t64\t64\t4\t3\t2x1\n"))
	f.Add([]byte(`{"kwargs":{"kwargs":{"block_m":1}},"block_m":[]}`))
	f.Add([]byte("block_m,block_m\n1,\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Candidates("file", data, "family", d)
		if err != nil {
			must.That(t, diag.KindOf(err) == diag.Input && !strings.ContainsAny(err.Error(), "\r\n"), "%q", err)
			return
		}
		for i := range list {
			if err := list[i].Validate(axes...); err != nil || list[i].Kernel != "family" {
				t.Errorf("%+v: %v", list[i], err)
			}
		}
		must.That(t, len(list) != 0, "no configurations and no error")
	})
}

// The members of an object are the ones that encoding/json reads, wherever blanks are.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{
		`{"m":1,"n":[2,3],"k":"x\"}y"}`, `{ "a" : { "b" : [ { } , "]" ] } , "c" : -1e-3 , "d":null }`, `{}`, "{\t}",
		`{"\u0061 ":true,"é":"\u00e9","x":"\\"}`, `{"a":"\ud800"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = bytes.TrimSpace(text)
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil || text[0] != '{' {
			return
		}
		rows := &jsonRows{text: text}
		got, err := rows.members(nil, string(text), 0, 0)
		if err != nil {
			return // twice, or too many
		}
		must.Need(t, len(got) == len(want), "%s: %d members, want %d", text, len(got), len(want))
		for name, value := range want {
			name = strings.TrimSpace(name)
			if lower := strings.ToLower(name); strings.Contains(" "+strings.Join(columns, " ")+" ", " "+lower+" ") {
				name = lower
			}
			found := false
			for _, m := range got {
				found = found || m.name == name && m.cell == jsonCell(name, string(value)) && bytes.HasPrefix(text[m.at:], value)
			}
			must.Need(t, found, "%s: no %q of %s among %+v", text, name, value, got)
		}
	})
}

// The place of a cell is found in a time that does not grow with what is before it on its line.
func TestPositionsOfOneLine(t *testing.T) {
	var text strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&text, "{\"m\":%d,\"n\":1},", i)
		if i == 100 {
			text.WriteString("\n")
		}
	}
	rows := &jsonRows{text: []byte(text.String())}
	begun := time.Now()
	for at := len("{"); at < len(rows.text); at += 15 {
		line, column := rows.position(at)
		wantLine, wantColumn := 1, at+1
		if end := strings.IndexByte(text.String(), '\n'); at > end {
			wantLine, wantColumn = 2, at-end
		}
		must.Need(t, line == wantLine && column == wantColumn,
			"%d is %d:%d, want %d:%d", at, line, column, wantLine, wantColumn)
		if back := at - 10; back > 0 {
			rows.position(back)
		}
	}
	if took := time.Since(begun); took > 5*time.Second { // 20 s and more with a search of the line for each
		t.Errorf("it takes %v", took)
	}
}

// The words of libraries for types, layouts and batches mean what they say, and what they contradict is an error.
func TestReadCSVWords(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{"m,n,k,batch_count,a_type,layout\n8,4,2,16,f8_r,nt", "8x4x2 fp8 batch 16 trans-b"},
		{"M,N,K,Batch Count,Data Type,Layout\n8,4,2,3,CUDA_R_16BF,TN", "8x4x2 bf16 batch 3 trans-a"},
		{"m,n,k,precision,transA,transB\n8,4,2,half,T,n", "8x4x2 fp16 trans-a"},
		{"m,n,k,a_major,b_major,d_type\n8,4,2,k,k,f32_r", "8x4x2 fp16 out fp32 trans-b"},
		{"m,n,k,a_layout,b_layout\n8,4,2,RowMajor,ColumnMajor", "8x4x2 fp16 trans-b"},
		{"m,n,k,dtype,right_dtype\n8,4,2,torch.bfloat16,bf16", "8x4x2 bf16"},
		{"m,n,k,layout,right_trans_b\n8,4,2,nt,1", "8x4x2 fp16 trans-b"},
		{"m,n,k,layout,right_trans_b\n8,4,2,nn,1", `p.csv:2:10: trans_b "1" is not what another column says`},
		{"m,n,k,a_type,b_type\n8,4,2,f16_r,f8_r", `p.csv:2:13: dtype "f8_r" is not what another column says`},
		{"m,n,k,dtype,weight_dtype\n8,4,2,bf16,int4", `p.csv:2:12: dtype "int4" is none of fp16`},
		{"m,n,k,dtype\n8,4,2,bfloat", `p.csv:2:7: dtype "bfloat" is none of fp16, bf16`},
		{"m,n,k,dtype\n8,4,2,mxfp8", `p.csv:2:7: dtype "mxfp8" is none of fp16`},
		{"m,n,k,layout\n8,4,2,xn", `p.csv:2:7: layout "xn" is no layout; write nn, nt, tn or tt`},
		{"m,n,k,micro_batch\n8,4,2,1", `p.csv:1:7: unknown column "micro_batch"; did you mean batch?`},
		{"m,n,k,B\n8,4,2,1", `p.csv:1:7: unknown column "B"; did you mean batch?`},
		{"m,n,k,weight_type\n8,4,2,int4", `p.csv:1:7: unknown column "weight_type"; did you mean dtype or out_dtype?`},
		{"m,n,k,storage order\n8,4,2,row", `p.csv:1:7: unknown column "storage order"; did you mean layout,`},
		{"m,n,k,scheme\n8,4,2,mxfp8", `p.csv:1:7: unknown column "scheme"; leave the scales`},
		{"m,n,k,labels.weight_type\n8,4,2,int4", "8x4x2 fp16"},
		{`{"m":8,"n":4,"k":2,"labels":{"weight_type":"int4"}}`, "8x4x2 fp16"},
		{"m,n,k,split_k,kernel_id\n8,4,2,1,7", "8x4x2 fp16"},
		{"\"M\";\"N\";\"K\";\"Type\"\n8;4;2;\"bf16\"", "8x4x2 bf16"},
		{"m,n,k,count\n8,4,2,few", `p.csv:2:7: count "few" is not a whole number`},
	} {
		good, bad, err := readCSV("p.csv", strings.NewReader(tc.file), base)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(bad) > 0:
			got = bad[0].Error()
		default:
			got = good[0].String()
		}
		must.That(t, strings.HasPrefix(got, tc.want), "%q: got %s, want %s…", tc.file, got, tc.want)
	}
}

// The advice for a type is the nearest name, and for a type with scales how to say both.
func TestTypeAdvice(t *testing.T) {
	for cell, want := range map[string]string{
		"bfloat": "did you mean bfloat16?", "mxfp8": "write fp8, and leave the scales to the model's option scheme=block32",
		"f64": "use one of those",
	} {
		_, fix, err := parseType(cell, gemm.DTypes())
		must.That(t, err != nil && fix == want, "%s: got %q, %v; want %q", cell, fix, err, want)
	}
}

// A log is known by what it says, whatever comes before it, and equal calls are one row with their number.
func TestReadForeign(t *testing.T) {
	const call = "hipblaslt-bench -m 64 -n 8 -k 32 --transA T --transB N -r bf16_r\n"
	log := "starting, with no header\n" + call + "AUTOTUNE _grouped_mm(1x2, 1x2x3)\n" + call
	for _, compressed := range []bool{false, true} {
		text := []byte(log)
		if compressed {
			var b bytes.Buffer
			zip := gzip.NewWriter(&b)
			_, _ = zip.Write(text)
			_ = zip.Close()
			text = b.Bytes()
		}
		file := must.Get(Open("p.log", bytes.NewReader(text), 0, base))(t)
		first, second, end := file.Next(false), file.Next(false), file.Next(false)
		p := first.Problem
		must.That(t, first.Bad == nil && p.String() == "8x64x32 bf16 trans-b" && p.Count == 2 &&
			p.Where == "p.log:2" && len(p.Labels) == 1 && p.Labels[0] == "2", "got %+v", first)
		if second.Bad == nil || !strings.HasPrefix(second.Bad.Error(), "p.log:3: products of _grouped_mm are not read") {
			t.Errorf("got %+v", second)
		}
		must.That(t, end.End != nil, "got %+v", end)
	}
}
