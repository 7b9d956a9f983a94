package tablecmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/stats"
	"github.com/origami-gemm/origami/plugins/serving"
)

// reading says whether a server reads tables, and which.
type reading struct {
	serving.Backend
	Files []string `json:"files"` // the names for which the server looks
	Ships []string `json:"ships"` // those that it has
	// the predicted time with these ÷ the time with origami's: the geometric mean, `null` without one
	ShippedGain *float64 `json:"shipped_gain" unit:"ratio"`

	ratios []float64
}

// shipped returns the kernels of a table that the server ships, for the numbers of rows that are asked for: those of
// the nearest ones. Without a table, they do not run.
func (r *reading) shipped(name string, sizes []int) (kernels []gemm.Config) {
	r.Files = append(r.Files, name)
	table := serving.Shipped(r.Server, name)
	if len(table) == 0 {
		return slices.Repeat([]gemm.Config{noKernel}, len(sizes))
	}
	r.Ships = append(r.Ships, name)
	rows := slices.Sorted(maps.Keys(table))
	for _, m := range sizes {
		kernels = append(kernels, table[slices.MinFunc(rows, func(a, b int) int { return max(a-m, m-a) - max(b-m, m-b) })])
	}
	return kernels
}

// noKernel runs nowhere: no device has room for its tile.
var noKernel = gemm.Config{BlockM: 4096, BlockN: 4096, BlockK: 1024, NumWarps: 4, NumStages: 2, GroupM: 1, SplitK: 1}

// compare adds the time with a kernel that the server ships. One that does not run is left out.
func (r *reading) compare(theirs, own float64) {
	if ratio := theirs / own; ratio < 1e9 {
		r.ratios = append(r.ratios, ratio)
		mean := stats.Geomean(r.ratios)
		r.ShippedGain = &mean
	}
}

// String says it in a line.
func (r *reading) String() string {
	text := fmt.Sprintf("%s %s: %s", r.Server, r.Version, r.Runs)
	switch {
	case r.Reads != "yes" && r.But == "":
		return text + ", which reads no table"
	case len(r.Files) == 0:
		return text + ", which reads no table; one is read with " + r.But
	case r.Reads != "yes":
		text += fmt.Sprintf(", which reads no table; with %s, Triton reads %s", r.But, r.Files[0])
	default:
		text += ", which reads " + r.Files[0]
	}
	if n := len(r.Files) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	switch {
	case len(r.Ships) == 0:
		return text + " (not shipped)"
	case r.ShippedGain == nil:
		return text + fmt.Sprintf(" (%d shipped)", len(r.Ships))
	}
	return text + fmt.Sprintf(" (%d shipped; origami's is %s times as fast, predicted)", len(r.Ships),
		digits.ThreeDigits(*r.ShippedGain))
}

// fileName is the name by which a server looks for a table: of experts, or without any of one matrix.
func fileName(server string, e *experts, device string) string {
	if parts := strings.Split(device, "_"); server == vllm && e.count > 0 && slices.Contains(parts, "H200") {
		device = "NVIDIA_H200" // whatever else the name has (fused_moe.get_config_file_name)
	}
	name := fmt.Sprintf("N=%d,K=%d,device_name=%s", e.inter, e.hidden, device)
	if e.count > 0 {
		name = fmt.Sprintf("E=%d,N=%d,device_name=%s", e.count, e.inter, device)
	}
	if e.dtype == gemm.FP8 {
		name += ",dtype=fp8_w8a8"
	}
	switch {
	case e.blocks && server == sglang:
		name += fmt.Sprintf(",block_shape=[%d, %d]", scaleBlock, scaleBlock)
	case e.blocks:
		name += fmt.Sprintf(",block_shape=[%d,%d]", scaleBlock, scaleBlock)
	case e.weights == "fp8_channel" && server == sglang:
		name += ",per_channel_quant=True"
	}
	return name + ".json"
}

// down is the name of SGLang's table for the second product.
func down(name string) string { return strings.TrimSuffix(name, ".json") + "_down.json" }
