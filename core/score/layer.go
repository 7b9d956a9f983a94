package score

import (
	"fmt"

	"github.com/origami-gemm/origami/core/gemm"
)

// Layer is a class of the shapes of a network's layers, whose M is the number of tokens. Unlike Class, it tells how few
// tokens are decoded from how many are read.
type Layer uint8

// The classes of layers. A problem belongs to the first one that fits.
const (
	// LayerTiny problems have at most 1 MiB of operands and results. The launch takes longer than the work.
	LayerTiny Layer = iota
	// LayerNarrow problems have an N of at most 128.
	LayerNarrow
	// LayerLargeK problems have a K of at least 8 times M and N.
	LayerLargeK
	// LayerDecode problems have an M of at most 16.
	LayerDecode
	// LayerSmall problems have an M of at most 256.
	LayerSmall
	// LayerPrefill problems are all others.
	LayerPrefill
	numLayers
)

// The limits of the classes of layers.
const (
	tinyBits    = 8 << 20
	narrowN     = 128
	decodeM     = 16
	smallM      = 256
	largeKRatio = classAspect
)

// Layers lists the classes of layers.
func Layers() []Layer {
	return []Layer{LayerTiny, LayerNarrow, LayerLargeK, LayerDecode, LayerSmall, LayerPrefill}
}

// LayerOf returns the class of a problem.
func LayerOf(p gemm.Problem) Layer {
	bits := func(rows, columns int, t gemm.DType) float64 {
		return float64(rows) * float64(columns) * float64(t.Bits())
	}
	switch {
	case bits(p.M, p.K, p.DType)+bits(p.K, p.N, p.DType)+bits(p.M, p.N, p.Output()) <= tinyBits:
		return LayerTiny
	case p.N <= narrowN:
		return LayerNarrow
	case p.K/largeKRatio >= max(p.M, p.N):
		return LayerLargeK
	case p.M <= decodeM:
		return LayerDecode
	case p.M <= smallM:
		return LayerSmall
	default:
		return LayerPrefill
	}
}

// String returns the name as JSON and the terminal show it.
func (l Layer) String() string {
	names := [numLayers]string{LayerTiny: "tiny", LayerNarrow: "narrow-n", LayerLargeK: "large-k",
		LayerDecode: "decode", LayerSmall: "small-m", LayerPrefill: "prefill"}
	if l < numLayers {
		return names[l]
	}
	return fmt.Sprintf("layer(%d)", uint8(l))
}
