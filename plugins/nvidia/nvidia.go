// Package nvidia models NVIDIA GPUs: the architectures listed here, on the devices that configs/ describes.
//
// The package can be used in process (Provider, then Open) or served as a plugin by cmd/origami-plugin-nvidia and by
// origami itself.
package nvidia

import (
	"slices"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/triton"
	"github.com/origami-gemm/origami/plugins/nvidia/reference"
	"github.com/origami-gemm/origami/plugins/nvidia/refined"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// Version is the plugin's version.
const Version = "0.1.0"

// Vendor is the vendor in device files.
const Vendor = "NVIDIA"

// architecture is an SM with its models, best first.
type architecture struct {
	sm     *gpu.SM
	models []model
}

// architectures lists the modelled architectures.
var architectures = []architecture{
	{gpu.SM80, twoFamilies},
	{gpu.SM86, twoFamilies},
	{gpu.SM89, twoFamilies},
	{gpu.SM90, twoFamilies},
	{gpu.SM100, []model{refinedOver(mma.Family{})}},
	{gpu.SM120, twoFamilies},
}

var twoFamilies = []model{
	refinedOver(triton.Family{}, mma.Family{}),
	referenceOver(triton.Family{}, mma.Family{}),
}

// model is a model with the kernel families that it predicts, the default first.
type model struct {
	name    string
	kernels []string
	open    func(*gpu.Device, catalog.Selection) (arch.Architecture, error)
}

func refinedOver(families ...kernel.Family) model {
	return model{
		refined.Name,
		kernel.Names(families),
		func(d *gpu.Device, s catalog.Selection) (arch.Architecture, error) {
			m, err := refined.New(d, families, refined.Known{
				Rung: s.Rung, Given: refined.KernelFiles{Compiled: s.Compiled, Timings: s.Characterization},
				Changed: s.Changed,
				Shipped: func(family string) refined.KernelFiles { return shippedKernels(d, family) },
			})
			if err != nil {
				return nil, err
			}
			m.Describe().Fitted = fittedTo(m.Quantities())
			return m, nil
		},
	}
}

func referenceOver(families ...reference.Family) model {
	return model{
		reference.Name,
		kernel.Names(families),
		func(d *gpu.Device, _ catalog.Selection) (arch.Architecture, error) {
			return reference.New(d, families), nil
		},
	}
}

// Provider returns the plugin. It has every NVIDIA device of configs/, any other GPU of their architectures that a
// driver describes, and the models of this package.
func Provider() (arch.Provider, error) {
	archs := map[string]catalog.Support{}
	for _, a := range architectures {
		archs[a.sm.ID] = catalog.Support{Models: a.modelNames(), Kernels: a.models[0].kernels}
	}
	return catalog.New(catalog.Definition{
		Name: "nvidia", Version: Version,
		Files: configs.FS, Vendor: Vendor, Archs: archs,
		Specs: gpu.Specs, Derive: gpu.Derive, Scale: gpu.Scale, Open: open,
	})
}

func (a *architecture) modelNames() []string {
	names := make([]string, len(a.models))
	for i, m := range a.models {
		names[i] = m.name
	}
	return names
}

// open opens a model. The catalog has checked its name.
func open(s catalog.Selection) (arch.Architecture, error) {
	i := slices.IndexFunc(architectures, func(a architecture) bool { return a.sm.ID == s.Sheet.Arch })
	a := &architectures[i]
	m := slices.IndexFunc(a.models, func(m model) bool { return m.name == s.Model })
	opened, err := a.models[m].open(gpu.NewDevice(a.sm, s.Sheet, s.Params), s)
	if err != nil {
		return nil, err
	}
	// The description is not shared yet.
	d := opened.Describe()
	d.Models, d.Uncertainty = a.modelNames(), uncertaintyOf(d)
	for i := range d.Uncertainty {
		d.Fitted = withDataSet(d.Fitted, d.Uncertainty[i].Checked.DataSet)
	}
	return opened, nil
}

// shippedKernels returns the shipped kernel files of a family. Compiler reports apply to every device of the
// architecture, times only to the measured device.
func shippedKernels(d *gpu.Device, family string) (files refined.KernelFiles) {
	for _, k := range data.AllKernels {
		if k.Family != family || k.Arch != d.SM.ID {
			continue
		}
		files.Compiled = k.Compiled
		if k.Device == d.Sheet.Device {
			files.Timings = k.Timings
		}
	}
	return files
}
