package published

import "testing"

// Reading the tables delays `eval --published` once.
func BenchmarkDecode(b *testing.B) {
	known := make([]*Series, 400)
	for i := range known {
		known[i] = &Series{}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseTimes(timesCSV, known); err != nil {
			b.Fatal(err)
		}
	}
}
