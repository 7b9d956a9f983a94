package gemm_test

import (
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
)

var plain = gemm.Config{
	BlockM: 128, BlockN: 256, BlockK: 64, GroupM: 8, NumWarps: 8, NumStages: 3, SplitK: 1, Kernel: "triton",
}

func BenchmarkProblemValidate(b *testing.B) {
	p := gemm.New(4096, 4096, 4096)
	for b.Loop() {
		if err := p.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	c := plain
	for b.Loop() {
		if err := c.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkConfigString(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = plain.String()
	}
}

func BenchmarkParseConfig(b *testing.B) {
	b.ReportAllocs()
	text := plain.String()
	for b.Loop() {
		if _, err := gemm.ParseConfig(text, gemm.Config{}); err != nil {
			b.Fatal(err)
		}
	}
}

// A map of configurations, as the readers of measurements have.
func BenchmarkConfigAsKey(b *testing.B) {
	seen := map[gemm.Config]int{}
	for i := range 1000 {
		c := plain
		c.BlockM = 1 + i
		seen[c] = i
	}
	for b.Loop() {
		if seen[plain] == 0 {
			b.Fatal("lost")
		}
	}
}
