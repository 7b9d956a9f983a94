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
	// Live is the GPU in this machine, if that is the device.
	Live *LiveDevice
	// DeviceFile is the file that describes the device, nil for a device of the manifest.
	DeviceFile []byte
}

// ID returns "arch@device".
func (m Match) ID() string { return m.Arch.ID + "@" + m.Device.ID }

// Request returns the request that opens the device under its defaults.
func (m Match) Request() OpenRequest {
	r := OpenRequest{Arch: m.Arch.ID, Device: m.Device.ID, Live: m.Live, DeviceFile: m.DeviceFile}
	if r.Device == LiveID || r.DeviceFile != nil {
		r.Device = ""
	}
	return r
}

// Find looks up what a name means: "arch" (its first device), "arch@device", or a device. Devices may go by an alias;
// case does not matter; the first manifest that has the name wins. The error, of kind diag.Input, names what is near.
func Find(manifests []Manifest, name string) (Match, error) {
	archName, deviceName, hasDevice := strings.Cut(name, "@")
	var all []Match
	var ids []string
	for i := range manifests {
		for j := range manifests[i].Archs {
			entry := &manifests[i].Archs[j]
			ids = append(ids, entry.ID)
			for k := range entry.Devices {
				all = append(all, Match{Manifest: &manifests[i], Arch: entry, Device: &entry.Devices[k]})
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
		return Match{}, err.Do("%s", didYouMean(deviceName, own)).Also("its devices: %s", strings.Join(own, ", "))
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
	err = err.Coded(diag.CodeUnknownDevice, "")
	if near := nearest(archName, ids, all); len(near) > 0 {
		return Match{}, err.Do("did you mean %s?", strings.Join(near, ", "))
	}
	return Match{}, err.Do("the architectures are %s", strings.Join(ids, ", "))
}

// nearest returns at most three architectures and devices whose names are near, each once and as it is listed: a device
// may be near by an alias or the name of the product.
func nearest(name string, archs []string, devices []Match) (near []string) {
	ids := map[string]string{}
	names := slices.Clone(archs)
	for _, m := range devices {
		for _, called := range append([]string{m.Device.ID, m.Device.Name}, m.Device.Aliases...) {
			names, ids[called] = append(names, called), m.Device.ID
		}
	}
	for _, called := range diag.Nearest(name, names, len(names)) {
		id := called
		if device := ids[called]; device != "" {
			id = device
		}
		if !slices.Contains(near, id) && len(near) < 3 {
			near = append(near, id)
		}
	}
	return near
}

// LiveID is the device id of a GPU in this machine that no catalogue has.
const LiveID = "auto"

// FindLive looks up a GPU that a driver describes: the architecture by its id, the device by the name of the product,
// which is how catalogues name devices. An unknown product gets a new device entry under LiveID. An unknown
// architecture is an error of kind diag.Input.
func FindLive(manifests []Manifest, archID string, live *LiveDevice) (Match, error) {
	var ids []string
	for i := range manifests {
		for j := range manifests[i].Archs {
			entry := &manifests[i].Archs[j]
			if !strings.EqualFold(entry.ID, archID) {
				ids = append(ids, entry.ID)
				continue
			}
			m := Match{Manifest: &manifests[i], Arch: entry, Device: &DeviceEntry{ID: LiveID, Name: live.Name}, Live: live}
			for k := range entry.Devices {
				if entry.Devices[k].Name == live.Name {
					m.Device = &entry.Devices[k]
				}
			}
			return m, nil
		}
	}
	return Match{}, diag.Inputf("%s has the architecture %s, which no plugin models", live.Name, archID).
		Do("the architectures are %s", strings.Join(ids, ", ")).Coded(diag.CodeUnknownDevice, "")
}

// is reports whether a device goes by a name: its id, an alias, or the name of the product, with or without the words
// of its brand. Capitals, blanks and dashes do not matter.
func (d *DeviceEntry) is(name string) bool {
	name = plainName(name)
	return name != "" && (name == plainName(d.ID) || name == plainName(d.Name) || d.branded(name) ||
		slices.ContainsFunc(d.Aliases, func(alias string) bool { return name == plainName(alias) }))
}

// branded reports whether a name is the name of the product without its first words.
func (d *DeviceEntry) branded(name string) bool {
	for words := strings.Fields(d.Name); len(words) > 1; words = words[1:] {
		if plainName(strings.Join(words[1:], " ")) == name {
			return true
		}
	}
	return false
}

// plainName is a name in small letters, without blanks, dashes and underscores.
func plainName(name string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
}

func didYouMean(name string, names []string) string {
	if near := diag.Nearest(name, names, 3); len(near) > 0 {
		return "did you mean " + strings.Join(near, ", ") + "?"
	}
	return ""
}
