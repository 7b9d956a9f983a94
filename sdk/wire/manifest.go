package wire

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/exec"
)

// Info is what a plugin says about itself.
type Info struct {
	Name, Version string
	// Failing says why the plugin cannot work; empty means that it can.
	Failing string
}

// Description is what a plugin says about itself before it is started. At least one of the manifests is there.
type Description struct {
	Info      Info
	Protocols []int
	Manifest  *arch.Manifest
	Executor  *exec.Manifest
}

// JSON is what the plugin prints when it is run with the argument "describe".
func (d *Description) JSON() []byte { return marshal(d) }

// ParseDescribe reads what JSON writes. Of a plugin of another protocol it reads Info and Protocols alone, so that such
// a plugin can still be named and skipped with its reason.
func ParseDescribe(text []byte) (d Description, err error) {
	var head struct {
		Info      struct{ Name, Version, Failing string }
		Protocols []int
	}
	if json.Unmarshal(text, &head) != nil {
		return d, errors.New("not the JSON of a plugin's description")
	}
	d.Info, d.Protocols = head.Info, head.Protocols
	if len(d.Protocols) > 0 && !slices.Contains(d.Protocols, ProtocolVersion) {
		return d, nil
	}
	whole, err := unmarshal[Description](text, MaxShortAnswerMemory)
	if err != nil {
		return d, err
	}
	d = whole
	d.Info.Failing = cut(d.Info.Failing)
	if d.Manifest == nil && d.Executor == nil {
		return d, errors.New("no manifest")
	}
	if d.Manifest != nil {
		err = checkManifest(d.Manifest)
	}
	return d, err
}

// checkManifest returns what is wrong with a manifest beyond its fields one by one.
func checkManifest(m *arch.Manifest) error {
	var c check
	for i := range m.Archs {
		a := &m.Archs[i]
		if len(a.Models) == 0 || len(a.Kernels) == 0 || len(a.Devices) == 0 {
			c.fail("the manifest's architecture %q lacks models, kernels or devices", a.ID)
		}
		for _, model := range a.Fitted {
			if !slices.Contains(a.Models, model) {
				c.fail("%s has no model %q that could be fitted", a.ID, model)
			}
		}
	}
	return c.err
}
