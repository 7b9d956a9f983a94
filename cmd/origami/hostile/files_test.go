//go:build linux

package hostile

import (
	"fmt"
	"io"
	"strings"
)

const (
	sm89 = "--arch sm89 --model reference "
	mib  = 1 << 20
	// sizes are the flags of one problem.
	sizes = " -m 512 -n 512 -k 512"
	// selectOne is a selection that reads one more file. selectCompiled reads one of compiled kernels.
	selectOne      = sm89 + "--in-process select" + sizes
	selectCompiled = "--arch sm90@h200 --in-process select" + sizes + " --compiled k.csv.gz"
	h200           = "--arch sm90@h200 --in-process bench --records records"

	compiledHeader = "bm,bn,bk,stages,warps,gm,even_k,n_regs,n_spills,shared,status\n"
	timesHeader    = "m,n,k,bm,bn,bk,stages,warps,gm,ms,reps\n"
	describedLines = `{"arch":"sm90","device":"h200","kernel":"triton","input":"normal","software":"x",` +
		`"source":"y","executor":"x","executor_version":"1"}`
	logicKernels = "- [{}]\n- [2, 3, 0, 1]\n"
	logicHead    = "- {MinimumRequiredVersion: 4.4.0}\n- some\n- gfx906\n- [Device 66a7]\n" +
		"- {OperationType: GEMM, DataType: 0, UseBeta: true, HighPrecisionAccumulate: false, Batched: true, " +
		"TotalIndices: 4, NumIndicesC: 3, IndexAssignmentsA: [0, 3, 2], IndexAssignmentsB: [1, 3, 2]}\n" + logicKernels
	describedTable = `{"arch":"sm90","device":"h200","kernel":"triton","dtype":"fp16","input":"normal","group_m":8,` +
		`"software":"x","source":"y"}`
)

type files = map[string]func(io.Writer)

// tables are CSV files.
var tables = []input{
	{name: "problems: a line of commas, 32 MiB", codes: []int{2}, args: sm89 + "--in-process select --problems p.csv",
		files: files{"p.csv": repeated("m,n,k\n", ",", 32*mib, "\n")}},
	{name: "problems: a header of commas, 32 MiB", codes: []int{2}, args: sm89 + "--in-process select --problems p.csv",
		files: files{"p.csv": repeated("m,n,k", ",", 32*mib, "\n1,2,3\n")}},
	{name: "problems: many lines of commas, 63 MiB", codes: []int{2}, slow: true,
		args:  sm89 + "--in-process select --problems p.csv",
		files: files{"p.csv": repeated("m,n,k\n", strings.Repeat(",", 999)+"\n", 63*mib, "")}},
	{name: "problems: a cell of 63 MiB", codes: []int{2}, args: sm89 + "--in-process select --problems p.csv",
		files: files{"p.csv": repeated("m,n,k\n\"", "x", 63*mib, "\",1,1\n")}},
	{name: "problems: a quote that does not end, 63 MiB", codes: []int{2},
		args:  sm89 + "--in-process select --problems p.csv",
		files: files{"p.csv": repeated("m,n,k\n\"", ",\n", 63*mib, "")}},
	{name: "problems: rows that cannot be read, 4 MiB", codes: []int{2},
		args:  sm89 + "--in-process select --problems p.csv",
		files: files{"p.csv": repeated("m,n,k\n", "x\n", 4*mib, "")}},
	{name: "problems: rows that cannot be read, 64 MiB", codes: []int{2}, slow: true,
		args:  sm89 + "--in-process select --problems p.csv",
		files: files{"p.csv": repeated("m,n,k\n", "x\n", 64*mib-6, "")}},
	{name: "problems: the same with --json, 64 MiB", codes: []int{2}, slow: true,
		args:  sm89 + "--in-process --json select --problems p.csv",
		files: files{"p.csv": repeated("m,n,k\n", "x\n", 64*mib-6, "")}},
	{name: "problems: the same by plugin, 64 MiB", codes: []int{2}, slow: true,
		args:  sm89 + "rank --problems p.csv",
		files: files{"p.csv": repeated("m,n,k\n", "x\n", 64*mib-6, "")}},
	{name: "problems: 20,000 honest ones", codes: []int{0}, args: sm89 + "--format csv select --problems p.csv",
		files: files{"p.csv": honestProblems(20_000)}},
	{name: "problems: 1,000,000 honest ones", codes: []int{0}, slow: true,
		args:  sm89 + "--format csv select --problems p.csv",
		files: files{"p.csv": honestProblems(1_000_000)}},
	{name: "problems: 1,000,000 honest ones, in process", codes: []int{0}, slow: true,
		args:  sm89 + "--in-process --format csv select --problems p.csv",
		files: files{"p.csv": honestProblems(1_000_000)}},
	{name: "problems: /dev/zero", codes: []int{2}, args: sm89 + "--in-process select --problems -", stdin: "/dev/zero"},

	{name: "candidates: a line of commas, 32 MiB", codes: []int{2}, args: selectOne + " --candidates c.csv",
		files: files{"c.csv": repeated("block_m,block_n,block_k\n", ",", 32*mib, "\n")}},
	{name: "candidates: a header of commas, 32 MiB", codes: []int{2}, args: selectOne + " --candidates c.csv",
		files: files{"c.csv": repeated("block_m,block_n,block_k", ",", 32*mib, "\n1,2,3\n")}},
	{name: "candidates: rows that cannot be read, 63 MiB", codes: []int{2}, args: selectOne + " --candidates c.csv",
		files: files{"c.csv": repeated("block_m,block_n,block_k\n", "x\n", 63*mib, "")}},

	{name: "compiled: a line of commas, 15 MiB in gzip", codes: []int{2}, args: selectCompiled,
		files: files{"k.csv.gz": repeated(compiledHeader, ",", 15*mib, "\n")}},
	{name: "compiled: a header of commas, 15 MiB in gzip", codes: []int{2}, args: selectCompiled,
		files: files{"k.csv.gz": repeated("bm", ",", 15*mib, "\n")}},
	{name: "compiled: the same by plugin", codes: []int{2},
		args:  "--arch sm90@h200 select" + sizes + " --compiled k.csv.gz",
		files: files{"k.csv.gz": repeated("bm", ",", 15*mib, "\n")}},
	{name: "compiled: a bomb of 1 GiB in gzip", codes: []int{2}, slow: true, args: selectCompiled,
		files: files{"k.csv.gz": repeated(compiledHeader, "x", 1<<30, "")}},
	{name: "compiled: other kernels only, 15 MiB", codes: []int{0, 2}, args: selectCompiled,
		files: files{"k.csv.gz": repeated(compiledHeader, "64,64,64,3,4,8,1,99,0,4096,ok\n", 15*mib, "")}},
	{name: "characterization: a header of commas, 15 MiB in gzip", codes: []int{2},
		args:  "--arch sm90@h200 --in-process select" + sizes + " --characterization t.csv.gz",
		files: files{"t.csv.gz": repeated("m", ",", 15*mib, "\n")}},

	{name: "candidates: a text of 60 MiB", codes: []int{2}, args: selectOne + " --candidates c.json",
		files: files{"c.json": repeated(`["`, "x", 60*mib, `"]`)}},
	{name: "records: a time that is none", codes: []int{2}, args: "--json " + h200,
		files: files{"records/dataset.json": text(describedTable), "records/kernels.csv": text(compiledHeader),
			"records/times.csv": text(timesHeader + "64,64,64,16,16,32,2,4,8,1e-300,20\n")}},
	{name: "records: a line of commas, 60 MiB in gzip", codes: []int{2}, args: h200,
		files: files{"records/dataset.json": text(describedTable),
			"records/times.csv.gz": repeated(timesHeader, ",", 60*mib, "\n")}},
	{name: "records: a header of commas, 60 MiB in gzip", codes: []int{2}, args: h200,
		files: files{"records/dataset.json": text(describedTable),
			"records/times.csv.gz": repeated("m", ",", 60*mib, "\n")}},
	{name: "records: kernels.csv of commas, 60 MiB", codes: []int{2}, args: h200,
		files: files{"records/dataset.json": text(describedTable),
			"records/times.csv":   text(timesHeader + "64,64,64,16,16,32,2,4,8,0.1,20\n"),
			"records/kernels.csv": repeated(compiledHeader, ",", 60*mib, "\n")}},
	{name: "records: 100 files of 1 MiB of commas", codes: []int{2}, args: h200, files: manyTables(100)},
}

// logics are library logics, which are YAML: one byte of text can become a value of 200 bytes.
var logics = []input{
	logical("lines of dashes, 16 MiB in gzip", "logic.yaml.gz", repeated("", "-\n", 15*mib, "")),
	logical("lines of dashes, 60 MiB in gzip", "logic.yaml.gz", repeated("", "-\n", 60*mib, "")),
	logical("lines of dashes as many as may be", "logic.yaml", repeated("", "-\n", 1_999_990, "")),
	logical("a list of ones as many as may be", "logic.yaml", repeated("[1", ",1", 999_900, "]")),
	logical("empty mappings as many as may be", "logic.yaml", repeated("[{}", ",{}", 3*249_900, "]")),
	logical("keys as many as may be", "logic.yaml", numbered("", "k%d: 1\n", 5_200_000, "")),
	logical("keys without values as many as may be", "logic.yaml", repeated("{a", ",b", 999_900, "}")),
	slowly(logical("a list of ones, 16 MiB", "logic.yaml", repeated("[1", ",1", 15*mib, "]"))),
	slowly(logical("empty mappings, 16 MiB", "logic.yaml", repeated("[{}", ",{}", 15*mib, "]"))),
	slowly(logical("keys, 16 MiB", "logic.yaml", numbered("", "k%d: 1\n", 15*mib, ""))),
	logical("one text, 16 MiB", "logic.yaml", repeated("a: ", "x", 16*mib-10, "\n")),
	slowly(logical("comments, 16 MiB", "logic.yaml", repeated("", "# x\n", 16*mib-10, ""))),
	logical("sizes as many as may be", "logic.yaml", repeated(logicHead+
		"- [[[64, 32, 1, 128], [0, 1.5]]", ",[[9,9,9,9],[0,1]]", 17*66_000, "]\n- null\n")),
	logical("parameters as many as may be", "logic.yaml", repeated(strings.TrimSuffix(logicHead,
		logicKernels)+"- [{}", ",{a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9}", 50*23_000,
		"]\n- [2, 3, 0, 1]\n- []\n- null\n")),
	logical("aliases of kernels", "logic.yaml", repeated(strings.TrimSuffix(logicHead,
		logicKernels)+"- [&a {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9}", ",*a", 3*480_000,
		"]\n- [2, 3, 0, 1]\n- []\n- null\n")),
}

// logical is a library logic in a file of that name.
func logical(what, file string, content func(io.Writer)) input {
	return input{name: "logic: " + what, codes: []int{0, 2}, args: "logic show " + file, files: files{file: content}}
}

// models are config.json files of models, for the table of vLLM.
var models = []input{
	model("nested 1,000,000 deep", repeated(`{"text_config":`, "[", mib-100, "")),
	model("objects nested 100,000 deep", repeated("", `{"text_config":`, mib-100, "")),
	model("1 MiB of keys", numbered("{", `"%d":{},`, mib-20, `"x":{}}`)),
	model("60 MiB", repeated(`{"x":"`, "x", 60*mib, `"}`)),
	model("numbers that are none", text(`{"model_type":"llama","hidden_size":NaN}`)),
	model("a number of 1 MiB", repeated(`{"model_type":"llama","hidden_size":1`, "0", mib-100, "}")),
	model("sizes of 2^62", text(llama(1<<62, 1))),
	model("sizes as large as may be", text(llama(1<<24, 1))),
	model("as many layers as may be", text(llama(1<<20, 1<<24))),
	model("keys twice", repeated(`{"model_type":"llama"`, `,"hidden_size":4096`, mib-100, "}")),
	model("a model_type of 1 MiB", repeated(`{"model_type":"`, "x\\u001b", mib-100, `"}`)),
}

func model(what string, content func(io.Writer)) input {
	return input{name: "config.json: " + what, codes: []int{0, 2}, files: files{"config.json": content},
		args: "--arch sm90@h200 --in-process table invariant config.json --output out"}
}

func llama(size, layers int) string {
	return fmt.Sprintf(`{"model_type":"llama","hidden_size":%d,"intermediate_size":%[1]d,"vocab_size":%[1]d,`+
		`"num_attention_heads":1024,"num_hidden_layers":%d}`, size, layers)
}

// tuned is a tuning file of 4,096 sizes and all candidates.
const tuned = "kernel: triton\nproblems:\n  - dtype: fp16\n    sets:\n      - name: all\n        steps:\n" +
	"          - each: {num_stages: [3, 4, 5], num_warps: [4, 8]}\n        sizes:\n" +
	"          - range: [[64, 64, 1024], [64, 64, 1024], [64, 64, 1024]]\n"

// shard is a folder of one shard, which says so in a file.
func shard(content func(io.Writer)) files {
	return files{"work/shard-1-of-2/shard.json": content, "work/shard-1-of-2/dataset.json": text(describedLines),
		"work/shard-1-of-2/m.jsonl": text("")}
}

// oneLiners are questions without a file.
var oneLiners = []input{
	{name: "bands: as many sizes as may be", codes: []int{0},
		args: "--in-process --arch sm90@h200 select -m 1:16777216 -n 4096 -k 4096"},
	{name: "bands: as many sizes as may be, of generated kernels", codes: []int{0}, slow: true,
		args: "--in-process --arch sm90@h200 --kernel wgmma select -m 1:16777216 -n 4096 -k 4096"},
	{name: "advice for a product of odd sizes", codes: []int{0},
		args: "--in-process --arch sm90@h200 select -m 65537 -n 65537 -k 4097 --advice"},
	{name: "advice for a product that is too large", codes: []int{2},
		args: "--in-process --arch sm90@h200 select -m 2147483647 -n 2147483647 -k 2147483647 --advice"},
	{name: "trust", codes: []int{0}, args: "--in-process --json trust"},
}

// honestProblems writes so many problems, all different.
func honestProblems(n int) func(io.Writer) {
	return func(w io.Writer) {
		_, _ = io.WriteString(w, "m,n,k\n")
		for i := range n {
			_, _ = fmt.Fprintf(w, "%d,%d,%d\n", 16*(1+i%1000), 16*(1+i/1000), 512)
		}
	}
}

func manyTables(n int) files {
	f := files{"records/dataset.json": text(describedTable)}
	for i := range n {
		f[fmt.Sprintf("records/times%d.csv", i)] = repeated(timesHeader, ",", mib, "\n")
	}
	return f
}

// texts are JSON, YAML and lines of measurements.
var texts = []input{
	{name: "hw-params: nested 1,000,000 deep", codes: []int{2}, args: selectOne + " --hw-params h.json",
		files: files{"h.json": repeated("", "[", mib-1, "")}},
	{name: "hw-params: 1 MiB of keys", codes: []int{2}, args: selectOne + " --hw-params h.json",
		files: files{"h.json": numbered("{", `"%d":{},`, mib-20, `"x":{}}`)}},
	{name: "candidates: nested JSON, 63 MiB", codes: []int{2}, args: selectOne + " --candidates c.json",
		files: files{"c.json": repeated("", "[", 63*mib, "")}},
	{name: "candidates: a list of empty objects, 63 MiB", codes: []int{2}, args: selectOne + " --candidates c.json",
		files: files{"c.json": repeated("[{}", ",{}", 63*mib, "]")}},
	{name: "candidates: a list of numbers, 63 MiB", codes: []int{2}, args: selectOne + " --candidates c.json",
		files: files{"c.json": repeated("[1", ",1", 63*mib, "]")}},

	{name: "device file: 64 KiB of keys", codes: []int{2}, args: "--in-process select" + sizes + " --device-file d.yaml",
		files: files{"d.yaml": numbered("", "k%d: 1\n", 64<<10, "")}},
	{name: "device file: 1 MiB of keys", codes: []int{2}, args: "--in-process select" + sizes + " --device-file d.yaml",
		files: files{"d.yaml": numbered("", "k%d: 1\n", mib, "")}},
	{name: "tuning: as many sizes as may be", codes: []int{0},
		args: "--arch sm90@h200 --in-process tune t.yaml --dry-run", files: files{"t.yaml": text(tuned)}},
	{name: "tuning: 15,625 sizes of 131 bytes", codes: []int{2}, slow: true,
		args: "--arch sm90@h200 --in-process tune t.yaml --dry-run", files: files{"t.yaml": text(
			"kernel: triton\nproblems:\n  - dtype: fp16\n    sets:\n      - name: a\n" +
				"        sizes: [{range: [[16,16,400],[16,16,400],[16,16,400]]}]\n")}},
	{name: "shard: nested 1,000,000 deep", codes: []int{2}, args: "records merge work",
		files: shard(repeated(`{"index":`, "[", mib-10, ""))},
	{name: "shard: 1 MiB of keys", codes: []int{2}, args: "records merge work",
		files: shard(numbered("{", `"%d":1,`, mib-20, `"x":1}`))},
	{name: "shard: a part of as many as may be", codes: []int{0}, args: "records merge work",
		files: shard(text(`{"index":1,"of":65536,"work":"x","finished":true}`))},
	{name: "shard: a part of 2^62", codes: []int{2}, args: "records merge work",
		files: shard(text(`{"index":1,"of":4611686018427387904,"work":"x","finished":true}`))},

	{name: "settings: aliases of aliases", codes: []int{2}, args: selectOne + " --settings s.yaml",
		files: files{"s.yaml": aliases}},
	{name: "settings: nested 65,000 deep", codes: []int{2}, args: selectOne + " --settings s.yaml",
		files: files{"s.yaml": repeated("", "[", 64<<10, "")}},
	{name: "settings: 64 KiB of keys", codes: []int{2}, args: selectOne + " --settings s.yaml",
		files: files{"s.yaml": numbered("", "k%d: 1\n", 64<<10, "")}},
	{name: "settings: 64 KiB of plugins", codes: []int{2, 3}, args: sm89 + "select" + sizes + " --settings s.yaml",
		files: files{"s.yaml": repeated("plugins: [x", ",x", 64<<10-20, "]\n")}},
	{name: "settings: 1 MiB of keys", codes: []int{2}, args: selectOne + " --settings s.yaml",
		files: files{"s.yaml": numbered("", "k%d: 1\n", mib, "")}},

	{name: "lock file: nested 1,000,000 deep", codes: []int{0, 2, 3}, args: sm89 + "plugin ls",
		env: "ORIGAMI_LOCK_FILE=lock.json", files: files{"lock.json": repeated("", "[", mib-1, "")}},
	{name: "lock file: 5,000 plugins that are gone", codes: []int{0, 2, 3}, args: sm89 + "plugin ls",
		env: "ORIGAMI_LOCK_FILE=lock.json", files: files{"lock.json": lockOfMany(5000)}},

	{name: "dataset.json: nested 1,000,000 deep", codes: []int{2}, args: h200,
		files: files{"records/dataset.json": repeated(`{"x":`, "[", mib-10, "")}},
	{name: "dataset.json: 1 MiB of keys", codes: []int{2}, args: h200,
		files: files{"records/dataset.json": numbered("{", `"%d":[],`, mib-20, `"x":[]}`)}},
	{name: "dataset.json: a bomb of 1 GiB", codes: []int{2}, args: h200, slow: true,
		files: files{"records/dataset.json": repeated("", " ", 1<<30, "")}},

	{name: "measurements: an endless line, 1 GiB in gzip", codes: []int{2}, args: h200,
		files: files{"records/dataset.json": text(describedLines),
			"records/m.jsonl.gz": repeated("", "x", 1<<30-1, "")}},
	{name: "measurements: lines of 1 MiB nested", codes: []int{2}, args: h200,
		files: files{"records/dataset.json": text(describedLines),
			"records/m.jsonl": repeated(`{"config":`, "[", mib-100, "\n")}},
	{name: "measurements: a line of 1 MiB of objects", codes: []int{2}, args: h200,
		files: files{"records/dataset.json": text(describedLines),
			"records/m.jsonl": repeated(`{"samples_seconds":[1`, ",1", mib-100, "]}\n")}},
	{name: "measurements: empty objects, 1 GiB in gzip", codes: []int{2}, args: h200,
		files: files{"records/dataset.json": text(describedLines),
			"records/m.jsonl.gz": repeated("", "{}\n", 1<<30-3, "")}},
	{name: "measurements: 20,000 honest lines", codes: []int{0, 2}, args: h200,
		files: files{"records/dataset.json": text(describedLines),
			"records/m.jsonl.gz": honestLines(20_000, 0)}},
	{name: "measurements: 100,000 honest lines", codes: []int{0, 2}, args: h200, slow: true,
		files: files{"records/dataset.json": text(describedLines),
			"records/m.jsonl.gz": honestLines(100_000, 0)}},
	{name: "measurements: 200 lines of the longest size", codes: []int{0, 2}, args: h200,
		files: files{"records/dataset.json": text(describedLines),
			"records/m.jsonl.gz": honestLines(200, mib-2048)}},

	{name: "measurements: 1,000 lines of the longest size", codes: []int{0, 2}, args: h200, slow: true,
		files: files{"records/dataset.json": text(describedLines),
			"records/m.jsonl.gz": honestLines(1000, mib-2048)}},

	{name: "space: 262,144 configurations", codes: []int{0, 2}, slow: true, args: sm89 + "rank" + sizes + manyValues(),
		files: files{}},
	{name: "space: 262,144 configurations in process", codes: []int{0, 2}, slow: true,
		args: sm89 + "--in-process rank" + sizes + manyValues(), files: files{}},
	{name: "space: 1,048,576 configurations", codes: []int{2},
		args: sm89 + "rank" + sizes + manyValues() + " --space num_warps=1,2,4,8", files: files{}},
}

// numbered writes a text, then a format with a number again and again, up to size bytes, then the last one.
func numbered(first, format string, size int, last string) func(io.Writer) {
	return func(w io.Writer) {
		n, _ := io.WriteString(w, first)
		for i := 0; n+len(format)+8+len(last) < size; i++ {
			part, _ := fmt.Fprintf(w, format, i)
			n += part
		}
		_, _ = io.WriteString(w, last)
	}
}

// aliases is a YAML of 10^30 words, if all its aliases were followed.
func aliases(w io.Writer) {
	_, _ = io.WriteString(w, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 30; i++ {
		_, _ = fmt.Fprintf(w, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf(",*a%d", i-1), 10)[1:])
	}
	_, _ = io.WriteString(w, "plugins: *a29\n")
}

func lockOfMany(n int) func(io.Writer) {
	return func(w io.Writer) {
		_, _ = io.WriteString(w, `{"plugins":{`)
		for i := range n {
			_, _ = fmt.Fprintf(w, `"p%d":{"sha256":"%064d","path":"/nowhere/origami-plugin-p%d"},`, i, i, i)
		}
		_, _ = fmt.Fprintf(w, `"q":{"sha256":"%064d"}}}`, 0)
	}
}

// honestLines writes measurements as a sweep writes them, with a detail of so many bytes.
func honestLines(n, detail int) func(io.Writer) {
	return func(w io.Writer) {
		status := `"status":"ok"`
		if detail > 0 {
			status = `"status":"failed","detail":"` + strings.Repeat("x", detail) + `"`
		}
		for i := range n {
			_, _ = fmt.Fprintf(w, `{"schema":1,"phase":"sweep",%s,"arch":"sm90","device":"h200","kernel":"triton",`+
				`"problem":{"m":%d,"n":64,"k":64,"batch":1,"trans_a":false,"trans_b":false,"dtype":"fp16"},`+
				`"config":{"block_m":64,"block_n":64,"block_k":64,"group_m":%d,"num_warps":4,"num_stages":2,`+
				`"split_k":1},"warm_l2":false,"input":"normal","median_seconds":0.001,"samples_seconds":[%s0.001],`+
				`"executor":"x","executor_version":"1"}`+"\n", status, 16*(1+i%20), 1+i/20, strings.Repeat("0.001,", 49))
		}
	}
}

// manyValues are the words of a space with 262,144 configurations.
func manyValues() string {
	var values []string
	for i := range 64 {
		values = append(values, fmt.Sprint(16*(i+1)))
	}
	list := strings.Join(values, ",")
	return " --space num_warps=4 --space num_stages=2 --space split_k=1 --space block_m=" + list +
		" --space block_n=" + list + " --space block_k=" + list
}
