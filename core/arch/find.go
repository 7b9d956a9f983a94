package arch

import (
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
)

// Match is one device of one architecture in a list of manifests.
type Match struct {
	Manifest *Manifest
	Arch     *ArchEntry
	Device   *DeviceEntry
}

// ID returns "arch@device".
func (m Match) ID() string { return m.Arch.ID + "@" + m.Device.ID }

// Find looks up what a name means: "arch" (its first device), "arch@device", or a device. Devices may go by an alias;
// case does not matter; the first manifest that has the name wins. The error, of kind diag.Input, names what is near.
func Find(manifests []Manifest, name string) (Match, error) {
	archName, deviceName, hasDevice := strings.Cut(name, "@")
	var all []Match
	var ids, devices []string
	for i := range manifests {
		for j := range manifests[i].Archs {
			entry := &manifests[i].Archs[j]
			ids = append(ids, entry.ID)
			for k := range entry.Devices {
				all = append(all, Match{&manifests[i], entry, &entry.Devices[k]})
				devices = append(devices, entry.Devices[k].ID)
			}
		}
	}
	var own []string
	for _, m := range all {
		if !strings.EqualFold(m.Arch.ID, archName) {
			continue
		}
		if !hasDevice || m.Device.is(deviceName) {
			return m, nil
		}
		own = append(own, m.Device.ID)
	}
	if own != nil {
		err := diag.Inputf("%s has no device %q", archName, deviceName)
		return Match{}, err.Do("%sits devices: %s", didYouMean(deviceName, own), strings.Join(own, ", "))
	}
	for _, m := range all {
		if !hasDevice && m.Device.is(archName) {
			return m, nil
		}
	}
	err := diag.Inputf("unknown architecture %q", archName)
	if archName == "" {
		err = diag.Inputf("the architecture is missing")
	}
	return Match{}, err.Do("%s`origami arch ls` lists them", didYouMean(archName, append(ids, devices...)))
}

func (d *DeviceEntry) is(name string) bool {
	return strings.EqualFold(d.ID, name) || slices.ContainsFunc(d.Aliases, func(alias string) bool { return strings.EqualFold(alias, name) })
}

func didYouMean(name string, names []string) string {
	if near := diag.Nearest(name, names, 3); len(near) > 0 {
		return "did you mean " + strings.Join(near, ", ") + "? "
	}
	return ""
}
