package picturecmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/roofline"
)

// picture is devices with their ceilings, and kernels under them.
type picture struct {
	dtype    gemm.DType
	failures *session.Failures
	sides    []placedSide
	kernels  []placed
	notes    []string
	// labels are the names of placed.labels.
	labels []string
}

// placedSide is a device with its ceilings, by type of operands: the first is that of the command line.
type placedSide struct {
	ask.Contender
	roofs []*roofline.Device
}

// placed is a kernel in the picture.
type placed struct {
	roofline.Kernel
	side     int
	problem  gemm.Problem
	config   gemm.Config
	name     string // what it is: pick, config, fastest, or a library
	measured bool
	compute  roofline.Above
	// labels are the further columns of the problem's row.
	labels []string
}

// The names of kernels.
const (
	pickName    = "pick"
	configName  = "config"
	fastestName = "fastest"
)

// of returns the ceilings for a type.
func (s *placedSide) of(t gemm.DType) *roofline.Device {
	i := slices.IndexFunc(s.roofs, func(d *roofline.Device) bool { return d.DType == t })
	if i < 0 {
		i = len(s.roofs)
		s.roofs = append(s.roofs, roofline.New(s.Model, t))
	}
	return s.roofs[i]
}

// add adds a device and its kernels.
func (p *picture) add(ctx context.Context, o *RooflineOptions, s *ask.Contender, list []problems.Problem) error {
	shapes := problems.Shapes(list)
	s.Model = arch.Whole(s.Model, shapes...)
	p.sides = append(p.sides, placedSide{Contender: *s})
	at := len(p.sides) - 1
	p.sides[at].of(p.dtype)
	if s.Describe().PeakFor(p.dtype) == 0 {
		p.notes = append(p.notes, fmt.Sprintf("no rate of %s for %s is known: there is no ceiling of it", s.Label(), p.dtype))
	}
	if o.measured() {
		return p.addMeasured(ctx, o, at, list)
	}
	if len(list) == 0 {
		return nil
	}
	if s.Describe().RanksOnly {
		p.notes = append(p.notes, fmt.Sprintf("the %s model of %s ranks kernels and predicts no times: none is placed",
			s.Describe().Model, s.Label()))
		return nil
	}
	answers, err := ask.Rankings(ctx, s.Model, ask.Question{Problems: shapes, Kernel: s.Kernel, Top: 1, Terms: true})
	if err != nil {
		return err
	}
	for i := range answers {
		a := &answers[i]
		if a.Err != nil || len(a.Entries) == 0 {
			p.failures.Add(list[i].Where, a.Err)
			continue
		}
		p.place(at, &list[i], &a.Entries[0], pickName, float64(a.Seconds(&a.Entries[0])))
		for _, text := range o.Configs {
			e, err := ask.Explain(ctx, s.Model, a.Problem, s.Kernel, text)
			if err == nil && e.Estimate.Reject != "" {
				p.notes = append(p.notes, fmt.Sprintf("%s is not placed for %s: %s", text, a.Problem, e.Estimate.Reject))
				continue
			}
			if err != nil {
				p.failures.Add(list[i].Where, err)
				continue
			}
			p.place(at, &list[i], &e.Entry, configName, float64(e.Seconds(&e.Entry)))
		}
	}
	return nil
}

// place places a predicted kernel.
func (p *picture) place(at int, problem *problems.Problem, e *ask.Entry, name string, seconds float64) {
	p.put(placed{side: at, problem: problem.Problem, labels: problem.Labels, config: e.Config, name: name}, e.Terms,
		seconds)
}

// put computes where a kernel is.
func (p *picture) put(k placed, terms []float64, seconds float64) {
	s := &p.sides[k.side]
	roofs := s.of(k.problem.DType)
	k.Kernel = roofs.Place(s.Describe(), k.problem, k.config, terms, seconds)
	k.compute = roofs.Compute(&k.Kernel)
	p.kernels = append(p.kernels, k)
}

// addMeasured places the pick, the fastest kernel and the libraries of a data set.
func (p *picture) addMeasured(ctx context.Context, o *RooflineOptions, at int, list []problems.Problem) error {
	s := &p.sides[at]
	data, err := o.recorded(ctx, s)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		for _, problem := range data.Problems() {
			list = append(list, problems.Problem{Problem: problem})
		}
		s.Model = arch.Whole(s.Model, data.Problems()...)
	}
	answers, err := ask.Rankings(ctx, s.Model, ask.Question{Problems: problems.Shapes(list), Kernel: data.Kernel, Top: 1})
	if err != nil {
		return err
	}
	for i := range list {
		problem, labels := list[i].Problem, list[i].Labels
		var kernels []placed
		var times []float64
		add := func(name string, m *dataset.Measurement) {
			if m.Status == dataset.OK && m.Median > 0 {
				kernels = append(kernels, placed{side: at, problem: problem, config: m.Config, name: name, measured: true,
					labels: labels})
				times = append(times, float64(m.Median))
			}
		}
		if len(answers[i].Entries) > 0 {
			if m, ok := data.Candidate(problem, answers[i].Entries[0].Config); ok {
				add(pickName, &m)
			}
		}
		if m := fastest(data.Sweep(problem)); m != nil && (len(kernels) == 0 || kernels[0].config != m.Config) {
			add(fastestName, m)
		}
		if err := p.putMeasured(ctx, kernels, times); err != nil {
			return err
		}
		for _, library := range data.Libraries() {
			if m, ok := data.FindLibrary(problem, library); ok && m.Status == dataset.OK && m.Median > 0 {
				p.put(placed{side: at, problem: problem, name: library, measured: true, labels: labels}, nil, float64(m.Median))
			}
		}
		if len(kernels) == 0 {
			p.notes = append(p.notes, fmt.Sprintf("%s has no times of %s", data.Name, problem))
		}
	}
	return nil
}

// putMeasured places kernels of one problem with the model's bytes.
func (p *picture) putMeasured(ctx context.Context, kernels []placed, times []float64) error {
	if len(kernels) == 0 {
		return nil
	}
	s := &p.sides[kernels[0].side]
	configs := make([]gemm.Config, len(kernels))
	for i := range kernels {
		configs[i] = kernels[i].config
	}
	n := len(s.Describe().Terms)
	rows := make([]float64, len(configs)*n)
	if err := s.Model.Terms(ctx, rows, kernels[0].problem, configs); err != nil {
		return err
	}
	for i := range kernels {
		p.put(kernels[i], rows[i*n:(i+1)*n], times[i])
	}
	return nil
}

// fastest returns the fastest kernel of a sweep that is no library's, nil if there is none.
func fastest(sweep []dataset.Measurement) (best *dataset.Measurement) {
	for i := range sweep {
		if m := &sweep[i]; m.Library == "" && m.Status == dataset.OK && m.Median > 0 &&
			(best == nil || m.Median < best.Median) {
			best = m
		}
	}
	return best
}

func (o *RooflineOptions) recorded(ctx context.Context, s *placedSide) (*dataset.Dataset, error) {
	if o.Records != "" {
		return datastore.Folder(ctx, s.Describe(), o.Factory.Settings.Kernel, "--records", o.Records)
	}
	return datastore.Shipped(s.Describe(), o.Factory.Settings.Kernel, "--records")
}

// warn says which kernels are above a roof. That is never left unsaid: either a number or the count of bytes is wrong.
func (p *picture) warn(s *iostreams.Streams) {
	for _, n := range p.notes {
		s.Note(n)
	}
	var limits, reached []string
	for i := range p.kernels {
		k := &p.kernels[i]
		count := func(a roofline.Above, what string) {
			text := fmt.Sprintf("%s %s of %s above %s", k.name, k.config, k.problem, what)
			switch a {
			case roofline.AboveLimit:
				limits = append(limits, text)
			case roofline.AboveReached:
				reached = append(reached, text)
			case roofline.Nothing:
			}
		}
		count(k.compute, "the instructions")
		for _, point := range k.Points {
			count(point.Above, point.Level.String())
		}
	}
	if len(limits) > 0 {
		s.Warn(digits.Plural(len(limits), "kernel is", "kernels are") + " above a limit of the hardware, so a number of " +
			"the device or the model's count of bytes is wrong; the first: " + limits[0])
	}
	if len(reached) > 0 {
		s.Warn(digits.Plural(len(reached), "kernel is", "kernels are") + " above what a microbenchmark reached: " +
			"the microbenchmark is not the fastest kernel, or the model counts too many bytes; the first: " + reached[0])
	}
}
