package shapes_test

import (
	_ "embed" // the published lines
	"errors"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/formats/shapes"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// published are lines as public texts have them, with their sources and the products that they name.
//
//go:embed testdata/published.txt
var published string

func TestText(t *testing.T) {
	parts := strings.Split(published, "\n== ")[1:]
	must.Need(t, len(parts) >= 30, "there are %d texts", len(parts))
	for _, part := range parts {
		source, rest, _ := strings.Cut(part, "\n=> ")
		want, text, _ := strings.Cut(rest, "\n")
		rows, err := shapes.Text(strings.NewReader(text))
		check(t, source, rows, err, want)
	}
}

// check compares the only row.
func check(t *testing.T, name string, rows []shapes.Row, err error, want string) {
	t.Helper()
	got := ""
	switch {
	case len(rows) > 1:
		t.Errorf("%s: got %d rows", name, len(rows))
		return
	case len(rows) == 1 && rows[0].Bad != nil:
		err = rows[0].Bad
	case len(rows) == 1:
		got = strings.Join(rows[0].Cells, ",")
		must.Equal(t, len(rows[0].Cells), len(shapes.Columns), name)
	}
	if err != nil {
		got = "error: " + err.Error()
		if what, ok := strings.CutPrefix(want, "error: "); ok && strings.HasPrefix(err.Error(), what) {
			got = want
		}
	}
	must.Equal(t, got, want, name)
}

// trace has events in the form of a trace that SGLang's users publish, and of one in Kineto's tests.
const trace = `{"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "args": {"Input Dims": [[38, 2048], [1536, 2048], []]}},
{"ph": "X", "cat": "cpu_op", "name": "aten::NAME", "args": {"Concrete Inputs": ["", "", "", "", "", "", "15"],
"Input Dims": DIMS, "Input Strides": STRIDES, "Input type": TYPES}},
{"ph": "X", "cat": "kernel", "name": "nvjet_sm100_tst_16x64_64x16_4x1_v_bz_TNN", "args": {}}], "traceName": "x"}`

func TestTrace(t *testing.T) {
	bf16 := `["c10::BFloat16", "c10::BFloat16"]`
	for _, tc := range []struct{ name, dims, strides, types, want string }{
		{"mm", "[[38, 2048], [2048, 1536]]", "[[2048, 1], [1, 2048]]", bf16, "38,1536,2048,1,0,1,bf16,,,,,,1"},
		{"bmm", "[[12, 38, 64], [12, 64, 48]]", "[[2432, 64, 1], [3072, 48, 1]]", bf16, "38,48,64,12,0,0,bf16,,,,,,1"},
		{"addmm", "[[1000], [1, 2048], [2048, 1000], [], []]", "[[1], [0, 1], [1, 2048], [], []]",
			`["float", "float", "float", "Scalar", "Scalar"]`, "1,1000,2048,1,0,1,fp32,,,,,,1"},
		{"addmm", "[[8, 1000], [8, 2048], [2048, 1000]]", "[[1000, 1], [2048, 1], [1, 2048]]", `["float", "float", "float"]`,
			"8,1000,2048,1,0,1,fp32,,,,,1,1"},
		{"_scaled_mm", "[[64, 4096], [4096, 6144], [64, 1]]", "[[4096, 1], [1, 4096], [1, 1]]",
			`["c10::Float8_e4m3fn", "c10::Float8_e4m3fn", "float"]`, "64,6144,4096,1,0,1,fp8,bf16,,,,,1"},
		{"mm", "[[4, 8], [8, 16]]", "null", bf16, "error: mm has sizes without strides and types"},
		{"mm", "[[4, 8], [8, 16]]", "[[16, 2], [16, 1]]", bf16, "error: mm has a matrix of the strides [16 2]"},
		{"_grouped_mm", "[[4, 8], [2, 8, 16]]", "[[8, 1], [128, 16, 1]]", bf16,
			"error: products of _grouped_mm are not read"},
		{"softmax", "[[4, 8]]", "[[8, 1]]", bf16, "error: the trace has no products with sizes"},
	} {
		text := strings.NewReplacer("NAME", tc.name, "DIMS", tc.dims, "STRIDES", tc.strides, "TYPES", tc.types).Replace(trace)
		rows, err := shapes.Trace(strings.NewReader(text))
		check(t, tc.name+" "+tc.dims, rows, err, tc.want)
	}
	must.Fail(t, must.Err(shapes.Trace(strings.NewReader(trace[:200]))), "unexpected EOF")
}

// Fuzz: whatever the bytes are, a row has a cell per column or an error of kind input with advice.
func FuzzText(f *testing.F) {
	for _, part := range strings.Split(published, "\n== ") {
		f.Add(part)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := shapes.Text(strings.NewReader(text))
		valid(t, rows, err)
	})
}

func FuzzTrace(f *testing.F) {
	f.Add(trace)
	f.Add(`[{"cat":"cpu_op","name":"aten::mm","args":{"Input Dims":[[1,2],[2]],"Input Strides":[[],[]],` +
		`"Input type":["",""]}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := shapes.Trace(strings.NewReader(text))
		valid(t, rows, err)
	})
}

func valid(t *testing.T, rows []shapes.Row, err error) {
	must.That(t, err == nil || rows == nil, "rows and an error")
	for _, row := range rows {
		var d *diag.Error
		must.That(t, row.Bad != nil || len(row.Cells) == len(shapes.Columns), "%d cells", len(row.Cells))
		must.That(t, row.Bad == nil || errors.As(row.Bad, &d) && d.Kind == diag.Input && d.Fix != "", "error %v", row.Bad)
	}
}
