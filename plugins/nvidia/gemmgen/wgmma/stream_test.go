package wgmma

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/gentest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
)

// TestLaunchStream: the launch has the shares, and the workspace is large enough for any device.
func TestLaunchStream(t *testing.T) {
	s := spec(t, "128x128x64,warps=12,stages=3,cluster=2,stream_k=1", "kn", gemm.FP16, gemm.FP16)
	s.Processors = 132
	k := emit(t, s)
	call := gemmgen.NewCall(gentest.Problem(1032, 2408, 5432, 1, false, false))
	_, err := s.Launch(k, call)
	must.That(t, err != nil, "tiles are shared without a workspace")
	call.Partials, call.Counters = 1<<43, 1<<44
	l := must.Get(s.Launch(k, call))(t)
	got := gentest.Params(k.Kernel, l.Params)
	// 5 × 19 pairs of tiles on 66 clusters: a wave of 66, and 29 that are shared with it, as they are less than half.
	must.That(t, got["whole"] == 0 && got["shared"] == 95*85 && got["share"] == 123 && l.GridX == 132, "%v", got)
	partials, counters := s.Workspace(call.Problem)
	must.That(t, partials >= 132*2*128*128*4 && counters >= 95*2*8*4, "workspace of %v and %v", partials, counters)
	s = spec(t, "64x16x64,warps=8,stages=2,stream_k=1", "kn", gemm.FP16, gemm.FP32)
	call = gemmgen.NewCall(gentest.Problem(64, 16*130, 1<<31-1088, 1, false, false))
	call.Partials, call.Counters = 1<<43, 1<<44
	if _, err := s.Launch(emit(t, s), call); err == nil || !strings.Contains(err.Error(), "blocks along K") {
		t.Errorf("more blocks than 32 bits can count: %v", err)
	}
}
