package ask

import "github.com/origami-gemm/origami/core/arch"

// Arch is a device that a plugin has models for.
type Arch struct {
	// ids, as in `--arch arch@device`
	Arch   string `json:"arch"`
	Device string `json:"device"`
	// whether it is the architecture's default
	Default bool `json:"default"`
	// the name of the product
	Name string `json:"name"`
	// who makes it
	Vendor string `json:"vendor"`
	// other names of the device
	Aliases []string `json:"aliases"`
	// the models, the default first
	Models []string `json:"models"`
	// the kernel families, the default first
	Kernels []string `json:"kernels"`
	// the plugin
	Plugin string `json:"plugin"`
}

// Archs lists the devices of manifests.
func Archs(manifests []arch.Manifest) []Arch {
	var all []Arch
	for _, m := range manifests {
		for _, a := range m.Archs {
			for i, d := range a.Devices {
				all = append(all, Arch{Arch: a.ID, Device: d.ID, Default: i == 0, Name: d.Name, Vendor: a.Vendor,
					Aliases: append([]string{}, d.Aliases...), Models: a.Models, Kernels: a.Kernels, Plugin: m.Name})
			}
		}
	}
	return all
}
