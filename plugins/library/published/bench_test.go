package published

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"testing"
)

// Reading the tables delays `eval --published` once.
func BenchmarkDecode(b *testing.B) {
	known := make([]*Series, 400)
	for i := range known {
		known[i] = &Series{}
	}
	b.ReportAllocs()
	for b.Loop() {
		_, err := parseTimes(timesCSV, known)
		must.Do(b, err)
	}
}
