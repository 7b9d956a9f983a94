package gemm

import (
	"flag"
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists of element types in other languages")

// Other languages and the wire protocol list the element types as the table has them. make generate writes the lists.
func TestListsOfTypes(t *testing.T) {
	const proto = "sdk/proto/origami/plugin/v1/gemm.proto"
	for _, list := range []struct{ file, begin, end, want string }{
		{proto, "  ELEMENT_TYPE_UNSPECIFIED = 0;\n", "}", each(types[1:], func(r row) string {
			return fmt.Sprintf("  ELEMENT_TYPE_%s = %d;%s\n", strings.ToUpper(r.name), r.dtype, r.noted(" // %s"))
		})},
		{"sdk/python/origami_gemm_plugin/_problem.py", "\nBITS = {\n", "}", each(table[:], func(r row) string {
			return fmt.Sprintf("    %q: %d,\n", r.name, r.bits)
		})},
		{"sdk/python/origami_gemm_plugin/_problem.py", "\nOUTPUTS = {\n", "}", each(table[:], func(r row) string {
			if !r.dtype.Operand() {
				return ""
			}
			names := strings.ReplaceAll(TypeNames(outputs[r.dtype]), ", ", `", "`) + `"`
			if len(outputs[r.dtype]) == 1 {
				names += ","
			}
			return fmt.Sprintf("    %q: (\"%s),\n", r.name, names)
		})},
	} {
		path := filepath.Join("../..", list.file)
		text := must.Get(os.ReadFile(path))(t)
		before, rest, began := strings.Cut(string(text), list.begin)
		got, after, ended := strings.Cut(rest, list.end)
		if !began || !ended {
			t.Errorf("%s has no list between %q and %q", list.file, list.begin, list.end)
			continue
		}
		if *update {
			must.Do(t, os.WriteFile(path, []byte(before+list.begin+list.want+list.end+after), 0o666))
			continue
		}
		for line := range strings.Lines(list.want) {
			must.That(t, strings.Contains(got, line), "%s lacks the line %q; run make generate", list.file, line)
		}
		must.Equal(t, len(got), len(list.want), list.file)
	}
}

// each concatenates the lines of types.
func each(rows []row, line func(row) string) (text string) {
	for _, r := range rows {
		text += line(r)
	}
	return text
}

// noted is the note in a comment.
func (r row) noted(comment string) string {
	if r.note == "" {
		return ""
	}
	return fmt.Sprintf(comment, r.note)
}
