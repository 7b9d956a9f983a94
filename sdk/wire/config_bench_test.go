package wire

import (
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
)

func benchConfigs() []gemm.Config {
	configs := make([]gemm.Config, 1000)
	for i := range configs {
		configs[i] = gemm.Config{
			BlockM: 16 + i, BlockN: 64, BlockK: 32, NumWarps: 4, NumStages: 1 + i%5, SplitK: 1, Kernel: "triton",
		}
	}
	return configs
}

func BenchmarkToConfigs(b *testing.B) {
	configs := benchConfigs()
	b.ReportAllocs()
	for b.Loop() {
		_ = toConfigs(configs)
	}
}

func BenchmarkFromConfigs(b *testing.B) {
	q := toConfigs(benchConfigs())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fromConfigs(q); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHashConfigs(b *testing.B) {
	configs := benchConfigs()
	b.ReportAllocs()
	for b.Loop() {
		_ = hashConfigs(configs)
	}
}
