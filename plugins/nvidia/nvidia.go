// Package nvidia models NVIDIA GPUs: the architectures listed here, on the devices that configs/ describes.
//
// The package can be used in process (Provider, then Open) or served as a plugin by cmd/origami-plugin-nvidia and by
// origami itself.
package nvidia

import (
	"slices"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/release"
	"github.com/origami-gemm/origami/core/residual"
	"github.com/origami-gemm/origami/plugins/library"
	"github.com/origami-gemm/origami/plugins/library/checked"
	"github.com/origami-gemm/origami/plugins/nvidia/calibration"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
	"github.com/origami-gemm/origami/plugins/nvidia/fusedmoe"
	"github.com/origami-gemm/origami/plugins/nvidia/gpu"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/mma"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/triton"
	"github.com/origami-gemm/origami/plugins/nvidia/kernel/wgmma"
	"github.com/origami-gemm/origami/plugins/nvidia/pipelined"
	"github.com/origami-gemm/origami/plugins/nvidia/sgemm"
	"github.com/origami-gemm/origami/plugins/nvidia/tritonblas"
	"github.com/origami-gemm/origami/sdk/catalog"
)

// Vendor is the vendor in device files.
const Vendor = "NVIDIA"

// opener opens a model on a generation of SMs.
type opener = func(*gpu.SM) catalog.Model

// models lists the modelled architectures with their models, the default first: of kernels that a user can configure
// and that reach the matrix units, and of the library where there are none.
var models = []struct {
	sm     *gpu.SM
	models []opener
}{
	{gpu.SM70, []opener{cuBLAS}},
	{gpu.SM75, []opener{cuBLAS}},
	{gpu.SM80, mmaSync},
	{gpu.SM86, mmaSync},
	{gpu.SM89, fp8Sync},
	{gpu.SM90, hopper},
	{gpu.SM100, blackwell},
	{gpu.SM103, blackwell},
	{gpu.SM120, fp8Sync},
	{gpu.SM121, fp8Sync},
}

var (
	general   = []kernel.Family{triton.Family{}, triton.Persistent{}, mma.Family{}}
	reference = tritonBLAS(triton.Family{}, mma.Family{})

	// mmaSync is for SMs whose tensor cores have the instruction mma.sync alone, and fp8Sync for those with fp8.
	mmaSync = []opener{pipelinedOver(general...), cuBLAS, sgemmLadder, reference, fusedMoE(fusedmoe.Family)}
	fp8Sync = []opener{pipelinedOver(general...), cuBLAS, sgemmLadder, reference, scaledMoE}
	hopper  = []opener{
		pipelinedOver(append(general, wgmma.Family{})...), cuBLAS, sgemmLadder, reference, scaledMoE,
	}
	blackwell = []opener{pipelinedOver(general...), cuBLAS, sgemmLadder, scaledMoE}
	scaledMoE = fusedMoE(fusedmoe.Family, fusedmoe.Blocks)
)

func pipelinedOver(families ...kernel.Family) opener {
	return func(sm *gpu.SM) catalog.Model {
		return catalog.Model{
			Name: pipelined.Name, Class: arch.ClassRefined, Kernels: kernel.Names(families), Fitted: true,
			Options: []arch.Option{library.Options[0], residual.Option}, Near: data.Near,
			Open: func(s catalog.Selection) (arch.Architecture, error) {
				m, err := openPipelined(sm, s, families...)
				if err != nil {
					return nil, err
				}
				return anywhere(m), nil
			},
		}
	}
}

// worseCompiled is why pipelined stays on a lower rung where no single kernel was timed. TestPublishedTimes has the
// figures.
const worseCompiled = "since without times of single kernels a compiler's report makes it worse (kernels that spill " +
	"on an RTX 4090: predicted 1.18 of the measured times with it, 1.03 without; --compiled FILE takes one)"

// openPipelined opens the model pipelined with what it was compared with.
func openPipelined(sm *gpu.SM, s catalog.Selection, families ...kernel.Family) (arch.Architecture, error) {
	d := gpu.NewDevice(sm, s.Sheet, s.Params)
	library, err := cuBLASBeside(sm, s)
	if err != nil {
		return nil, err
	}
	from := pipelined.Sources{
		Rung: s.Rung, Given: pipelined.KernelFiles{Compiled: s.Compiled, Timings: s.Characterization},
		Changed: s.Changed,
		Shipped: func(family string) (kernel.Table, kernel.Timings) { return shippedKernels(d, family) },
	}
	if library != nil {
		from.Library = library.Fastest
	}
	m, err := pipelined.New(d, families, from)
	if err != nil {
		return nil, err
	}
	if library != nil {
		m.Describe().AlsoReads(library.Describe())
	}
	if is := m.Describe(); s.Rung == arch.RungCompiled && is.Rung != s.Rung {
		is.RungReason = worseCompiled
	}
	fitted := fittedTo(m.Quantities())
	if f := s.Sheet.Fitted; f != nil {
		fitted = append(fitted, arch.Fitted{DataSet: f.DataSet, Kernel: f.Kernel, Problems: f.Problems})
	}
	return compared(m, fitted), nil
}

// fusedMoE models the kernels for experts, and those with scales per block, on top of the family triton.
func fusedMoE(families ...string) opener {
	return func(sm *gpu.SM) catalog.Model {
		return catalog.Model{
			Name: fusedmoe.Family, Class: arch.ClassRefined, Kernels: families, Fitted: true,
			Open: func(s catalog.Selection) (arch.Architecture, error) {
				product, err := openPipelined(sm, s, triton.Family{})
				if err != nil {
					return nil, err
				}
				return fusedmoe.New(gpu.NewDevice(sm, s.Sheet, s.Params), product, families...)
			},
		}
	}
}

// sgemmLadder models the kernels of the SGEMM ladders, whose terms are others.
func sgemmLadder(sm *gpu.SM) catalog.Model {
	return catalog.Model{
		Name: sgemm.Family, Class: arch.ClassRefined, Kernels: []string{sgemm.Family}, Needs: sgemm.Needs(),
		Options: []arch.Option{library.Options[0], residual.Option}, Near: data.Near,
		Open: func(s catalog.Selection) (arch.Architecture, error) {
			if s.Compiled != nil || s.Characterization != nil {
				return nil, diag.Inputf("files of compiled or timed kernels do not say which axes of the family %s a kernel has",
					sgemm.Family).Do("leave the files about kernels out")
			}
			m := sgemm.New(gpu.NewDevice(sm, s.Sheet, s.Params))
			return anywhere(compared(m, withDataSet(nil, sgemm.DataSet, sgemm.Family))), nil
		},
	}
}

func tritonBLAS(families ...tritonblas.Family) opener {
	return func(sm *gpu.SM) catalog.Model {
		return catalog.Model{
			Name: tritonblas.Name, Class: arch.ClassReference, Kernels: kernel.Names(families),
			Open: func(s catalog.Selection) (arch.Architecture, error) {
				d := gpu.NewDevice(sm, s.Sheet, s.Params)
				compiled, err := spills(d, s, families[0].Name())
				if err != nil {
					return nil, err
				}
				return compared(tritonblas.New(d, families, compiled), nil), nil
			},
		}
	}
}

// spills is the compiler's report that a reference takes: a given one, or the shipped one at rung compiled. Without
// them it is the published model, bit for bit.
func spills(d *gpu.Device, s catalog.Selection, family string) (kernel.Table, error) {
	switch {
	case s.Characterization != nil || s.Rung == arch.RungCharacterized:
		return nil, diag.Inputf("the model %s takes no times of kernels", tritonblas.Name).
			Do("use the rung %s, or another model", arch.RungCompiled)
	case s.Compiled != nil:
		return kernel.ReadTable(s.Compiled, d.SM)
	case s.Rung == arch.RungCompiled:
		compiled, _ := shippedKernels(d, family)
		if compiled == nil && family == (triton.Family{}).Name() {
			compiled, _ = data.Reports.ReadFile("packed/triton-" + d.SM.ID + ".compiled") // none: the model stays a rung below
		}
		return compiled, nil
	}
	return nil, nil
}

// Provider returns the plugin. It has every NVIDIA device of configs/, any other GPU of their architectures that a
// driver describes, and the models of this package.
func Provider() (arch.Provider, error) {
	archs := map[string][]catalog.Model{}
	for _, a := range models {
		for _, of := range a.models {
			archs[a.sm.ID] = append(archs[a.sm.ID], of(a.sm))
		}
	}
	return catalog.New(catalog.Definition{
		Name: "nvidia", Version: release.Version,
		Files: configs.FS, Vendor: Vendor, Archs: archs,
		Specs: gpu.Specs, Derive: gpu.Derive, Scale: gpu.Scale,
		Calibration: calibration.New, Ladder: sgemm.Ladder,
	})
}

// compared adds to a model what its times were compared with. The description is not shared yet.
func compared(opened arch.Architecture, fitted []arch.Fitted) arch.Architecture {
	d := opened.Describe()
	d.Fitted, d.Uncertainty = fitted, uncertaintyOf(d)
	for i := range d.Uncertainty {
		if u := &d.Uncertainty[i]; u.Evidence == "" && u.Sigma > 0 { // else nothing was fitted to the times
			d.Fitted = withDataSet(d.Fitted, u.Checked.DataSet, u.Kernel)
		}
	}
	spread(d.Uncertainty)
	d.Uncertainty = append(d.Uncertainty, twins(d.Uncertainty)...)
	d.Uncertainty = append(d.Uncertainty, otherLayouts(d.Uncertainty)...)
	return opened
}

// anywhere adds to a model of origami's the widest of all uncertainties, for what was never compared.
func anywhere(opened arch.Architecture) arch.Architecture {
	d := opened.Describe()
	for _, kernel := range d.Kernels {
		d.Uncertainty = append(d.Uncertainty, checked.Unchecked(kernel, d.Vendor)...)
	}
	return opened
}

// shippedKernels returns what is shipped about the kernels of a family. Compiler reports apply to every device of the
// architecture, times only to the measured device and its twins.
func shippedKernels(d *gpu.Device, family string) (compiled kernel.Table, timings kernel.Timings) {
	for _, k := range data.AllKernels {
		if k.Family != family || k.Arch != d.SM.ID {
			continue
		}
		compiled = k.PackedCompiled
		if k.Device == d.Sheet.Device || slices.Contains(k.Twins, d.Sheet.Device) {
			timings = k.PackedTimings
		}
	}
	return compiled, timings
}
