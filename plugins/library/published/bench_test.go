package published

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
)

// Reading the tables delays `eval --published` once.
func BenchmarkDecode(b *testing.B) {
	known := make([]*Series, 200)
	for i := range known {
		known[i] = &Series{}
	}
	b.ReportAllocs()
	for b.Loop() {
		z, err := gzip.NewReader(bytes.NewReader(timesCSV))
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := parseTimes(text, known); err != nil {
			b.Fatal(err)
		}
	}
}
