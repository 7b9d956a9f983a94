package problems

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
)

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
