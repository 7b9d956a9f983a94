// Package ladder puts the rungs of a ladder of kernels side by side: each kernel does one thing more than the one
// below. It says what limits each rung, and judges claims about the ladder by numbers. It knows no kernel: a rung is a
// configuration, its costs are terms of a model, and its time is measured, published or predicted.
package ladder

import (
	"context"
	"strings"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Rung is a kernel of a ladder.
type Rung struct {
	Name, Doc string
	Config    gemm.Config
	// Label says what its time is of, where another rung is the same kernel without a part of it.
	Label string
	// Operands is the type of its operands, if the ladder's problems have another.
	Operands gemm.DType
	// Instead is the name of the rung that computes what this one cannot. It is empty if there is none.
	Instead string
}

// Problem is a problem of the ladder with the operands of the rung, as records have it.
func (r *Rung) Problem(p gemm.Problem) gemm.Problem {
	if r.Operands != 0 {
		p.DType, p.Out = r.Operands, p.Output()
	}
	return p.Canonical()
}

// Library is the rung of a vendor's library. Its kernel is unknown: the prediction is of the fastest kernel of the
// family.
const Library = "library"

// Time is a published time of a rung.
type Time struct {
	// Device is "arch@device". Size is M, N and K.
	Device string
	Size   int
	// Rung is the name of the rung, Stage its name in the source.
	Rung, Stage string
	// Config is the configuration that does what the published kernel does. It may differ from that of the rung in its
	// blocks. It is zero for the kernels of a library, and for kernels that the family cannot express.
	Config gemm.Config
	// Rate is in FLOP/s.
	Rate unit.FlopsPerSecond
	// Source names repository, file and commit.
	Source string
}

// Provider is a plugin (arch.Provider) that knows a ladder of kernels. arch.Manifest.Ladder says so.
type Provider interface {
	Ladder(ctx context.Context) (*Ladder, error)
}

// Ladder is the rungs of a kernel family, and what is published of them.
type Ladder struct {
	// Family is the kernel family, Types are the types of its problems.
	Family string
	Types  gemm.Types
	// Device is the device that the claims are about, as "arch@device".
	Device string
	// Rungs start at the bottom. Claims are public statements about them, and Others are the kernels that claims compare
	// them with and that are no rungs.
	Rungs     []Rung
	Others    []Rung
	Claims    []Claim
	Costs     []Cost
	Published []Time
}

// Cost is a resource, or a wait, that can limit a rung.
type Cost struct {
	Name string
	// Term is the term of a model that says for how many cycles one CTA needs it in a K step, or in all if Whole is set.
	Term  string
	Whole bool
}

// Values are the terms of a model for one kernel and problem, by name.
type Values map[string]float64

// cycles returns for how long the busiest SM needs a resource.
func (c Cost) cycles(v Values) float64 {
	if c.Whole {
		return v[c.Term]
	}
	return v[c.Term] * v[stepsTerm] * v[ctasTerm]
}

// The terms that make a whole of a K step of one CTA.
const (
	stepsTerm = "steps"
	ctasTerm  = "ctas_of_sm"
	totalTerm = "total"
)

// Dominant returns the cost that takes longest, and its share of the predicted time. Without a total there is none, and
// the share is 0.
func Dominant(costs []Cost, v Values) (most Cost, share float64) {
	total := v[totalTerm]
	if !(total > 0) { // it may be NaN
		return most, 0
	}
	for _, c := range costs {
		if s := c.cycles(v) / total; s > share {
			most, share = c, s
		}
	}
	return most, share
}

// Entry is a rung on a device for one problem.
type Entry struct {
	Rung Rung
	// Values are the model's terms and the device's parameters. They are nil if no configuration of the family does what
	// the kernel does.
	Values Values
	// Predicted and Measured are times. 0 is unknown.
	Predicted, Measured unit.Seconds
	// Source says where Measured is from.
	Source string
	// Rejected is why the device cannot run the configuration, or the configuration not compute the problem, and Detail
	// the same in numbers.
	Rejected, Detail string
}

// Time is the measured time, or the predicted time if none is known.
func (e *Entry) Time() (seconds unit.Seconds, measured bool) {
	if e.Measured > 0 {
		return e.Measured, true
	}
	return e.Predicted, false
}

// Seconds is how long the busiest SM needs the resource, on a device with a clock.
func (c Cost) Seconds(v Values, clock unit.Hertz) float64 { return c.cycles(v) / float64(clock) }

// Column is the name in JSON and CSV.
func (c Cost) Column() string { return strings.ReplaceAll(strings.ToLower(c.Name), " ", "_") }
