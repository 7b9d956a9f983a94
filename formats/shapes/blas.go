package shapes

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// record is what a text says, by names in lower case without - and _.
type record map[string]string

var plainName = strings.NewReplacer("-", "", "_", "", " ", "")

func (f record) set(name, value string) {
	f[plainName.Replace(strings.ToLower(name))] = strings.Trim(value, ` "'`)
}

// pairs returns the names and values that an expression finds.
func pairs(expression *regexp.Regexp, text string) record {
	f := record{}
	for _, x := range expression.FindAllStringSubmatch(text, -1) {
		f.set(x[1], x[2])
	}
	return f
}

// blas returns the product of a call of a BLAS, whose matrices have contiguous columns. hipblaslt-bench, rocblas-bench
// and what both libraries log have these names.
func (f record) blas() (p product, err error) {
	all := cmp.Or(f["precision"], f["r"])
	compute := strings.ToLower(f["computetype"])
	for _, key := range []string{"atype", "btype", "ctype", "dtype"} {
		f[key] = cmp.Or(letters[f[key]], f[key])
	}
	if strings.Contains(compute, "xf32") || strings.Contains(compute, "tf32") || f["mathmode"] == "1" {
		f["atype"], f["btype"] = "tf32", "tf32"
	}
	p = product{m: f["m"], n: f["n"], k: f["k"], batch: cmp.Or(f["batchcount"], f["batch"]), beta: f["beta"],
		a: matrix{dtype: cmp.Or(f["atype"], all), ld: f["lda"]}, b: matrix{dtype: cmp.Or(f["btype"], all), ld: f["ldb"]},
		c: matrix{dtype: cmp.Or(f["dtype"], f["ctype"], all), ld: cmp.Or(f["ldd"], f["ldc"]), columns: true}}
	for m, letter := range map[*matrix]string{&p.a: cmp.Or(f["transa"], f["transposea"], "N"),
		&p.b: cmp.Or(f["transb"], f["transposeb"], "N")} {
		letter = strings.TrimPrefix(strings.ToUpper(letter), "OP_")
		if m.columns = letter == "N"; letter != "N" && letter != "T" {
			err = diag.Inputf("a matrix is %q, which is neither N nor T", letter).Do("leave it out")
		}
	}
	if f["groupedgemm"] != "" && f["groupedgemm"] != "0" {
		err = diag.Inputf("its products are grouped").Do("write a row with groups for each call")
	}
	return p, err
}

var option = regexp.MustCompile(`\s--?([A-Za-z]\w*)(?:[= ]\s*(-?[\d.]\S*|[^-\s]\S*))?`)

// bench reads the arguments of hipblaslt-bench and rocblas-bench, which both libraries log:
// hipblaslt-bench -m 1024 -n 512 -k 1024 --transA N --transB N --a_type f16_r.
func bench(r *reader, line string) {
	f := pairs(option, line)
	if f["m"] == "" && f["n"] == "" { // --yaml FILE, or prose
		return
	}
	p, err := f.blas()
	if name := cmp.Or(f["function"], f["f"], "matmul"); name != "matmul" && !strings.HasPrefix(name, "gemm") {
		err = diag.Inputf("%s is no product of two matrices", name).Do("leave it out")
	}
	r.add(p, 1, err)
}

var (
	yamlPair  = regexp.MustCompile(`(\w+): *([^,}]*)`)
	namedGemm = regexp.MustCompile(`^rocblas_([hsdcz]?)gemm`)
	letters   = map[string]string{"h": "f16", "s": "f32", "d": "f64", "c": "complex64", "z": "complex128"}
)

// rocblasLog reads a line that rocBLAS writes with ROCBLAS_LAYER=4:
// - { rocblas_function: "rocblas_gemm_ex", a_type: "bf16_r", transA: 'T', M: 12288, …, call_count: 136 }.
func rocblasLog(r *reader, line string) {
	f := pairs(yamlPair, line)
	if kind := namedGemm.FindStringSubmatch(f["rocblasfunction"]); kind != nil {
		f["r"] = letters[kind[1]]
		p, err := f.blas()
		calls, _ := strconv.Atoi(f["callcount"])
		r.add(p, max(calls, 1), err)
	}
}

var (
	description = regexp.MustCompile(`(?i)\b([ABCD]|compute)desc=\[([^\]]*)\]|\b(beta=[\d.]+)`)
	ltPair      = regexp.MustCompile(`(\w+)=([\w.+-]+)`)
)

// ltLog reads a call of matmul in the log of cuBLASLt, of level 5 (trace), or of hipBLASLt:
// [cublasLtSSSMatmul] A=0X7F Adesc=[type=R_16BF rows=4096 cols=16 ld=4096] … computeDesc=[… transa=OP_T].
func ltLog(r *reader, line string) {
	f := record{}
	for _, x := range description.FindAllStringSubmatch(line, -1) {
		for name, value := range pairs(ltPair, x[2]+x[3]) {
			f[strings.TrimPrefix(strings.ToLower(x[1]), "compute")+name] = value
		}
	}
	f["m"], f["n"], f["k"], f["batch"] = f["drows"], f["dcols"], f["acols"], f["dbatchcount"]
	f["lda"], f["ldb"], f["ldd"] = f["ald"], f["bld"], f["dld"]
	p, err := f.blas()
	if !p.a.columns {
		p.k = f["arows"]
	}
	order := strings.ReplaceAll(f["aorder"]+f["border"]+f["dorder"], "ORDER_", "")
	if strings.ReplaceAll(order, "COL", "") != "" {
		err = diag.Inputf("matrices have the order %s", order).Do("leave it out")
	}
	r.add(p, 1, err)
}

var (
	ckPair = regexp.MustCompile(`(\w+) = +([\w-]+)`)
	ckTime = regexp.MustCompile(`: ([0-9.e+-]+) ms, .*, ([0-9.e+-]+) GB/s`)
)

// ck reads the best time that ckProfiler has found:
// Best Perf for datatype = f16 ALayout =  RowMajor BLayout =  ColumnMajor M = 3840 N = 4096 K = 4096 StrideA = …
// The type is C's. The bytes per second tell whether A and B have it too.
func ck(r *reader, line string) {
	f, time := pairs(ckPair, line), ckTime.FindStringSubmatch(line)
	p := product{m: f["m"], n: f["n"], k: f["k"], batch: f["batchcount"]}
	for name, m := range map[string]*matrix{"a": &p.a, "b": &p.b, "c": &p.c} {
		*m = matrix{dtype: f["datatype"], ld: f["stride"+name], columns: f[name+"layout"] == "ColumnMajor"}
	}
	number := func(text string) float64 { v, _ := strconv.ParseFloat(text, 64); return v }
	m, n, k := number(p.m), number(p.n), number(p.k)
	t, err := gemm.ParseDType(f["datatype"])
	switch bytes := (m*k + k*n + m*n) * float64(t.Bytes()) * max(number(p.batch), 1); {
	case f["alayout"] == "" || f["blayout"] == "" || time == nil:
		err = diag.Inputf("it is no line about a GEMM").Do("leave it out")
	case err == nil && math.Abs(number(time[1])*number(time[2])*1e6/bytes-1) > 0.05:
		err = diag.Inputf("C is %s, and its bytes per second are those of another type of A or B", t).Do(asCSV)
	}
	r.add(p, 0, err)
}

var (
	tunable = regexp.MustCompile(`^Gemm(?:AndBias|StridedBatched)?TunableOp_(.+)_([NT])([NT]),` +
		`[nt]{2}_(\d+)_(\d+)_(\d+)(?:_B_(\d+))?(?:_ld_(\d+)_(\d+)_(\d+))?`)
	tunableType = regexp.MustCompile(`Float8_e\dm\d(?:fnuz|fn)?|[A-Za-z0-9:]+`)
)

// tunableOp reads a line of PyTorch's TunableOp, in the letters of a BLAS:
// GemmTunableOp_BFloat16_TN,tn_6144_8_2560_ld_2560_2560_6144,Gemm_Hipblaslt_6849,0.200725.
func tunableOp(r *reader, line string) {
	if x := tunable.FindStringSubmatch(line); x != nil {
		types := append(tunableType.FindAllString(x[1], 3), "", "", "")
		p, err := record{"atype": types[0], "btype": cmp.Or(types[1], types[0]), "dtype": types[2], "transa": x[2],
			"transb": x[3], "m": x[4], "n": x[5], "k": x[6], "batch": x[7], "lda": x[8], "ldb": x[9], "ldd": x[10]}.blas()
		r.add(p, 0, err)
	}
}
