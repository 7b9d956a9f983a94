package shapes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
)

// marks are what lines of logs have, and what reads them from there on.
var marks = []struct {
	text string
	read func(r *reader, from string)
}{
	{"AUTOTUNE ", tuned}, {"strides: ", tuned}, {"dtypes: ", tuned}, {"hipblaslt-bench ", bench},
	{"rocblas-bench ", bench}, {"rocblas_function:", rocblasLog}, {"atmul] A=", ltLog}, {"Perf for datatype =", ck},
	{"Gemm", tunableOp},
}

// call is a call of an operator of PyTorch.
type call struct {
	op            string
	dims, strides [][]int
	types         []string
	out           string // the type of the result, if it is stated
}

// operators are PyTorch's products, and the places of their first matrix.
var operators = map[string]int{"mm": 0, "bmm": 0, "_int_mm": 0, "int_mm": 0, "_scaled_mm": 0, "scaled_mm": 0,
	"addmm": 1, "baddbmm": 1, "_addmm_activation": 1}

// product returns the product that a call computes.
func (c *call) product() (p product, err error) {
	at, ok := operators[c.op]
	switch {
	case !ok:
		return p, diag.Inputf("products of %s are not read", c.op).Do(asCSV)
	case min(len(c.strides), len(c.types)) < at+2:
		return p, diag.Inputf("%s has sizes without strides and types, as an older PyTorch writes them", c.op).
			Do("record it with a newer one, or " + asCSV)
	case len(c.dims) < at+2 || len(c.dims[at]) < 2 || len(c.dims[at]) != len(c.dims[at+1]) || len(c.dims[at]) > 3:
		return p, diag.Inputf("%s has no two matrices", c.op).Do(asCSV)
	}
	a, b := c.dims[at], c.dims[at+1]
	rank := len(a)
	p = product{m: strconv.Itoa(a[rank-2]), k: strconv.Itoa(a[rank-1]), n: strconv.Itoa(b[rank-1])}
	p.c.dtype = c.out
	if rank == 3 {
		p.batch = strconv.Itoa(a[0])
	}
	for i, m := range []*matrix{&p.a, &p.b} {
		s := c.strides[at+i]
		if len(s) != rank || s[rank-1] != 1 && s[rank-2] != 1 {
			return p, diag.Inputf("%s has a matrix of the strides %v, of which none is 1", c.op, s).Do(asCSV)
		}
		*m = matrix{dtype: c.types[at+i], ld: strconv.Itoa(max(s[rank-1], s[rank-2])), columns: s[rank-1] != 1}
	}
	if d, s := c.dims[0], c.strides[0]; at == 1 && len(d) == rank && len(s) == rank && d[rank-2] > 1 && s[rank-2] != 0 {
		p.beta = "1" // what is added is no bias, which all rows have in common
	}
	return p, nil
}

// tuned reads what Inductor logs of a product that it tunes: AUTOTUNE mm(3840x1152, 1152x49136), in the next line
// strides: [1, 3840], [49152, 1], and then dtypes: torch.bfloat16, torch.bfloat16.
func tuned(r *reader, line string) {
	switch {
	case !strings.HasPrefix(line, "AUTOTUNE "):
		r.tune += line + "\n"
	case strings.Contains(line, "("): // others say how long it took
		r.endTune()
		r.tune, r.tuned = line+"\n", r.line
	}
}

var (
	tuning = regexp.MustCompile(`^AUTOTUNE (\w*mm)\((.*)\)\n(?:strides: (.*)\n)?(?:dtypes: (.*)\n)?`)
	word   = regexp.MustCompile(`\w+`)
)

// endTune adds the product that Inductor has logged. Convolutions and attention are none.
func (r *reader) endTune() {
	x := tuning.FindStringSubmatch(r.tune)
	if r.tune = ""; x == nil {
		return
	}
	c := call{op: x[1], dims: whole(strings.ReplaceAll(x[2], "x", " "), ","), strides: whole(x[3], "],")}
	if x[4] != "" {
		c.types = strings.Split(x[4], ", ")
	}
	p, err := c.product()
	now := r.line
	r.line = r.tuned
	r.add(p, 0, err)
	r.line = now
}

// whole reads lists of whole numbers. A size that is no number but a symbol is 0, which no problem has.
func whole(text, between string) (lists [][]int) {
	if text == "" {
		return nil
	}
	for _, part := range strings.Split(text, between) {
		var list []int
		for _, digits := range word.FindAllString(part, -1) {
			v, _ := strconv.Atoi(digits)
			list = append(list, v)
		}
		lists = append(lists, list)
	}
	return lists
}

// Trace reads the products of a trace that torch.profiler records with shapes. Each event of the CPU is a call.
func Trace(in io.Reader) ([]Row, error) {
	r := &reader{seen: map[string]int{}}
	r.why = diag.Inputf("the trace has no products with sizes").Do("record it with record_shapes=True")
	dec := json.NewDecoder(in)
	token, err := dec.Token()
	for object := token == json.Delim('{'); object && err == nil && dec.More(); {
		if token, err = dec.Token(); err == nil && token == "traceEvents" {
			_, err = dec.Token() // the bracket
			break
		}
		err = cmp.Or(err, dec.Decode(new(json.RawMessage)))
	}
	for err == nil && dec.More() && len(r.rows) <= limit.Rows {
		var raw json.RawMessage
		if err = dec.Decode(&raw); err == nil && bytes.Contains(raw, []byte("mm")) {
			r.event(raw)
		}
	}
	return r.result(err)
}

// event adds the product of an event that is one.
func (r *reader) event(raw json.RawMessage) {
	var e struct {
		Name, Cat string
		Args      map[string]json.RawMessage
	}
	_ = json.Unmarshal(raw, &e) // what is missing is reported
	c := call{op: strings.TrimPrefix(e.Name, "aten::")}
	_, known := operators[c.op]
	if e.Cat != "cpu_op" && e.Cat != "Operator" || !known && !strings.HasSuffix(c.op, "grouped_mm") ||
		e.Args["Input Dims"] == nil {
		return
	}
	var concrete []string
	for name, to := range map[string]any{"Input Dims": &c.dims, "Input Strides": &c.strides, "Input type": &c.types,
		"Concrete Inputs": &concrete} {
		_ = json.Unmarshal(e.Args[name], to)
	}
	if c.op == "_scaled_mm" && len(concrete) > 6 {
		c.out = map[string]string{"5": "fp16", "6": "fp32", "15": "bf16"}[concrete[6]] // of c10::ScalarType
	}
	p, err := c.product()
	r.add(p, 1, err)
}
