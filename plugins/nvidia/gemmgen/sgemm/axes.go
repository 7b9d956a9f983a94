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
		Name: axisPad, Type: gemm.Integer, Values: []string{"0", "1", "2", "4", "8"}, Default: "0", Unit: "word",
		Doc: "unused words behind each row in shared memory",
	},
	{
		Name: axisCopyWidth, Type: gemm.Integer, Values: []string{"1", "2", "4"}, Default: "4",
		Doc: "most elements of a copy from global memory, and of a store to C",
	},
	{
		Name: axisReadWidth, Type: gemm.Integer, Values: []string{"1", "2", "4"}, Default: "4",
		Doc: "most elements of a read from shared memory",
	},
}

// choices are the values of a configuration on the axes.
type choices struct {
	staging, math, laneMap, sharedA            string
	threadM, lanesM, pad, copyWidth, readWidth int
}

// defaults are those of a configuration that names no axis.
var defaults = choices{
	staging: stagingAsync, math: mathFMA, laneMap: mapCyclic, sharedA: alongM,
	threadM: 8, lanesM: 4, copyWidth: 4, readWidth: 4,
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
			o.pad = axes[6].Number(c.Axes)
		case axisCopyWidth:
			o.copyWidth = axes[7].Number(c.Axes)
		case axisReadWidth:
			o.readWidth = axes[8].Number(c.Axes)
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
		{axisSharedA, o.sharedA != defaults.sharedA}, {axisPad, o.pad != defaults.pad},
		{axisCopyWidth, o.copyWidth != defaults.copyWidth}, {axisReadWidth, o.readWidth != defaults.readWidth},
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
