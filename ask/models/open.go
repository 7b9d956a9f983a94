package models

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/timing"
)

// Places of errors of Open: the fields of a target. A caller that knows where they come from replaces them.
const (
	ModelPlace  = "model"
	KernelPlace = "kernel"
	RungPlace   = "rung"
	TimingPlace = "timing"
)

// Open finds and opens a target.
func (t *Target) Open(ctx context.Context, s Source) (arch.Architecture, error) {
	found, err := Find(ctx, s, t)
	if err != nil {
		return nil, err
	}
	return found.Open(ctx, s)
}

// Open opens a target that was found, to answer in its timing. It may be called from several goroutines.
func (f *Found) Open(ctx context.Context, s Source) (arch.Architecture, error) {
	r := &f.OpenRequest
	if r.Model != "" && !f.Arch.Has(r.Model) {
		return nil, diag.Inputf("%s has no model %q", f.Arch.ID, r.Model).At(ModelPlace).
			Do("use one of %s", strings.Join(f.Arch.Models, ", "))
	}
	if r.Kernel != "" && !slices.Contains(f.Arch.Kernels, r.Kernel) {
		return nil, diag.Inputf("no model of %s predicts the kernel family %q", f.Arch.ID, r.Kernel).At(KernelPlace).
			Do("use one of %s", strings.Join(f.Arch.Kernels, ", "))
	}
	a, err := s.Open(ctx, *r)
	if err != nil {
		return nil, err
	}
	// The answer of a model on another rung would be reported under a wrong name.
	if d := a.Describe(); r.Rung != "" && d.Rung != r.Rung {
		is := "rung " + string(d.Rung)
		because := d.RungReason
		if because == "" && r.Rung == arch.RungCompiled {
			because = "since no compiler's report on its kernels is shipped"
		}
		if because != "" {
			is += " " + because
		}
		return nil, diag.Inputf("the %s model of %s is on %s, and %s was asked for", d.Model, d.ID(), is, r.Rung).
			At(RungPlace).Do("leave it out")
	}
	return f.timed(ctx, s, a)
}

// timed returns an opened model that answers in the timing of the target. A model with an option for it is opened
// again: it answers in the timing, or corrects its own times by times of that timing.
func (f *Found) timed(ctx context.Context, s Source, a arch.Architecture) (arch.Architecture, error) {
	option := timing.Timing(f.OpenRequest.Options[timing.Option])
	d, to := a.Describe(), cmp.Or(f.Timing, option, timing.Model)
	switch {
	case option != "" && option != to:
		return nil, diag.Inputf("the timing is %s, and the option says %s", to, option).At(TimingPlace).Do("leave one out")
	case d.Timing == string(to) || f.OwnTiming:
		return a, nil
	case f.asked && (d.Timing == "" || d.RanksOnly):
		return nil, diag.Inputf("the %s model of %s does not say what its times are of", d.Model, d.ID()).At(TimingPlace).
			Do("leave it out")
	case slices.ContainsFunc(d.Options, func(o arch.OptionValue) bool { return o.Key == timing.Option }):
		r := f.OpenRequest
		if r.Options = maps.Clone(r.Options); r.Options == nil {
			r.Options = map[string]string{}
		}
		r.Options[timing.Option] = string(to)
		var err error
		if a, err = s.Open(ctx, r); err != nil {
			return nil, err
		}
	}
	return timing.In(a, to), nil
}
