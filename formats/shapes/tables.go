package shapes

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// tables are known by a column that no other table has.
var tables = []struct {
	columns string
	read    func(record) (product, error)
}{
	{"operationkind", cutlass},
	{"groupedgemm rocblasgflops", record.blas},
	{"cunum qdtypew bpreshuffle scaleab libtype", aiter},
}

// Table returns what reads the rows of a program's table with m, n and k, nil for other tables.
func Table(header []string) func(record) (product, error) {
	for _, table := range tables {
		if slices.ContainsFunc(header, func(name string) bool {
			name = plainName.Replace(strings.ToLower(name))
			return name != "" && slices.Contains(strings.Fields(table.columns), name)
		}) {
			return table.read
		}
	}
	return nil
}

// cutlass reads a row of the CSV of CUTLASS's profiler. Operands are as f16:row. Tensor cores multiply fp32 as TF32.
func cutlass(f record) (p product, err error) {
	p = product{m: f["m"], n: f["n"], k: f["k"], batch: f["batchcount"], beta: f["beta"]}
	for m, text := range map[*matrix]string{&p.a: f["a"], &p.b: f["b"], &p.c: cmp.Or(f["d"], f["c"])} {
		dtype, order, _ := strings.Cut(text, ":")
		if m.dtype, m.columns = dtype, order == "column"; !m.columns && order != "row" {
			err = diag.Inputf("%q is in the order of neither rows nor columns", text).Do("leave the row out")
		}
		if dtype == "f32" && f["opclass"] == "tensorop" && m != &p.c {
			m.dtype = "tf32"
		}
	}
	if f["operationkind"] != "gemm" || f["gemmkind"] == "planar_complex" || f["gemmkind"] == "grouped" {
		err = diag.Inputf("%s (%s) is no GEMM", f["operationkind"], f["gemmkind"]).Do("leave the row out")
	}
	return p, err
}

// aiterTypes are what the names of AITER's kernels say of types, where no column does.
var aiterTypes = map[string]*regexp.Regexp{
	"fp8": regexp.MustCompile(`a8w8_blockscale|F8_F8`), "fp4": regexp.MustCompile(`a4w4|\df4gemm`),
	"fp6": regexp.MustCompile(`a6w6`), "int8": regexp.MustCompile(`I8gemm`),
}

// aiter reads a row of a table of AITER: A is M×K and B, the weight, N×K, both with K contiguous.
func aiter(f record) (product, error) {
	dtype := cmp.Or(f["qdtypew"], f["dtype"])
	for name, kernel := range aiterTypes {
		if dtype == "" && kernel.MatchString(f["kernelname"]) {
			dtype = name
		}
	}
	return product{m: f["m"], n: f["n"], k: f["k"], batch: f["b"], a: matrix{dtype: dtype},
		b: matrix{dtype: dtype, columns: true}, c: matrix{dtype: f["outdtype"]}}, nil
}

const (
	nsight = "an export of Nsight has the names of kernels and not the sizes of products"
	logged = "record a trace of PyTorch with shapes, or set CUBLASLT_LOG_LEVEL=5 and give the log"
)

// without are texts in known formats that name no products.
var without = []struct{ mark, what, fix string }{
	{"Kernel Name", nsight, logged}, {"Total Time (ns)", nsight, logged}, {"SQLite format 3", nsight, logged},
	{"model_dim,inter_dim", "a table of fused experts has no m, n and k", "write the rows of each expert as groups"},
	{",conv_kind,", "convolutions are no products of matrices", "write the m,n,k that they are computed as"},
}

var counter = regexp.MustCompile(`^\[\d+\]:`)

// row reads a line of a table, or its header.
func (r *reader) row(line string) {
	for _, x := range without {
		if r.why == nil && strings.Contains(line, x.mark) {
			r.why = diag.Inputf("%s", x.what).Do("%s", x.fix)
		}
	}
	cells := strings.Split(counter.ReplaceAllString(line, ""), ",")
	if strings.Contains(strings.ToLower(line), "m,n,k") && Table(cells) != nil {
		r.header, r.table = cells, Table(cells)
		return
	}
	if r.table == nil || len(cells) != len(r.header) {
		return
	}
	f := record{}
	for i, cell := range cells {
		f.set(r.header[i], cell)
	}
	// The line of rocblas-bench before its result says more than the result.
	if told := f["rocblasgflops"] != "" && len(r.rows) > 0; !told {
		p, err := r.table(f)
		r.add(p, 0, err)
	}
}
