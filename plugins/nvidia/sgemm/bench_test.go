package sgemm

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
)

// BenchmarkEstimate is one prediction of 1,000 configurations.
func BenchmarkEstimate(b *testing.B) {
	m, p := open(b, "sm86@a6000"), square(2048)
	c, err := m.Candidates(b.Context(), p, arch.Space{Kernel: Family})
	if err != nil {
		b.Fatal(err)
	}
	configs := c.Configs
	for len(configs) < 1000 {
		configs = append(configs, c.Configs...)
	}
	configs = configs[:1000]
	estimates := make([]arch.Estimate, len(configs))
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Estimate(b.Context(), estimates, p, configs); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCount is the addresses of all candidates, which the first question of an operand's layout walks.
func BenchmarkCount(b *testing.B) {
	m, p := open(b, "sm86@a6000"), square(2048)
	c, err := m.Candidates(b.Context(), p, arch.Space{Kernel: Family})
	if err != nil {
		b.Fatal(err)
	}
	operands := operandsOf(&p)
	b.ReportAllocs()
	for b.Loop() {
		walks.kernels = nil
		for i := range c.Configs {
			walk(counting{operands, kernelOf(&c.Configs[i])})
		}
	}
}
