package main

import (
	"errors"
	"slices"
	"strings"

	stopwatch "github.com/origami-gemm/origami/core/timing"
)

// series is what many times have in common.
type series struct {
	part, dtype, scheme, out, transA, transB, timing, library, release, doubt, source string
}

var seriesColumns = []string{"series", "part", "dtype", "scheme", "out_dtype", "trans_a", "trans_b", "timing",
	"library", "release", "doubt", "source"}

func (s series) cells() []string {
	return []string{s.part, s.dtype, s.scheme, s.out, s.transA, s.transB, s.timing, s.library, s.release,
		s.doubt, s.source}
}

func (s series) compare(o series) int { return slices.Compare(s.cells(), o.cells()) }

// sources finds the id of a source in what the tables call it. The first that fits counts. Those without an id are left
// out; docs/published.md says why.
var sources = []struct{ name, id string }{
	{"gpu-flops-bench", ""}, // the inputs are constants, with which clocks run high
	{"find_string", ""},     // the source cannot be cited
	{"mag-/", ""},           // the best of a search over shapes
	{"ml-engineering", ""},
	{"consumer-mamf", ""},
	{"amdpilot", ""}, // inputs unknown, one of them zeros
	{"aiconfigurator", "aiconfigurator"},
	{"vidur", "vidur"},
	{"amd-tuned", "amd-tuned"},
	{"aiter", "aiter"},
	{"rocBLAS", "rocblas"},
	{"hipBLASLt", "hipblaslt"},
	{"NeuSight", "neusight"},
	{"ROCm/vllm", "vllm"},
	{"LLMCompass", "llmcompass"},
	{"torch-perform", "torch-issues"},
	{"HipKittens", "hipkittens"},
	{"DeepBench", "deepbench"},
	{"DeepGEMM", "deepgemm"},
	{"rocm-blogs", "rocm-blogs"},
	{"tritonBLAS", "tritonblas"},
	{"LLMServingSim", "llmservingsim"},
	{"openxla", "xla"},
	{"origami", "origami"},
}

// large are the sources with tens of thousands of shapes, of which a sample is kept.
var large = map[string]bool{"aiconfigurator": true, "vidur": true}

// libraries are the libraries by source. The fastest of aiter's is kept, whichever it is.
var libraries = map[string]string{
	"aiconfigurator": "cuBLAS", "vidur": "cuBLAS", "neusight": "cuBLAS", "deepbench": "cuBLAS", "deepgemm": "DeepGEMM",
	"aiter": "fastest of aiter", "rocblas": "rocBLAS", "hipblaslt": "hipBLASLt", "vllm": "fastest of TunableOp",
	"torch-issues": "torch", "llmcompass": "torch", "hipkittens": "vendor", "rocm-blogs": "hipBLASLt",
	"tritonblas": "torch", "origami": "cuBLAS",
	"llmservingsim": "cuBLAS", "xla": "cuBLAS",
}

// early are the sources whose libraries were those of the first year of a generation of GPUs. Later ones overtook them.
var early = map[string]bool{"vidur": true, "vllm": true}

// timings are what the times of a source are of. docs/published.md says what that rests on.
var timings = map[string]stopwatch.Timing{
	"aiconfigurator": stopwatch.Layers,
	"amd-tuned":      stopwatch.Warm,
	"aiter":          stopwatch.Cold, "deepgemm": stopwatch.Cold, "rocm-blogs": stopwatch.Cold,
	"deepbench": stopwatch.Warm, "hipblaslt": stopwatch.Warm, "rocblas": stopwatch.Warm, "torch-issues": stopwatch.Warm,
	"vllm":       stopwatch.Warm,
	"hipkittens": stopwatch.Events, "neusight": stopwatch.Events, "tritonblas": stopwatch.Events,
	"llmcompass":    stopwatch.Host,
	"llmservingsim": stopwatch.Model, "vidur": stopwatch.Model,
	"xla": stopwatch.Alone,
}

// doubtOf says why the times of a row are not scored, by a word that docs/published.md explains, empty for most.
func doubtOf(s *series, row map[string]string) string {
	switch {
	case s.source == "amd-tuned":
		return row["doubt"]
	case s.source == "xla" && s.dtype == "fp8" && strings.HasPrefix(s.part, "H100"):
		return "near-peak"
	case s.source != "rocblas":
		return ""
	}
	k, figures := row["k"], row["figures"]
	switch {
	case slices.Contains([]string{"1", "32", "64", "128"}, k):
		return "small-k"
	case s.dtype == "fp32" && (old(row["m"]) || old(row["n"]) || old(k)):
		return "old-tuning"
	case s.dtype == "fp16" && (figures == "2" || figures == "1" && slices.Contains([]string{"256", "1280", "3328"}, k)):
		return "other-sums"
	}
	return ""
}

// old reports whether a size is one of a list with half of the rate of its neighbours.
func old(size string) bool { return slices.Contains([]string{"512", "2048", "33708"}, size) }

// seriesOf returns the series of a row, and false if the row is left out.
func seriesOf(row map[string]string) (s series, ok bool, err error) {
	named := row["source"] + row["sources"]
	at := slices.IndexFunc(sources, func(c struct{ name, id string }) bool { return strings.Contains(named, c.name) })
	if at < 0 {
		return s, false, errors.New("an unknown source")
	}
	s = series{
		part: row["device"], dtype: row["dtype"], transA: row["trans_a"], transB: row["trans_b"],
		source: sources[at].id,
	}
	if s.source == "" || s.source == "hipkittens" && !vendors(row["library"]) {
		return s, false, nil
	}
	if s.scheme, err = schemeOf(s.dtype, row["scheme"]); err != nil {
		return s, false, err
	}
	if s.library = libraries[s.source]; s.library == "" {
		s.library = row["library"]
	}
	if strings.Contains(row["library"], "trtllm") {
		s.library = "TensorRT-LLM"
	}
	if s.release = "current"; early[s.source] || row["release"] == "early" {
		s.release = "early"
	}
	of := timings[s.source]
	switch {
	case s.source == "origami":
		of = stopwatch.Timing(row["cache"])
	case s.library == "TensorRT-LLM":
		of = stopwatch.Layers5 // its collector has five, those of the other stacks six
	case s.source == "hipblaslt" && s.part == "MI210":
		of = stopwatch.Host // 26 µs above those of other sources, at all sizes
	}
	s.timing, s.doubt = string(of), doubtOf(&s, row)
	switch out := row["out_dtype"]; out {
	case "e4m3", "e4m3fnuz":
		s.out = "fp8"
	case "":
		if s.dtype == "fp16" || s.dtype == "bf16" {
			s.out = s.dtype
		}
	default:
		s.out = out
	}
	return s, true, nil
}

// vendors reports whether a library is that of a vendor. An empty name is one of a table of vendors' libraries.
func vendors(library string) bool {
	return library == "" || strings.HasPrefix(library, "cuBLAS") || strings.HasPrefix(library, "hipBLAS")
}

// ownRow completes a row of what was measured for origami. Its several figures are five runs of one program.
func ownRow(row map[string]string) {
	row["source"], row["device"], row["cache"], row["figures"], row["trans_a"] = "origami", "H200-SXM", row["l2"], "1", "0"
	row["out_dtype"] = map[string]string{"fp8": "bf16", "int8": "int32", "tf32": "fp32", "fp32": "fp32"}[row["dtype"]]
}

// schemeOf returns the short name of a scheme of scales. With a scale per row, whether B is stored in the order of the
// kernel is no part of it: the fastest counts. With scales per block it is: such kernels take 0.5 to 0.9 of the time.
func schemeOf(dtype, text string) (string, error) {
	name, known := map[string]string{
		"": "none", "none": "none",
		"per-tensor": "tensor",
		// A scale that is known before still leaves a kernel that converts A, in the times too: 8x4096x4096 takes twice as
		// long on a B200 as with blocks, and 4096x4096x4096 as long as in bf16.
		"per-tensor static": "tensor+quant",
		"per-tensor, dynamic quant of A inside the time": "tensor+quant",
		"rowwise": "row", "block128": "block128", "blockscale32": "block32",
		"block 1x128/128x128, quantisation not in the time": "block128",
		"block 1x128/128x128 + quant of A inside the time":  "block128+quant",
		"nvfp4 block 16 + quant of A inside the time":       "block16+quant",
		"block128+preshuffle":                               "block128+preshuffle",
	}[strings.Replace(text, "rowwise+preshuffle", "rowwise", 1)]
	if !known {
		return "", errors.New("an unknown scheme")
	}
	if name == "none" && dtype == "fp8" {
		name = "tensor"
	}
	return name, nil
}
