package pipelined

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// KernelFiles are the contents of files about a family's kernels on a device: the report of a compiler
// (kernel.ReadTable) and a timing pass (kernel.ReadTimings). Either may be nil.
type KernelFiles struct{ Compiled, Timings []byte }

// Sources are what the model may know about kernels.
type Sources struct {
	// Rung is the highest rung that counts, empty for all.
	Rung arch.Rung
	// Given are the user's files. They are about the default family and replace its shipped files.
	Given KernelFiles
	// Shipped returns what is shipped about a family for the device. Reports of a compiler alone count only where the
	// device's bandwidths are measured, because each rung builds on the one below.
	Shipped func(family string) (kernel.Table, kernel.Timings)
	// Library is what the vendor's library takes, nil where times of the families' kernels are known.
	Library LibraryTime
	// Changed are the parameters whose values are not those of the device. The shipped times are about the device as it
	// is: with another value of a parameter that the model uses, they do not count.
	Changed []string
}

// LibraryTime returns the time of the vendor's library for a problem, in the timing model; 0 if it is not known.
type LibraryTime func(gemm.Problem) unit.Seconds

// New opens the model for a device, with the default family first.
func New(g *gpu.Device, families []kernel.Family, from Sources) (*Model, error) {
	var (
		all    []*family
		passed bool // over times
		other  = isOther(g, from.Changed)
	)
	for i, f := range families {
		one := &family{Family: f}
		var given KernelFiles
		if i == 0 {
			given = from.Given
		}
		if one.compiled, one.timed = from.Shipped(f.Name()); one.timed == nil && !g.BandwidthsMeasured() {
			one.compiled = nil
		}
		if one.timed != nil && other {
			one.timed = nil
			passed = given.Timings == nil && (from.Rung == "" || from.Rung == arch.RungCharacterized)
		}
		var err error
		if one.compiled, err = compiledKernels(g, from.Rung, given.Compiled, one.compiled); err != nil {
			return nil, err
		}
		if one.timed, err = timedKernels(from.Rung, given.Timings, one.timed); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if _, err := constants(g, all, nil); err != nil {
		return nil, err
	}
	m := newModel(g, all, from.Library, nil)
	if d := &m.Description; passed {
		d.RungReason = "since the kernels were timed with other values of " + strings.Join(d.Overridden(), ", ")
	}
	return m, nil
}

// isOther reports whether the model uses one of the changed parameters.
func isOther(g *gpu.Device, changed []string) bool {
	if len(changed) == 0 {
		return false
	}
	ignored := unused(g)
	return slices.ContainsFunc(changed, func(name string) bool { return !slices.Contains(ignored, name) })
}

func compiledKernels(g *gpu.Device, rung arch.Rung, given []byte, shipped kernel.Table) (kernel.Table, error) {
	switch {
	case rung == arch.RungSpec || rung == arch.RungCalibrated:
		return nil, nil
	case given != nil:
		return kernel.ReadTable(given, g.SM)
	}
	return shipped, nil
}

func timedKernels(rung arch.Rung, given []byte, shipped kernel.Timings) (kernel.Timings, error) {
	switch {
	case rung != "" && rung != arch.RungCharacterized:
		if given != nil {
			return nil, diag.Inputf("rung %s knows no characterization", rung).
				Do("leave the characterization out, or use the rung %s", arch.RungCharacterized)
		}
		return nil, nil
	case given != nil:
		return kernel.ReadTimings(given)
	}
	return shipped, nil
}

// rungOf is the rung that a model with these families stands on.
func rungOf(g *gpu.Device, families []*family) arch.Rung {
	rung := arch.RungSpec
	if g.BandwidthsMeasured() {
		rung = arch.RungCalibrated
	}
	for _, f := range families {
		switch {
		case f.timed != nil:
			return arch.RungCharacterized
		case f.compiled != nil:
			rung = arch.RungCompiled
		}
	}
	return rung
}
