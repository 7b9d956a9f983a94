package ask

import (
	"context"
	"fmt"
	"math"

	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/roofline"
)

// Rooflines are kernels under the roofs of devices. [Roofline](roofline.md) defines the numbers. Rejected kernels are
// left out, and all kernels where there is no problem or the model predicts no times.
type Rooflines struct {
	// the devices, one for each type of operands
	Devices []RooflineDevice `json:"devices"`
	// the kernels
	Kernels []RooflineKernel `json:"kernels"`

	// Notes say what was not placed, and why.
	Notes []string `json:"-"`
}

// RooflineDevice is a device with its ceilings.
type RooflineDevice struct {
	// the device, as `arch@device`
	ID string `json:"device"`
	// the name of the product
	Name string `json:"name"`
	// as in `select`
	Model      string          `json:"model"`
	ModelClass arch.ModelClass `json:"model_class,omitempty"`
	Kernel     string          `json:"kernel"`
	// the type of the operands
	DType string `json:"dtype"`
	// the ceilings
	Ceilings []Ceiling `json:"ceilings"`

	// Roofs are the ceilings as figures have them.
	Roofs *roofline.Device `json:"-"`
}

// Ceiling is a number that no kernel exceeds.
type Ceiling struct {
	// what it is of
	Name string `json:"name"`
	// where it applies
	Level string `json:"level"`
	// what nothing exceeds, by the data sheet or the width of the unit
	Limit Number `json:"limit"`
	// what a microbenchmark reached
	Reached Number `json:"reached"`
	// the unit of both
	Unit string `json:"unit"`
	// of a memory: peak of the data sheet ÷ limit, or ÷ `reached` without one
	Ridge Number `json:"ridge_flop_per_byte" unit:"ratio"`
	// where the numbers come from
	Source string `json:"source"`
}

// RooflineKernel is a kernel under the roofs.
type RooflineKernel struct {
	// the device, as `arch@device`
	Device string `json:"device"`
	// as in `select`
	Problem gemm.Record `json:"problem"`
	Labels  Fields      `json:"labels,omitempty"`
	// `pick`, `config`, `fastest` or a library
	Name string `json:"name"`
	// its configuration
	Config *gemm.Config `json:"config"`
	// whether the time is measured
	Measured bool `json:"measured"`
	roofline.Kernel
	// Size is the problem as figures have it.
	Size gemm.Problem `json:"-"`
}

// Placing is what to place under the roofs.
type Placing struct {
	// DType is the type whose ceilings are listed in any case.
	DType gemm.DType
	// Problems have the names Labels for their labels. Without any, ceilings alone are listed, or all of the records.
	Problems []problems.Problem
	Labels   []string
	// Configs are configurations to place beside the pick.
	Configs []string
	// Records returns the measurements of a side, whose times are placed. It is nil for predicted times.
	Records func(*arch.Description) (*dataset.Dataset, error)
	// Failed is told where there is no answer.
	Failed func(where string, err error)
}

// The names of kernels that are no library's.
const (
	pickName    = "pick"
	configName  = "config"
	fastestName = "fastest"
)

// RooflinesOf lists the ceilings of devices and places kernels under them.
func RooflinesOf(ctx context.Context, sides []Contender, q *Placing) (*Rooflines, error) {
	out := &Rooflines{Devices: []RooflineDevice{}, Kernels: []RooflineKernel{}}
	for i := range sides {
		s := sides[i]
		s.Model = arch.Whole(s.Model, problems.Shapes(q.Problems)...)
		p := &placer{Contender: &s, Placing: q, out: out, first: len(out.Devices)}
		p.device(q.DType)
		if s.Describe().PeakFor(q.DType) == 0 {
			p.note("no rate of %s for %s is known: there is no ceiling of it", s.Label(), q.DType)
		}
		var err error
		switch {
		case q.Records != nil:
			err = p.measured(ctx)
		case len(q.Problems) == 0:
		case s.Describe().RanksOnly:
			p.note("the %s model of %s ranks kernels and predicts no times: none is placed", s.Describe().Model, s.Label())
		default:
			err = p.predicted(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// placer places the kernels of a side. The side has one device for each type, from out.Devices[first] on.
type placer struct {
	*Contender
	*Placing
	out   *Rooflines
	first int
}

func (p *placer) note(format string, args ...any) {
	p.out.Notes = append(p.out.Notes, fmt.Sprintf(format, args...))
}

// device returns the ceilings for a type.
func (p *placer) device(t gemm.DType) *roofline.Device {
	for i := range p.out.Devices[p.first:] {
		if d := p.out.Devices[p.first+i].Roofs; d.DType == t {
			return d
		}
	}
	d := p.Describe()
	one := RooflineDevice{ID: p.Label(), Name: d.DeviceName, Model: d.Model, ModelClass: d.ModelClass, Kernel: p.Kernel,
		DType: t.String(), Ceilings: []Ceiling{}, Roofs: roofline.New(p.Model, t)}
	for i := range one.Roofs.Ceilings {
		c := &one.Roofs.Ceilings[i]
		one.Ceilings = append(one.Ceilings, Ceiling{Name: c.Name, Level: c.Level.String(), Limit: orUnknown(c.Limit),
			Reached: orUnknown(c.Reached), Unit: c.Unit(), Ridge: orUnknown(one.Roofs.Ridge(c)), Source: c.Source})
	}
	p.out.Devices = append(p.out.Devices, one)
	return one.Roofs
}

// orUnknown is a number that is unknown if it is 0.
func orUnknown(v float64) Number {
	if v == 0 {
		return Number(math.NaN())
	}
	return Number(v)
}

// place places a kernel with a time. terms may be nil.
func (p *placer) place(of *problems.Problem, name string, c gemm.Config, terms []float64, seconds float64) {
	k := p.device(of.DType).Place(p.Describe(), of.Problem, c, terms, seconds)
	one := RooflineKernel{Device: p.Label(), Problem: of.Record(), Name: name, Measured: p.Records != nil, Kernel: k,
		Size: of.Problem}
	if c != (gemm.Config{}) {
		one.Config = &c
	}
	if len(of.Labels) > 0 {
		one.Labels = Labels(p.Labels, of.Labels)
	}
	p.out.Kernels = append(p.out.Kernels, one)
}

// predicted places the picks and the configurations that are asked for.
func (p *placer) predicted(ctx context.Context) error {
	answers, err := Rankings(ctx, p.Model, Question{Problems: problems.Shapes(p.Problems), Kernel: p.Kernel, Top: 1,
		Terms: true})
	if err != nil {
		return err
	}
	for i := range answers {
		a, of := &answers[i], &p.Problems[i]
		if a.Err != nil || len(a.Entries) == 0 {
			p.Failed(of.Where, a.Err)
			continue
		}
		e := &a.Entries[0]
		p.place(of, pickName, e.Config, e.Terms, float64(a.Seconds(e)))
		for _, text := range p.Configs {
			e, err := Explain(ctx, p.Model, a.Problem, p.Kernel, text)
			switch {
			case err != nil:
				p.Failed(of.Where, err)
			case e.Estimate.Reject != "":
				p.note("%s is not placed for %s: %s", text, a.Problem, e.Estimate.Reject)
			default:
				p.place(of, configName, e.Config, e.Terms, float64(e.Seconds(&e.Entry)))
			}
		}
	}
	return nil
}

// measured places the pick, the fastest kernel and the libraries of the records, with the model's bytes.
func (p *placer) measured(ctx context.Context) error {
	data, err := p.Records(p.Describe())
	if err != nil {
		return err
	}
	list := p.Problems
	if len(list) == 0 {
		for _, problem := range data.Problems() {
			list = append(list, problems.Problem{Problem: problem})
		}
		p.Model = arch.Whole(p.Model, data.Problems()...)
	}
	answers, err := Rankings(ctx, p.Model, Question{Problems: problems.Shapes(list), Kernel: data.Kernel, Top: 1})
	if err != nil {
		return err
	}
	for i := range list {
		of := &list[i]
		var pick *dataset.Measurement
		if len(answers[i].Entries) > 0 {
			if m, ok := data.Candidate(of.Problem, answers[i].Entries[0].Config); ok && timed(&m) {
				pick = &m
			}
		}
		best := fastest(data.Sweep(of.Problem))
		if pick != nil && best != nil && pick.Config == best.Config {
			best = nil
		}
		if pick == nil && best == nil {
			p.note("%s has no times of %s", data.Name, of.Problem)
		}
		for j, m := range []*dataset.Measurement{pick, best} {
			if m == nil {
				continue
			}
			terms := make([]float64, len(p.Describe().Terms))
			if err := p.Model.Terms(ctx, terms, of.Problem, []gemm.Config{m.Config}); err != nil {
				return err
			}
			p.place(of, [...]string{pickName, fastestName}[j], m.Config, terms, float64(m.Median))
		}
		for _, library := range data.Libraries() {
			if m, ok := data.FindLibrary(of.Problem, library); ok && timed(&m) {
				p.place(of, library, gemm.Config{}, nil, float64(m.Median))
			}
		}
	}
	return nil
}

func timed(m *dataset.Measurement) bool { return m.Status == dataset.OK && m.Median > 0 }

// fastest returns the fastest kernel of a sweep that is no library's, nil if there is none.
func fastest(sweep []dataset.Measurement) (best *dataset.Measurement) {
	for i := range sweep {
		if m := &sweep[i]; m.Library == "" && timed(m) && (best == nil || m.Median < best.Median) {
			best = m
		}
	}
	return best
}
