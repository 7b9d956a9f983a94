package sgemm

import "github.com/origami-gemm/origami/core/gemm"

// The names of the axes.
const (
	axisStaging   = "staging"
	axisMath      = "math"
	axisThreadM   = "thread_m"
	axisLanesM    = "lanes_m"
	axisLaneMap   = "lane_map"
	axisSharedA   = "shared_a"
	axisPad       = "pad"
	axisCopyWidth = "copy_width"
	axisReadWidth = "read_width"
)

// The values of the axes that are names.
const (
	stagingAsync     = "async"
	stagingRegisters = "registers"
	stagingNone      = "none"
	mathFMA          = "fma"
	mathWMMA         = "wmma"
	mapCyclic        = "cyclic"
	mapQuad          = "quad"
	mapBlock         = "block"
	alongM           = "m"
	alongK           = "k"
)

// The values of pad and read_width that are the same for A and B, or differ.
var (
	pads   = []string{"0", "1", "2", "4", "8", "a1", "a4", "b4", "b5"}
	widths = []string{"1", "2", "4", "a1b4", "a4b1"}
)

// axes are what the family's configurations have beyond the numbers of every configuration.
var axes = []gemm.Axis{
	{
		Name: axisStaging, Type: gemm.Enumeration, Values: []string{stagingAsync, stagingRegisters, stagingNone},
		Default: stagingAsync,
		Doc:     "how operands reach shared memory: cp.async, through registers, or not at all",
	},
	{
		Name: axisMath, Type: gemm.Enumeration, Values: []string{mathFMA, mathWMMA}, Default: mathFMA,
		Doc: "what multiplies: FMA instructions in fp32, or tensor cores in fp16 with fp32 sums",
	},
	{
		Name: axisThreadM, Type: gemm.Integer, Values: []string{"1", "2", "4", "8", "16"}, Default: "8",
		Doc: "rows of C that a thread computes; the number of threads gives its columns",
	},
	{
		Name: axisLanesM, Type: gemm.Integer, Values: []string{"1", "2", "4", "8", "16", "32"}, Default: "4", Unit: "lane",
		Doc: "lanes of a warp along M; the others are along N",
	},
	{
		Name: axisLaneMap, Type: gemm.Enumeration, Values: []string{mapCyclic, mapQuad, mapBlock}, Default: mapCyclic,
		Doc: "rows and columns of a lane: groups in turns, the same with four lanes as 2x2, or all neighbours",
	},
	{
		Name: axisSharedA, Type: gemm.Enumeration, Values: []string{alongM, alongK}, Default: alongM,
		Doc: "along which dimension rows of A in shared memory are contiguous",
	},
	{
		Name: axisPad, Type: gemm.Enumeration, Values: pads, Default: "0",
		Doc: "unused words behind each row in shared memory; a4: behind those of A alone",
	},
	{
		Name: axisCopyWidth, Type: gemm.Integer, Values: []string{"1", "2", "4"}, Default: "4",
		Doc: "most elements of a copy from global memory, and of a store to C",
	},
	{
		Name: axisReadWidth, Type: gemm.Enumeration, Values: widths, Default: "4",
		Doc: "most elements of a read from shared memory; a1b4: one of A, four of B",
	},
}

// choices are the values of a configuration on the axes.
type choices struct {
	staging, math, laneMap, sharedA string
	threadM, lanesM, copyWidth      int
	padA, padB, widthA, widthB      int
}

// defaults are the values of a configuration that names no axis.
var defaults = choices{
	staging: stagingAsync, math: mathFMA, laneMap: mapCyclic, sharedA: alongM,
	threadM: 8, lanesM: 4, copyWidth: 4, widthA: 4, widthB: 4,
}

// choicesOf reads the axes in one pass: models ask for thousands.
func choicesOf(c *gemm.Config) choices {
	o := defaults
	for name, value := range c.Axes.All() {
		switch name {
		case axisStaging:
			o.staging = value
		case axisMath:
			o.math = value
		case axisLaneMap:
			o.laneMap = value
		case axisSharedA:
			o.sharedA = value
		case axisThreadM:
			o.threadM = axes[2].Number(c.Axes)
		case axisLanesM:
			o.lanesM = axes[3].Number(c.Axes)
		case axisPad:
			o.padA, o.padB = forBoth(value, 0)
		case axisCopyWidth:
			o.copyWidth = axes[7].Number(c.Axes)
		case axisReadWidth:
			o.widthA, o.widthB = forBoth(value, 1)
		}
	}
	return o
}

// idle returns the first of the axes that has no meaning beside the others and is not at its default, or nothing.
func (o *choices) idle() string {
	if o.staging != stagingNone {
		return ""
	}
	for _, x := range []struct {
		name  string
		moved bool
	}{
		{axisSharedA, o.sharedA != defaults.sharedA}, {axisPad, o.padA|o.padB != 0},
		{axisCopyWidth, o.copyWidth != defaults.copyWidth},
		{axisReadWidth, o.widthA != defaults.widthA || o.widthB != defaults.widthB},
		{axisThreadM, o.math == mathWMMA && o.threadM != defaults.threadM},
		{axisLanesM, o.math == mathWMMA && o.lanesM != defaults.lanesM},
		{axisLaneMap, o.math == mathWMMA && o.laneMap != defaults.laneMap},
	} {
		if x.moved {
			return x.name
		}
	}
	return ""
}

// forBoth reads a value for A and B: "4" is for both, "a4b1" for each, "a4" for A alone. A missing value is given as
// other.
func forBoth(value string, other int) (a, b int) {
	a, b = other, other
	for i := range value {
		switch n := int(value[len(value)-1] - '0'); {
		case len(value) == 1:
			return n, n
		case value[i] == 'a':
			a = int(value[i+1] - '0')
		case value[i] == 'b':
			b = n
		}
	}
	return a, b
}
