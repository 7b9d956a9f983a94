package problems

import (
	"regexp"
	"slices"
	"strings"
)

// layout is the column with the layouts of A and B in one word.
const layout = "layout"

// aliases are the other names of columns.
var aliases = map[string]string{
	"batch": "batch_count batchcount",
	"dtype": "type datatype data_type precision a_type b_type in_dtype in_type input_dtype input_type dtype_a dtype_b " +
		"a_dtype b_dtype torch_dtype",
	"out_dtype": "c_type d_type out_type output_dtype output_type outdtype c_dtype d_dtype dtype_c",
	"trans_a":   "transa transpose_a transposea a_t op_a a_layout a_major a_order",
	"trans_b":   "transb transpose_b transposeb b_t op_b b_layout b_major b_order",
	layout:      "layouts",
}

var spaced = strings.NewReplacer(" ", "_", "-", "_")

// columnsOf returns the columns of a header, empty for labels. What a word before the name of a column says is checked
// against that column, if there is one: weight_dtype against dtype.
func columnsOf(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		name = spaced.Replace(strings.ToLower(strings.TrimPrefix(name, "problem.")))
		if plain := strings.TrimPrefix(name, "labels."); slices.Contains(columns, plain) || name == layout {
			out[i] = plain
		}
		for column, list := range aliases {
			if slices.Contains(strings.Fields(list), name) {
				out[i] = column
			}
		}
	}
	for i, name := range names {
		if _, rest, ok := strings.Cut(strings.ToLower(name), "_"); ok && out[i] == "" && slices.Contains(columns[3:], rest) &&
			(slices.Contains(out, rest) || strings.HasPrefix(rest, "trans_") && slices.Contains(out, layout)) {
			out[i] = rest
		}
	}
	return out
}

// contradicts reports whether a cell of a row could say something else than one before it does.
func (f *File) contradicts(cells []string, i int) bool {
	for j, column := range f.header[:i] {
		if cells[j] != "" && (column == f.header[i] || column == layout && strings.HasPrefix(f.header[i], "trans_") ||
			f.header[i] == layout && strings.HasPrefix(column, "trans_")) {
			return true
		}
	}
	return false
}

// telling are what no answer may pass over in silence: names that speak of a type, a layout, a batch or scales.
var telling = regexp.MustCompile(`(?i)^[\w -]*(type|precision|layout|trans|major|order|batch)[\w -]*$|^(b|scheme)$`)

// meant returns what a column with a telling name could mean.
func meant(name string) string {
	switch lower := strings.ToLower(name); {
	case lower == "scheme":
		return "leave the scales of operands to the model's option scheme, which all rows share"
	case lower == "b" || strings.Contains(lower, "batch"):
		return "did you mean batch? Name it so"
	case strings.Contains(lower, "type") || strings.Contains(lower, "precision"):
		return "did you mean dtype or out_dtype? Name it so"
	}
	return "did you mean layout, trans_a or trans_b? Name it so"
}
