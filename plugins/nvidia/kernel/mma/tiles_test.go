package mma_test

import (
	"testing"

	"github.com/origami-gemm/origami/internal/testing/nvtest"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/mma"
)

// What enoughStages stands on: on every device of the reference model, which sorts by it, three blocks of 64×64×32
// hold 1.7 times the bytes that DRAM has under way. On the H20-3e, where 78 SMs share 4.8 TB/s, they hold 1.4 times.
func TestFourStagesCoverTheLatency(t *testing.T) {
	const block = (64*32 + 32*64) * kernel.ElementBytes
	for _, request := range nvtest.Devices(t, "reference", "mma") {
		a := nvtest.Open(t, request)
		need := nvtest.Param(t, a, "hbm_latency_penalty").Value * nvtest.Param(t, a, "dram_perf_ratio").Value /
			nvtest.Param(t, a, "num_sms").Value
		const ahead = (mma.EnoughStages - 1) * block
		least := 1.7
		if a.Describe().Device == "h20-3e" {
			least = 1.4
		}
		if ahead < least*need || need < 1<<10 {
			t.Errorf("%s: %d bytes ahead, %.0f in flight", a.Describe().ID(), ahead, need)
		}
	}
}
