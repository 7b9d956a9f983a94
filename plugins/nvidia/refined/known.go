package refined

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
)

// KernelFiles are the contents of files about a family's kernels on a device: the report of a compiler
// (kernel.ReadTable) and a timing pass (kernel.ReadTimings). Either may be nil.
type KernelFiles struct{ Compiled, Timings []byte }

// Known is what the model may know about kernels.
type Known struct {
	// Rung is the highest rung that counts, empty for all.
	Rung arch.Rung
	// Given are the user's files. They are about the default family and replace its shipped files.
	Given KernelFiles
	// Shipped returns the shipped files of a family for the device. They count only where the device's bandwidths are
	// measured, because each rung builds on the one below.
	Shipped func(family string) KernelFiles
}

// New opens the model for a device, with the default family first.
func New(g *gpu.Device, families []kernel.Family, known Known) (*Model, error) {
	var all []*family
	for i, f := range families {
		one := &family{Family: f}
		var given, shipped KernelFiles
		if i == 0 {
			given = known.Given
		}
		if g.BandwidthsMeasured() {
			shipped = known.Shipped(f.Name())
		}
		var err error
		if one.compiled, err = compiledKernels(g, known.Rung, given.Compiled, shipped.Compiled); err != nil {
			return nil, err
		}
		if one.timed, err = timedKernels(known.Rung, given.Timings, shipped.Timings); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return newModel(g, all, nil), nil
}

func compiledKernels(g *gpu.Device, rung arch.Rung, given, shipped []byte) (kernel.Table, error) {
	switch {
	case rung == arch.RungSpec || rung == arch.RungCalibrated:
		return nil, nil
	case given != nil:
		return kernel.ReadTable(given, g.SM)
	case shipped != nil:
		return kernel.ReadTable(shipped, g.SM)
	}
	return nil, nil
}

func timedKernels(rung arch.Rung, given, shipped []byte) (kernel.Timings, error) {
	switch {
	case rung != "" && rung != arch.RungCharacterized:
		if given != nil {
			return nil, diag.Inputf("rung %s knows no characterization", rung).
				Do("leave the characterization out, or use the rung %s", arch.RungCharacterized)
		}
		return nil, nil
	case given != nil:
		return kernel.ReadTimings(given)
	case shipped != nil:
		return kernel.ReadTimings(shipped)
	}
	return nil, nil
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
