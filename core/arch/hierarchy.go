package arch

import (
	"slices"

	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/unit"
)

// MemoryHierarchy is the ordered list of a device's memory levels, near to far (L2 → DRAM; L2 → MALL → HBM). It is what
// models compute with.
type MemoryHierarchy interface {
	// Levels describes the levels, near to far. The result is shared: callers must not change it.
	Levels() []Level
}

// Level is one level of the memory hierarchy. Its numbers are the device's, and the same for all models, but for
// Reached.
type Level struct {
	Name string // "L2", "MALL", "DRAM", "HBM"
	// Capacity is the capacity of one partition. It is zero for the last level, which holds everything.
	Capacity unit.Bytes
	// Latency is the time of an access to this level; zero if it is unknown.
	Latency unit.Cycles
	// Partitions is the number of equal, separate caches that the level is split into: 1 if the whole die shares it,
	// the number of XCDs if each has its own.
	Partitions int
	// Bandwidth is what the level delivers as a function of the number of active SMs or CUs.
	Bandwidth Bandwidth
	// DataSheet is the bandwidth that the vendor publishes; zero if it is unknown.
	DataSheet unit.BytesPerSecond
	// Reached is the bandwidth that kernels reach with all units active, where the model has a number of its own for it.
	Reached unit.BytesPerCycle
	// Bound is what limits a kernel that waits for this level.
	Bound Bound
	// Names are the hardware numbers that state the level.
	Names LevelNames
}

// LevelNames names the hardware numbers that state a level: in device files, overrides and formulas. A name is empty
// where no number states the quantity.
type LevelNames struct {
	Capacity, Latency, Partitions, Bandwidth, DataSheet string
	// C0, C1 and C2 are the coefficients of Bandwidth.
	C0, C1, C2 string
}

// Rate is the bandwidth that the model counts on with all units active.
func (l *Level) Rate() unit.BytesPerCycle {
	if l.Reached > 0 {
		return l.Reached
	}
	return l.Bandwidth.Peak
}

// Numbers calls use with every quantity that a hardware number states, and the name of that number. use may change it.
func (l *Level) Numbers(use func(name string, quantity *float64)) {
	partitions := float64(max(l.Partitions, 1))
	for _, n := range []struct {
		name     string
		quantity *float64
	}{
		{l.Names.Capacity, (*float64)(&l.Capacity)}, {l.Names.Latency, (*float64)(&l.Latency)},
		{l.Names.Partitions, &partitions}, {l.Names.Bandwidth, (*float64)(&l.Bandwidth.Peak)},
		{l.Names.DataSheet, (*float64)(&l.DataSheet)}, {l.Names.C0, &l.Bandwidth.C0}, {l.Names.C1, &l.Bandwidth.C1},
		{l.Names.C2, &l.Bandwidth.C2},
	} {
		if n.name != "" {
			use(n.name, n.quantity)
		}
	}
	l.Partitions = int(partitions)
}

// Hierarchy returns levels with the values of the hardware numbers that state them. Units is the number of SMs or CUs.
// A level without capacity and bandwidth is left out, but for the last. If no coefficient has a value, any number of
// units reaches all of a bandwidth.
func Hierarchy(levels []Level, params hw.Set, units int) (all []Level) {
	for i, l := range levels {
		l.Bandwidth.Units = units
		l.Numbers(func(name string, quantity *float64) {
			if p, ok := params.Lookup(name); ok {
				*quantity = p.Value
			}
		})
		if _, ok := params.Lookup(l.Names.C1); !ok && !l.Bandwidth.Linear {
			l.Bandwidth.C2 = 1
		}
		if l.Capacity > 0 || l.Bandwidth.Peak > 0 || i == len(levels)-1 {
			all = append(all, l)
		}
	}
	return all
}

// LevelOf returns the level at which a kernel has a bound. It is empty if the device has no such level.
func LevelOf(levels []Level, b Bound) Level {
	if i := slices.IndexFunc(levels, func(l Level) bool { return l.Bound == b }); i >= 0 {
		return levels[i]
	}
	return Level{}
}

// Bandwidth is peak bandwidth times a fraction that depends on how many of the device's units are active.
type Bandwidth struct {
	Peak unit.BytesPerCycle
	// Units is the number of SMs or CUs of the device.
	Units int
	// Linear says that the fraction is active/Units. Otherwise it is min((C0·a² + C1·a) + C2, 1), and 1 when a > Units.
	Linear     bool
	C0, C1, C2 float64
}

// Fraction returns the share of Peak that `active` units reach.
func (b Bandwidth) Fraction(active int) float64 {
	a := float64(active)
	if b.Linear {
		return a / float64(b.Units)
	}
	if active > b.Units {
		return 1
	}
	// The conversions keep Go from fusing a product into the addition, so that every platform rounds alike.
	return min(float64(float64(b.C0*a*a)+float64(b.C1*a))+b.C2, 1)
}

// At returns Peak · Fraction(active).
func (b Bandwidth) At(active int) unit.BytesPerCycle {
	return unit.BytesPerCycle(float64(b.Peak) * b.Fraction(active))
}
