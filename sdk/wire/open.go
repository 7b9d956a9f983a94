package wire

import (
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func toOpenRequest(r arch.OpenRequest) *pb.OpenRequest {
	q := &pb.OpenRequest{Arch: valid(r.Arch), Device: valid(r.Device), Model: valid(r.Model), Kernel: valid(r.Kernel),
		Rung: toRung(r.Rung), Compiled: r.Compiled, Characterization: r.Characterization,
		DeviceFile: r.DeviceFile}
	if len(r.Overrides) > 0 {
		q.Overrides = make(map[string]*pb.Override, len(r.Overrides))
		for name, o := range r.Overrides {
			q.Overrides[valid(name)] = &pb.Override{Value: o.Value, Unit: valid(o.Unit)}
		}
	}
	if len(r.Options) > 0 {
		q.Options = make(map[string]string, len(r.Options))
		for key, value := range r.Options {
			q.Options[valid(key)] = valid(value)
		}
	}
	if r.Live != nil {
		q.Live = encodeLiveDevice(r.Live)
	}
	return q
}

func fromOpenRequest(q *pb.OpenRequest) (arch.OpenRequest, error) {
	r := arch.OpenRequest{Arch: q.GetArch(), Device: q.GetDevice(), Model: q.GetModel(), Kernel: q.GetKernel(),
		Options: q.GetOptions(), Compiled: q.GetCompiled(), Characterization: q.GetCharacterization(),
		DeviceFile: q.GetDeviceFile()}
	if len(q.GetOverrides()) > 0 {
		r.Overrides = make(map[string]hw.OverrideValue, len(q.Overrides))
		for name, o := range q.Overrides {
			r.Overrides[name] = hw.OverrideValue{Value: o.GetValue(), Unit: o.GetUnit()}
		}
	}
	var c check
	r.Rung = c.rung(q.GetRung())
	if q.GetLive() != nil {
		live := c.decodeLiveDevice(q.Live)
		r.Live = &live
	}
	return r, c.err
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

// toAttributes carries the numbers of a live device.
func toAttributes(attributes map[string]float64) map[string]float64 {
	if len(attributes) == 0 {
		return nil
	}
	out := make(map[string]float64, len(attributes))
	for name, v := range attributes {
		out[valid(name)] = v
	}
	return out
}

var rungs = [...]arch.Rung{
	pb.Rung_RUNG_SPEC: arch.RungSpec, pb.Rung_RUNG_CALIBRATED: arch.RungCalibrated,
	pb.Rung_RUNG_COMPILED: arch.RungCompiled, pb.Rung_RUNG_CHARACTERIZED: arch.RungCharacterized,
}

func toRung(r arch.Rung) pb.Rung {
	for i, rung := range rungs {
		if r == rung {
			return pb.Rung(i)
		}
	}
	return pb.Rung_RUNG_UNSPECIFIED
}
