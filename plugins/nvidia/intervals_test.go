package nvidia

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// Every line of the embedded file is found under what it says of itself.
func TestIntervalsAreFound(t *testing.T) {
	type head struct {
		Arch, Device, Model string
		Rung                arch.Rung
	}
	lines := map[head]int{}
	for line := range bytes.Lines(data.Intervals) {
		var h head
		must.Do(t, json.Unmarshal(line, &h))
		lines[h]++
	}
	must.Need(t, len(lines) != 0, "there are no intervals")
	for h, want := range lines {
		for range 2 { // the second time from memory
			got := intervalsOf(h.Arch, h.Device, h.Model, h.Rung)
			must.That(t, len(got) == want, "%v: %d of %d lines are found", h, len(got), want)
		}
	}
	if got := intervalsOf("sm90", "h2", "pipelined", arch.RungSpec); got != nil {
		t.Errorf("the beginning of a name finds %d lines", len(got))
	}
}
