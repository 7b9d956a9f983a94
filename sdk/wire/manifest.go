package wire

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/exec"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

func fromInfo(q *pb.Info) (Info, error) {
	info := Info{Name: q.GetName(), Version: q.GetVersion()}
	switch q.GetHealth() {
	case pb.Health_HEALTH_OK:
		// Nothing to add.
	case pb.Health_HEALTH_FAILING:
		info.Failing = cut(q.GetHealthReason())
		if info.Failing == "" {
			info.Failing = "it gives no reason"
		}
	case pb.Health_HEALTH_UNSPECIFIED:
		return info, errors.New("no health")
	default:
		return info, fmt.Errorf("unknown health %d", q.GetHealth())
	}
	if info.Name == "" {
		return info, errors.New("no name")
	}
	return info, nil
}

// Description is what a plugin says about itself before it is started. At least one of the manifests is there.
type Description struct {
	Info      Info
	Protocols []int
	Manifest  *arch.Manifest
	Executor  *exec.Manifest
}

// ParseDescribe reads what a plugin prints when it is run with the argument "describe". Fields that this version does
// not know are ignored, so that a newer plugin can still be named and skipped with its reason.
func ParseDescribe(text []byte) (Description, error) {
	var q pb.Describe
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, &q); err != nil {
		return Description{}, errors.New("not the JSON of a plugin's description")
	}
	info, err := fromInfo(q.GetInfo())
	if err != nil {
		return Description{Info: info}, err
	}
	d := Description{Info: info, Protocols: make([]int, len(q.GetProtocolVersions()))}
	for i, v := range q.GetProtocolVersions() {
		d.Protocols[i] = int(v)
	}
	if q.Manifest != nil {
		m, err := fromManifest(q.Manifest)
		if err != nil {
			return d, err
		}
		d.Manifest = &m
	}
	if q.Executor != nil {
		m, err := fromExecutorManifest(q.Executor)
		if err != nil {
			return d, err
		}
		d.Executor = &m
	}
	if d.Manifest == nil && d.Executor == nil {
		return d, errors.New("no manifest")
	}
	return d, nil
}

func fromManifest(q *pb.Manifest) (arch.Manifest, error) {
	var c check
	m := c.decodeManifest(q)
	for i := range m.Archs {
		a := &m.Archs[i]
		if len(a.Models) == 0 || len(a.Kernels) == 0 || len(a.Devices) == 0 {
			c.fail("the manifest's architecture %q lacks models, kernels or devices", a.ID)
		}
		c.ids("an architecture", a.ID)
		c.ids("a model", a.Models...)
		c.ids("a kernel family", a.Kernels...)
		for _, d := range a.Devices {
			c.ids("a device", d.ID)
			c.ids("a device", d.Aliases...)
		}
		for _, model := range a.Fitted {
			if !slices.Contains(a.Models, model) {
				c.fail("%s has no model %q that could be fitted", a.ID, model)
			}
		}
	}
	return m, c.err
}
