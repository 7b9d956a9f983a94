package main

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Whatever the text of a request, the result is a model that answers or returns errors, or a one-line error. The
// process never ends.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{
		`{"arch":"sm90"}`, `{"arch":"gfx942","options":{"occ":"2"}}`,
		`{"arch":"sm89","overrides":{"clock":{"value":1,"unit":"GHz"}},"space":{"block_m":[64,128]}}`,
		`{"arch":"sm90","rung":"spec","live":{"name":"GPU",` +
			`"attributes":{"num_sms":46,"clock":1e9,"l2_bytes":1e7,"dram_bandwidth":5e11}}}`,
		`{"arch":"sm90@h200","kernel":"mma","model":"refined"}`,
		`{"arch":"sm89","space":{"block_m":[0],"split_k":[-1]}}`,
		`{"arch":"sm90","compiled":"bm,bn\n1,2","characterization":"bm"}`,
		`{"arch":"sm89","overrides":{"num_sms":1e308}}`, ``, `null`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<9 {
			return // long axes make large spaces, which are slow
		}
		m, err := open([]byte(text))
		if err != nil {
			if m != nil || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("%v, %q", m, err)
			}
			return
		}
		for _, p := range []gemm.Problem{gemm.New(512, 512, 512), gemm.New(1, 1, 1), {}} {
			e, err := m.selectOne(p)
			switch {
			case err != nil && diag.KindOf(err) != diag.Input:
				t.Fatalf("%s: %v", text, err)
			case err == nil && !(e.Estimate.Cycles > 0):
				t.Fatalf("%s: %+v", text, e)
			}
		}
	})
}
