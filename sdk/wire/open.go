package wire

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// OpenMessage returns the message of a request, for a caller that speaks the protocol itself.
func OpenMessage(r arch.OpenRequest) *pb.OpenRequest {
	return &pb.OpenRequest{Json: marshal(&r), Compiled: r.Compiled, Characterization: r.Characterization,
		DeviceFile: r.DeviceFile}
}

func fromOpenRequest(q *pb.OpenRequest) (arch.OpenRequest, error) {
	r, err := unmarshal[arch.OpenRequest](q.GetJson(), maxRequestMemory)
	r.Compiled, r.Characterization, r.DeviceFile = q.GetCompiled(), q.GetCharacterization(), q.GetDeviceFile()
	return r, err
}

// describes checks that a description answers the request. A live device may be described as another one.
func describes(d *arch.Description, r arch.OpenRequest) error {
	var c check
	same := func(what, asked, got string) {
		if asked != "" && got != asked {
			c.fail("it describes the %s %q, where %q was asked for", what, got, asked)
		}
	}
	same("architecture", r.Arch, d.Arch)
	switch header, err := hw.DecodeHeader(hw.FilePlace, r.DeviceFile); {
	case r.DeviceFile != nil && err == nil:
		same("device", header.Device, d.Device)
	case r.Live == nil:
		same("device", r.Device, d.Device)
	}
	if !d.Is(r.Model) {
		same("model", r.Model, d.Model)
	}
	if known := arch.Rungs(); r.Rung != "" && slices.Index(known, d.Rung) > slices.Index(known, r.Rung) {
		c.fail("its predictions are %s, where no more than %s was asked for", d.Rung, r.Rung)
	}
	for _, o := range d.Options {
		same("option "+o.Key, r.Options[o.Key], o.Value)
	}
	for _, p := range d.Params {
		switch o, asked := r.Overrides[p.Name]; {
		case asked && p.Tier != hw.Override && !o.Is(p.Number):
			c.fail("the parameter %s was overridden, and is described as not", p.Name)
		case !asked && p.Tier == hw.Override:
			c.fail("the parameter %s was not overridden, and is described as if it were", p.Name)
		}
	}
	return c.err
}
