// Package kernel is the kernel family of AMD's Tensile, which generates the kernels of rocBLAS and hipBLASLt: their
// tiles, how waves and threads share a tile, and what fits on a CU.
package kernel

import (
	"fmt"
	"math/bits"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// Name is the family's name in requests and configurations.
const Name = "tensile"

// Doc describes the family.
const Doc = "kernels of AMD's Tensile, in rocBLAS and hipBLASLt; the model was fitted to the choices and speeds that " +
	"AMD publishes. Times of the kernels that lost are not public, so nobody knows the regret of a pick"

// StreamK and LocalSplit are the axes that the kernels have beyond the numbers of every configuration.
var (
	StreamK = gemm.Axis{
		Name: "stream_k", Doc: "1: the steps of all tiles are dealt evenly to the CUs (StreamK)",
		Type: gemm.Integer, Values: []string{"0", "1"}, Default: "0",
	}
	LocalSplit = gemm.Axis{
		Name: "local_split", Doc: "waves of a work-group that share a tile and divide each of its steps (LocalSplitU)",
		Type: gemm.Integer, Values: []string{"1", "2", "4"}, Default: "1",
	}
	Axes = []gemm.Axis{StreamK, LocalSplit}
)

// CU is what the family has to know of a compute unit.
type CU struct {
	FMA                bool // no matrix instructions
	StreamK            bool // kernels with stream-K exist
	Sides              []int
	LDS                int // bytes that a work-group can use
	RegistersPerThread int
	Buffers            int // operand tiles in LDS
}

// Space are the configurations of the family, of an element type.
func (cu *CU) Space(t gemm.DType) arch.Space {
	s := arch.Space{
		Kernel: Name, BlockM: cu.Sides, BlockN: cu.Sides, NumStages: []int{cu.Buffers},
		SplitK: []int{1, 2, 3, 4, 5, 6, 8, 12, 16, 32},
		Axes: []arch.AxisValues{
			{Name: StreamK.Name, Values: []string{"0"}}, {Name: LocalSplit.Name, Values: []string{"1"}},
		},
	}
	if cu.FMA {
		s.BlockK, s.NumWarps = []int{8, 16, 32}, []int{1, 2, 4}
		s.Axes[1].Values = LocalSplit.Values
	} else {
		s.NumWarps = []int{1, 4}
		for _, bytes := range []int{64, 128, 256, 512} {
			s.BlockK = append(s.BlockK, bytes/t.Bytes())
		}
		if cu.StreamK {
			s.Axes[0].Values = StreamK.Values
		}
	}
	return s
}

// instructionRows are the rows, and the columns, of the matrix instruction with the smallest tile.
const instructionRows = 16

// Layout is how the waves of a work-group share its tile, and with FMA the threads.
type Layout struct{ WavesM, WavesN, ThreadM, ThreadN int }

// LayoutOf returns the layout with the fewest reads from LDS, and false if there is none. Split is the local split.
func (cu *CU) LayoutOf(c *gemm.Config, split int) (best Layout, ok bool) {
	if c.NumWarps%split != 0 {
		return best, false
	}
	if cu.FMA {
		return fmaLayout(c, 64*c.NumWarps/split)
	}
	least := 0
	for m := 1; m <= c.NumWarps/split; m++ {
		n := c.NumWarps / split / m
		if m*n*split != c.NumWarps || c.BlockM%(m*instructionRows) != 0 || c.BlockN%(n*instructionRows) != 0 {
			continue
		}
		if reads := c.BlockM*n + c.BlockN*m; !ok || reads < least {
			best, least, ok = Layout{WavesM: m, WavesN: n}, reads, true
		}
	}
	return best, ok
}

// maxThreadTile bounds a side of a thread's tile.
const maxThreadTile = 8

func fmaLayout(c *gemm.Config, threads int) (best Layout, ok bool) {
	for m := 1; m <= threads; m *= 2 {
		n := threads / m
		if m*n != threads || c.BlockM%m != 0 || c.BlockN%n != 0 {
			continue
		}
		l := Layout{WavesM: 1, WavesN: 1, ThreadM: c.BlockM / m, ThreadN: c.BlockN / n}
		if max(l.ThreadM, l.ThreadN) > maxThreadTile {
			continue
		}
		if !ok || l.ThreadM+l.ThreadN < best.ThreadM+best.ThreadN {
			best, ok = l, true
		}
	}
	return best, ok
}

// What kernels the libraries have, as far as their tables show.
const (
	// maxShared bounds the tiles that waves share by dividing their steps.
	maxShared = 64 * 32
	// maxOneWave bounds the tiles of one wave with matrix instructions.
	maxOneWave = 32 * 16
)

// Missing returns why no library has such a kernel, or nothing. Of its axes and its elements it is told.
func (cu *CU) Missing(c *gemm.Config, elementBytes int, streamK, localSplit bool) string {
	area := c.BlockM * c.BlockN
	switch {
	// Of rocBLAS's times on a Vega 10, 1x128x1408 and 64x128x1280 take 57 and 54 µs: one CTA on the whole of K.
	// With smaller tiles and longer steps, predictions are 0.89 of such times below 80 µs, without them 1.03.
	case cu.FMA && elementBytes == 2 && (c.SplitK > 1 || localSplit || c.BlockK > 16 ||
		min(c.BlockM, c.BlockN) < 32 || max(c.BlockM, c.BlockN) < 64):
		return "kernels for fp16 without matrix instructions split no K, have tiles from 32x64 on and block_k up to 16"
	case streamK && c.SplitK > 1:
		return "stream-K deals the steps of a tile itself: split_k must be 1"
	case streamK && (c.NumWarps != 4 || localSplit || !streamSide(c.BlockM) || !streamSide(c.BlockN)):
		return "stream-K kernels have four waves and tiles of 32, 64, 128 and 256"
	case localSplit && area > maxShared:
		return sharedTooLarge
	case !cu.FMA && c.NumWarps == 1 && area > maxOneWave:
		return oneWaveTooLarge
	}
	return ""
}

func streamSide(n int) bool { return n >= 32 && bits.OnesCount(uint(n)) == 1 }

var (
	sharedTooLarge  = fmt.Sprintf("kernels with a local split have tiles of at most %d elements", maxShared)
	oneWaveTooLarge = fmt.Sprintf("kernels of one wave have tiles of at most %d elements", maxOneWave)
)

// LDS returns the bytes of the operand tiles in LDS.
func LDS(c *gemm.Config, elementBytes int) int {
	return c.NumStages * (c.BlockM + c.BlockN) * c.BlockK * elementBytes
}

// Fits returns why a configuration does not fit on a CU, or nothing. Registers are those of a lane.
func (cu *CU) Fits(c *gemm.Config, elementBytes int, registers float64) arch.Reason {
	switch {
	case LDS(c, elementBytes) > cu.LDS:
		return arch.ReasonSharedMemory
	case registers > float64(cu.RegistersPerThread):
		return arch.ReasonRegisters
	}
	return ""
}
