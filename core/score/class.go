package score

import (
	"fmt"

	"github.com/origami-gemm/origami/core/gemm"
)

// Class is a class of problem shapes. Models fail differently on each, and a mean over all problems would hide that.
type Class uint8

// The classes. A problem belongs to the first one that fits.
const (
	// Tiny problems have at most 2·512³ operations. Launch and prologue take longer than the arithmetic.
	Tiny Class = iota
	// Decode problems have an M or N of at most 64. One operand is streamed once, so memory bandwidth limits them.
	Decode
	// LargeK problems have a K of at least 8 times M and N. They have too few output tiles to fill the device.
	LargeK
	// Skinny problems have one side of C at least 8 times as long as the other.
	Skinny
	// Square problems are all others.
	Square
	numClasses
)

// The limits of the classes.
const (
	tinyFlops   = 2 * 512 * 512 * 512
	decodeSide  = 64
	classAspect = 8
)

// Classes lists the classes.
func Classes() []Class { return []Class{Tiny, Decode, LargeK, Skinny, Square} }

// ClassOf returns a problem's class.
func ClassOf(p gemm.Problem) Class {
	short, long := min(p.M, p.N), max(p.M, p.N)
	switch {
	case p.Flops() <= tinyFlops:
		return Tiny
	case short <= decodeSide:
		return Decode
	case p.K/classAspect >= long:
		return LargeK
	case long/classAspect >= short:
		return Skinny
	default:
		return Square
	}
}

// String returns the class's name as JSON and the terminal show it.
func (c Class) String() string {
	names := [numClasses]string{Tiny: "tiny", Decode: "decode", LargeK: "large-k", Skinny: "skinny", Square: "square"}
	if c < numClasses {
		return names[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}
