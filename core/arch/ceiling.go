package arch

import (
	"fmt"

	"github.com/origami-gemm/origami/core/gemm"
)

// Place is where a ceiling counts: operations at AtCompute, bytes at the others.
type Place uint8

// The places, near to far.
const (
	AtCompute Place = iota
	AtShared
	AtRequested // what SMs or CUs ask global memory for
	AtL2
	AtMALL
	AtDRAM
)

var placeNames = [...]string{"compute", "shared memory", "requested", "L2", "MALL", "DRAM"}

// String returns the name in tables and JSON.
func (p Place) String() string {
	if int(p) < len(placeNames) {
		return placeNames[p]
	}
	return fmt.Sprintf("level(%d)", uint8(p))
}

// MarshalText writes the name.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Ceiling is a limit of a device: operations per second at AtCompute, bytes per second elsewhere.
type Ceiling struct {
	// Name is the name of the unit or the memory. At AtCompute it is the name of the instruction: tables write the element
	// type before it.
	Name  string
	Level Place
	// DType is the element type of an instruction. Types that cost the same have its ceilings too.
	DType gemm.DType
	// Limit is the peak of the data sheet, or the width of the unit times the clock; no kernel can exceed it. Reached is
	// the best of a microbenchmark. Either is 0 if it is unknown.
	Limit, Reached float64
	// Source says where both come from.
	Source string
}

// Unit is the unit of the ceiling.
func (c *Ceiling) Unit() string {
	if c.Level == AtCompute {
		return "FLOP/s"
	}
	return "B/s"
}

// Roof is the lower of the two: what a kernel can be expected to reach.
func (c *Ceiling) Roof() float64 {
	if c.Reached > 0 && (c.Limit == 0 || c.Reached < c.Limit) {
		return c.Reached
	}
	return c.Limit
}

// Widen sets the limit of the ceiling of a unit that each SM or CU has: a constant of the description in bytes per
// cycle, times the number of units and the clock. It adds the ceiling if the description has none of its level.
func (d *Description) Widen(name string, level Place, constant string) {
	for i := range d.Constants {
		width := &d.Constants[i]
		if width.Name != constant {
			continue
		}
		limit := width.Value * float64(d.Units) * float64(d.Clock)
		for j := range d.Ceilings {
			if c := &d.Ceilings[j]; c.Level == level {
				c.Limit, c.Source = limit, "limit: "+width.Source+"; reached: "+c.Source
				return
			}
		}
		d.Ceilings = append(d.Ceilings, Ceiling{Name: name, Level: level, Limit: limit, Source: width.Source})
	}
}
