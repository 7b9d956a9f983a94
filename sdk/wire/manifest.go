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
	info := Info{Name: q.GetName(), Version: q.GetVersion(), APIVersions: q.GetApiVersions()}
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

func toManifest(m arch.Manifest) *pb.Manifest {
	q := &pb.Manifest{Name: m.Name, Version: m.Version, Calibrates: m.Calibrates, Ladder: m.Ladder}
	for _, a := range m.Archs {
		entry := &pb.ArchEntry{Id: a.ID, Vendor: a.Vendor, Models: a.Models, Kernels: a.Kernels, Fitted: a.Fitted}
		if a.Classes != nil {
			entry.Models = nil
			for i, name := range a.Models {
				class := string(a.Class(i))
				if !slices.Contains(entry.Models, class) {
					entry.Models = append(entry.Models, class)
				}
				entry.ModelEntries = append(entry.ModelEntries, &pb.ModelEntry{Name: name, Class: class})
			}
		}
		for _, d := range a.Devices {
			entry.Devices = append(entry.Devices, &pb.DeviceEntry{Id: d.ID, Name: d.Name, Aliases: d.Aliases})
		}
		q.Archs = append(q.Archs, entry)
	}
	for _, o := range m.Options {
		q.Options = append(q.Options, &pb.Option{Key: o.Key, DefaultValue: o.Default, Values: o.Values, Doc: o.Doc})
	}
	return q
}

func fromManifest(q *pb.Manifest) (arch.Manifest, error) {
	m := arch.Manifest{Name: q.GetName(), Version: q.GetVersion(), Calibrates: q.GetCalibrates(), Ladder: q.GetLadder()}
	if m.Name == "" {
		return m, errors.New("a manifest without a name")
	}
	for _, a := range q.GetArchs() {
		if a.GetId() == "" || len(a.GetModels()) == 0 || len(a.GetKernels()) == 0 || len(a.GetDevices()) == 0 {
			return m, fmt.Errorf("the manifest's architecture %q lacks an id, models, kernels or devices", a.GetId())
		}
		entry := arch.ArchEntry{ID: a.Id, Vendor: a.Vendor, Models: a.Models, Kernels: a.Kernels, Fitted: a.Fitted}
		for i, m := range a.GetModelEntries() {
			if i == 0 {
				entry.Models = nil
			}
			entry.Models = append(entry.Models, m.GetName())
			entry.Classes = append(entry.Classes, arch.ModelClass(m.GetClass()))
		}
		for _, model := range a.Fitted {
			if !slices.Contains(entry.Models, model) {
				return m, fmt.Errorf("%s has no model %q that could be fitted", a.Id, model)
			}
		}
		for _, d := range a.Devices {
			if d.GetId() == "" {
				return m, fmt.Errorf("a device of %s without an id", a.Id)
			}
			entry.Devices = append(entry.Devices, arch.DeviceEntry{ID: d.Id, Name: d.Name, Aliases: d.Aliases})
		}
		m.Archs = append(m.Archs, entry)
	}
	for _, o := range q.GetOptions() {
		m.Options = append(m.Options, arch.Option{Key: o.GetKey(), Default: o.GetDefaultValue(), Values: o.GetValues(),
			Doc: o.GetDoc()})
	}
	return m, nil
}
