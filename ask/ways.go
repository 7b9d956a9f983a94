package ask

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Way is how another kernel family of the device runs the product: its fastest configuration.
type Way struct {
	// as in the answer
	Kernel string      `json:"kernel"`
	Model  string      `json:"model"`
	Config gemm.Config `json:"config"`
	// as in the answer
	Timing string `json:"timing,omitempty"`
	// the predicted time, and the ends of its interval
	Seconds  float64     `json:"seconds"`
	Interval *[2]float64 `json:"interval_seconds,omitempty"`
	// the probability that the measured time lies in the interval
	IntervalLevel float64 `json:"interval_level,omitempty"`
	// as in the answer
	Validated bool     `json:"validated"`
	Outside   []string `json:"outside"`
	// what the most similar predictions were checked on
	Checked *Checked `json:"checked"`
	// as in the answer
	Evidence arch.Evidence `json:"evidence"`
}

// way returns the pick of a ranking as another way.
func (a *Ranking) way() Way {
	e := &a.Entries[0]
	pick := a.Pick(e)
	return Way{Kernel: a.Kernel, Model: a.Arch.Model, Config: pick.Config, Timing: a.Arch.Timing,
		Seconds:  pick.Predicted.Seconds,
		Interval: pick.Predicted.Interval, IntervalLevel: pick.Predicted.IntervalLevel,
		Validated: a.Scope(e).Checked(), Evidence: a.Scope(e).Evidence,
		Outside: append([]string{}, a.Outside(e)...), Checked: a.checked(e)}
}

// Family is another kernel family of a contender's device. Its model is opened when it is first asked.
type Family struct {
	Kernel string
	open   func(context.Context) (arch.Architecture, error)

	mu     sync.Mutex
	opened arch.Architecture
	err    error
}

// NewContender returns a target with its opened model, and with the other kernel families of the device.
func NewContender(s models.Source, f *models.Found, a arch.Architecture) (Contender, error) {
	d := a.Describe()
	c := Contender{Found: *f, Model: a, Fixed: f.Fixed()}
	var err error
	if c.Kernel, err = KernelFamily(d, f.OpenRequest.Kernel); err != nil {
		return c, err
	}
	for _, kernel := range f.Arch.Kernels {
		if kernel == c.Kernel {
			continue
		}
		open := func(context.Context) (arch.Architecture, error) { return a, nil }
		if !slices.Contains(d.Kernels, kernel) {
			other := *f
			o := &other.OpenRequest
			o.Kernel, o.Model, o.Compiled, o.Characterization = kernel, "", nil, nil // the files are of c.Kernel
			if f.Arch.Has(string(arch.ClassRefined)) {
				o.Model = string(arch.ClassRefined) // a published model is a yardstick
			}
			open = func(ctx context.Context) (arch.Architecture, error) { return other.Open(ctx, s) }
		}
		c.Others = append(c.Others, &Family{Kernel: kernel, open: open})
	}
	return c, nil
}

// Open returns the model of the family. What fails is tried again by the next question only if it was interrupted.
func (f *Family) Open(ctx context.Context) (arch.Architecture, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opened == nil && f.err == nil {
		a, err := f.open(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		f.opened, f.err = a, err
	}
	return f.opened, f.err
}

// For returns the contender that answers for a problem: c, or the first of its other families that has kernels for
// the types, if c's family has none and the user did not choose it.
func (c *Contender) For(ctx context.Context, p *gemm.Problem) *Contender {
	flat := p.Flat()
	if c.Fixed || p.Nest != (gemm.Nest{}) || c.Describe().SupportsTypes(c.Kernel, &flat) == nil {
		return c
	}
	for i, f := range c.Others {
		a, err := f.Open(ctx)
		if err != nil || a.Describe().RanksOnly || a.Describe().SupportsTypes(f.Kernel, &flat) != nil {
			continue
		}
		other := *c
		other.Model, other.Kernel, other.Others = a, f.Kernel, slices.Delete(slices.Clone(c.Others), i, i+1)
		return &other
	}
	return c
}

// Rankings ranks the candidates for each problem, as the function Rankings does, by the family that For returns. With
// q.Ways the other families answer too, at the same time.
func (c *Contender) Rankings(ctx context.Context, q Question) ([]Ranking, error) {
	ways := func() [][]*Ranking { return nil }
	if q.Ways && c.Free == nil { // the other families add up in other orders
		ways = c.askWays(ctx, q.Problems)
	}
	answers, err := Rankings(ctx, c.Model, q)
	others := ways()
	if err != nil {
		return nil, err
	}
	for i := range answers {
		a := &answers[i]
		if a.Err != nil {
			c.again(ctx, q, i, a)
		}
		a.setWays(others, i)
	}
	if c.Free != nil {
		err = c.priceOf(ctx, q, answers)
	}
	if err == nil && q.Advice {
		err = c.advise(ctx, answers, q.Space)
	}
	return answers, err
}

// priceOf gives rankings the price of what Model leaves out.
func (c *Contender) priceOf(ctx context.Context, q Question, answers []Ranking) error {
	free, err := Rankings(ctx, c.Free, Question{Problems: q.Problems, Kernel: q.Kernel, Top: 1})
	if err != nil {
		return err
	}
	for i := range answers {
		if a, f := &answers[i], &free[i]; a.Err == nil && f.Err == nil {
			price := float64(a.Seconds(&a.Entries[0])/f.Seconds(&f.Entries[0])) - 1
			a.Price = &price
		}
	}
	return nil
}

// setWays gives a ranking the other ways for the i-th problem.
func (a *Ranking) setWays(ways [][]*Ranking, i int) {
	if ways != nil {
		a.Ways = slices.DeleteFunc(ways[i], func(way *Ranking) bool { return way.Kernel == a.Kernel })
	}
}

// again asks the family that For returns about the i-th problem, if it is another.
func (c *Contender) again(ctx context.Context, q Question, i int, a *Ranking) {
	other := c.For(ctx, &q.Problems[i])
	if other == c {
		c.refer(ctx, &q.Problems[i], a)
		return
	}
	q.Problems, q.Kernel = q.Problems[i:i+1], other.Kernel
	if got, err := Rankings(ctx, other.Model, q); err == nil {
		got[0].Requested = a.Kernel
		*a = got[0]
	}
}

// refer adds the device's other families that have kernels for the problem to the error of a ranking, if the
// contender's family has none. The error already names the families of the same model.
func (c *Contender) refer(ctx context.Context, p *gemm.Problem, a *Ranking) {
	var d *diag.Error
	if !errors.As(a.Err, &d) || c.Describe().SupportsTypes(c.Kernel, p) == nil {
		return
	}
	var have []string
	for _, f := range c.Others {
		if slices.Contains(c.Describe().Kernels, f.Kernel) {
			continue
		}
		if m, err := f.Open(ctx); err == nil && m.Describe().SupportsTypes(f.Kernel, p) == nil {
			have = append(have, f.Kernel)
		}
	}
	if len(have) > 0 {
		a.Err = d.Also("kernel families of the device that have such kernels: %s", strings.Join(have, ", "))
	}
}

// askWays begins to ask the other families about problems. The function that it returns waits for their rankings, with
// the picks, for each problem, the fastest family first. A family without a time for a problem is left out, whatever
// the reason. There are none beside a model that gives no times.
func (c *Contender) askWays(ctx context.Context, list []gemm.Problem) func() [][]*Ranking {
	if c.Describe().RanksOnly {
		return func() [][]*Ranking { return nil }
	}
	rankings := make([][]Ranking, len(c.Others))
	var group Group
	for i, f := range c.Others {
		group.Go(func() {
			if a, err := f.Open(ctx); err == nil && !a.Describe().RanksOnly {
				rankings[i], _ = Rankings(ctx, a, Question{Problems: list, Kernel: f.Kernel, Top: 1})
			}
		})
	}
	return func() [][]*Ranking {
		group.Wait()
		ways := make([][]*Ranking, len(list))
		for i := range ways {
			for _, of := range rankings {
				if of != nil && of[i].Err == nil {
					ways[i] = append(ways[i], &of[i])
				}
			}
			slices.SortStableFunc(ways[i], func(a, b *Ranking) int {
				return cmp.Compare(a.Seconds(&a.Entries[0]), b.Seconds(&b.Entries[0]))
			})
		}
		return ways
	}
}
