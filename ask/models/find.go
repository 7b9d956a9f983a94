package models

import (
	"context"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/ladder"
	"github.com/origami-gemm/origami/core/timing"
)

// Source has architectures.
type Source interface {
	// Find and FindLive are arch.Find and arch.FindLive.
	Find(ctx context.Context, name string) (arch.Match, error)
	FindLive(ctx context.Context, archID string, live *arch.LiveDevice) (arch.Match, error)
	// Open opens an architecture. It may be called from several goroutines.
	Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error)
}

// Providers is a Source in this process.
type Providers []arch.Provider

// Manifests returns the manifests in order of precedence.
func (p Providers) Manifests(context.Context) ([]arch.Manifest, error) { return p.manifests(), nil }

func (p Providers) manifests() []arch.Manifest {
	manifests := make([]arch.Manifest, len(p))
	for i := range p {
		manifests[i] = p[i].Manifest()
	}
	return manifests
}

// Find implements Source.
func (p Providers) Find(_ context.Context, name string) (arch.Match, error) {
	return arch.Find(p.manifests(), name)
}

// FindLive implements Source.
func (p Providers) FindLive(_ context.Context, archID string, live *arch.LiveDevice) (arch.Match, error) {
	return arch.FindLive(p.manifests(), archID, live)
}

// Open implements Source.
func (p Providers) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	m, err := arch.Find(p.manifests(), r.Arch)
	if err != nil {
		return nil, err
	}
	return p.Named(m.Manifest.Name).Open(ctx, r)
}

// Named returns the provider of a name that a manifest has.
func (p Providers) Named(name string) arch.Provider {
	return p[slices.IndexFunc(p, func(one arch.Provider) bool { return one.Manifest().Name == name })]
}

// Found is a target's device among the devices that there are, and the request that opens the target.
type Found struct {
	arch.Match
	OpenRequest arch.OpenRequest
	// Timing is what predicted times are of; Model if it is empty. OwnTiming: whatever the model predicts by itself.
	Timing    timing.Timing
	OwnTiming bool
	asked     bool // the target has a timing
	reached   bool // Reach chose the kernel family
	// Named is what the user called it, WhatIf the options and hardware numbers behind that name, as in
	// "release=early,clock=1.5GHz".
	Named, WhatIf string
}

// Reach makes the target answer with what its device reaches: by the vendor's library, where a model has it and the
// target does not say a family, a model or what is known of kernels. So devices are compared like with like: some have
// Triton's kernels as their first family, some the library's.
func (f *Found) Reach() {
	r := &f.OpenRequest
	asked := r.Kernel != "" || r.Model != "" || r.Rung != "" || r.Compiled != nil || r.Characterization != nil
	if !asked && slices.Contains(f.Arch.Kernels, ladder.Library) {
		r.Kernel, f.reached = ladder.Library, true
	}
}

// Fixed reports whether the user chose the kernel family or the model.
func (f *Found) Fixed() bool {
	return f.OpenRequest.Kernel != "" && !f.reached || f.OpenRequest.Model != ""
}

// Label tells a target from others on the same device.
func (f *Found) Label() string { return f.whatIf(f.ID()) }

// Called is what the user called the target, with its options and hardware numbers.
func (f *Found) Called() string { return f.whatIf(f.Named) }

func (f *Found) whatIf(name string) string {
	if f.WhatIf != "" {
		name += ":" + f.WhatIf
	}
	return name
}

// Find finds the device of a target.
func Find(ctx context.Context, s Source, t *Target) (f Found, err error) {
	if f.Match, err = match(ctx, s, t); err != nil {
		return f, err
	}
	if f.Named, f.WhatIf = t.named, t.whatIf(); f.Named == "" {
		f.Named = f.ID()
	}
	r := f.Request()
	r.Model, r.Kernel, r.Rung, r.Options, r.Overrides = t.Model, Family(t.Kernel), t.Rung, t.Options, t.Overrides
	f.Timing, f.asked = t.Timing, t.Timing != ""
	if t.Compiled != "" {
		r.Compiled = []byte(t.Compiled)
	}
	if t.Characterization != "" {
		r.Characterization = []byte(t.Characterization)
	}
	f.OpenRequest = r
	return f, f.settle(t)
}

// match finds the device, which may be the device of the target's file.
func match(ctx context.Context, s Source, t *Target) (arch.Match, error) {
	if t.Live != nil && t.Device != "" {
		return arch.Match{}, diag.Inputf("there is a device and a live one").Do("leave one of them out")
	}
	if t.DeviceFile != "" {
		h, err := hw.DecodeHeader(hw.FilePlace, []byte(t.DeviceFile))
		if err != nil {
			return arch.Match{}, err
		}
		if t.Describes(&h) {
			m, err := s.Find(ctx, h.Arch)
			m.Device = &arch.DeviceEntry{ID: h.Device, Name: h.Name, Aliases: h.Aliases}
			m.Live, m.DeviceFile = t.Live, []byte(t.DeviceFile)
			return m, diag.Within(hw.FilePlace, err)
		}
	}
	if t.Live != nil {
		return s.FindLive(ctx, t.Arch, t.Live)
	}
	return s.Find(ctx, t.Name())
}

// Describes reports whether a target means the device of a file: its architecture, "arch@device", the device or an
// alias; the GPU of this machine by its name and architecture.
func (t *Target) Describes(h *hw.Header) bool {
	if t.Live != nil {
		return t.Live.Name == h.Name && t.Arch == h.Arch
	}
	name, device, named := strings.Cut(t.Name(), "@")
	switch {
	case t.Name() == "", !named && strings.EqualFold(name, h.Arch):
		return true
	case !named:
		name, device = h.Arch, name
	}
	return strings.EqualFold(name, h.Arch) && (strings.EqualFold(device, h.Device) ||
		slices.ContainsFunc(h.Aliases, func(alias string) bool { return strings.EqualFold(alias, device) }))
}

// Family returns the kernel family that a user's word means. The libraries of vendors have names of their own.
func Family(name string) string {
	switch strings.ToLower(name) {
	case "cublas", "cublaslt", "rocblas", "hipblas", "hipblaslt":
		return ladder.Library
	}
	return name
}

// Common returns the model that all targets have, and otherwise a class that all have a model of. Of several models it
// is the one whose last place among the models of a target is the best, whatever the order of the targets. It is empty
// if the targets have no class in common.
func Common(targets []Found) string {
	best, place := "", 0
	for _, model := range targets[0].Arch.Models {
		last := 0
		for i := range targets {
			at := slices.Index(targets[i].Arch.Models, model)
			if at < 0 {
				last = at
				break
			}
			last = max(last, at)
		}
		if last >= 0 && (best == "" || last < place || last == place && model < best) {
			best, place = model, last
		}
	}
	for i := 0; i < len(targets[0].Arch.Models) && best == ""; i++ {
		class := string(targets[0].Arch.Class(i))
		if !slices.ContainsFunc(targets, func(t Found) bool { return !t.Arch.Has(class) }) {
			best = class
		}
	}
	return best
}
