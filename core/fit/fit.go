// Package fit finds the quantities of a model that reproduce measured times best.
//
// It minimises the soft L1 loss of log(predicted ÷ measured), over the logarithms of the quantities and within their
// bounds, by the method of Levenberg and Marquardt. A quantity is then worth what it changes by a factor, and a time
// what it is off by a factor, whatever their units.
//
// References: D. W. Marquardt, "An Algorithm for Least-Squares Estimation of Nonlinear Parameters", J. SIAM 11
// (1963), 431; B. Triggs et al., "Bundle Adjustment – A Modern Synthesis", Vision Algorithms (1999), section 4.3
// (robust losses).
package fit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/stats"
)

// Model returns the model with the given values of quantities, by name. Any other quantity has the value that the model
// ships.
type Model func(values map[string]float64) (arch.Architecture, error)

// Quantity is a number to be fitted, by its name and within its bounds, which are above 0.
type Quantity = arch.Constant

// Options say how to fit. The zero value fits all quantities to the whole sample.
type Options struct {
	// Use says which problems of the sample count, by their number. Nil is all.
	Use func(problem int) bool
	// Start has values to start from. A quantity to be fitted that is not in it starts in the geometric middle of its
	// bounds; one that is not to be fitted keeps its value from here.
	Start map[string]float64
	// Steps is how many steps are taken at most; 0 is 20.
	Steps int
}

// Result is what a fit found.
type Result struct {
	// Values has the fitted quantities and the quantities of Options.Start.
	Values map[string]float64
	Loss   float64
	Steps  int
	// Converged says that the last step brought nothing more, and not that the steps ran out.
	Converged bool
}

const (
	defaultSteps = 20
	// difference is how far a logarithm is moved to find a derivative, and reach the farthest that one step moves it.
	difference = 1e-3
	reach      = 0.5
	// The damping starts at firstDamping and changes by dampingFactor, in up to dampingTries tries per step.
	firstDamping  = 1e-2
	dampingFactor = 5
	dampingTries  = 6
	// gain is the share of the loss that a step has to bring for another one to follow.
	gain = 1e-5
)

// Run fits the quantities to the sample.
func Run(ctx context.Context, sample *Sample, model Model, quantities []Quantity, o Options) (Result, error) {
	if len(sample.problems) == 0 {
		return Result{}, errNothing
	}
	kernels := sample.kernels(o.Use)
	return minimise(ctx, func(ctx context.Context, values []map[string]float64) ([][]float64, error) {
		times, err := EstimateEach(ctx, model, values, kernels)
		if err != nil {
			return nil, err
		}
		return sample.residuals(times, o.Use)
	}, quantities, o)
}

// Residuals returns the errors of log time with values of quantities, by name, each times the root of its weight.
type Residuals func(ctx context.Context, values map[string]float64) ([]float64, error)

// Minimise fits the quantities to residuals. Options.Use is not for it.
func Minimise(ctx context.Context, residuals Residuals, quantities []Quantity, o Options) (Result, error) {
	return minimise(ctx, func(ctx context.Context, values []map[string]float64) (rows [][]float64, err error) {
		for _, v := range values {
			r, err := residuals(ctx, v)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
		return rows, nil
	}, quantities, o)
}

// batch is Residuals for many sets of values: a model in another process is asked about all of them at once.
type batch func(ctx context.Context, values []map[string]float64) ([][]float64, error)

func minimise(ctx context.Context, residuals batch, quantities []Quantity, o Options) (Result, error) {
	f, err := newFitter(residuals, quantities, o)
	if err != nil {
		return Result{}, err
	}
	if f.r, err = f.at(ctx, f.values); err != nil {
		return Result{}, err
	}
	f.loss = soften(f.r)
	step, improved := 0, true
	for ; improved && step < f.o.Steps; step++ {
		if improved, err = f.step(ctx); err != nil {
			return Result{}, err
		}
	}
	return Result{Values: f.values, Loss: f.loss, Steps: step, Converged: !improved}, nil
}

// fitter is the state of a fit.
type fitter struct {
	residuals  batch
	quantities []Quantity
	o          Options

	values  map[string]float64
	r       []float64 // softened residuals at values
	loss    float64
	damping float64
}

var errNothing = errors.New("fit: nothing to fit, or nothing to fit to")

func newFitter(residuals batch, quantities []Quantity, o Options) (*fitter, error) {
	if len(quantities) == 0 {
		return nil, errNothing
	}
	if o.Steps == 0 {
		o.Steps = defaultSteps
	}
	f := &fitter{residuals: residuals, quantities: quantities, o: o, values: maps.Clone(o.Start), damping: firstDamping}
	if f.values == nil {
		f.values = map[string]float64{}
	}
	for _, q := range quantities {
		if !(q.Low > 0 && q.High >= q.Low) || math.IsInf(q.High, 0) {
			return nil, fmt.Errorf("fit: the bounds of %s, %v and %v, are no positive range", q.Name, q.Low, q.High)
		}
		v, ok := f.values[q.Name]
		if !ok {
			v = math.Sqrt(q.Low * q.High)
		}
		if !(v > 0) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("fit: %s starts at %v, which has no logarithm", q.Name, v)
		}
		f.values[q.Name] = v
	}
	return f, nil
}

// at returns the residuals of one set of values.
func (f *fitter) at(ctx context.Context, values map[string]float64) ([]float64, error) {
	rows, err := f.residuals(ctx, []map[string]float64{values})
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// step moves the values to a lower loss. It reports whether that brought enough to go on.
func (f *fitter) step(ctx context.Context) (improved bool, err error) {
	jacobian, err := f.jacobian(ctx)
	if err != nil {
		return false, err
	}
	normal, gradient := normalEquations(jacobian, f.r)
	for range dampingTries {
		moved := maps.Clone(f.values)
		for i, d := range solve(normal, gradient, f.damping) {
			q := &f.quantities[i]
			v := moved[q.Name] * math.Exp(min(max(d, -reach), reach))
			moved[q.Name] = min(max(v, q.Low), q.High)
		}
		r, err := f.at(ctx, moved)
		if err != nil {
			return false, err
		}
		if loss := soften(r); loss < f.loss {
			improved = loss < f.loss*(1-gain)
			f.values, f.r, f.loss, f.damping = moved, r, loss, f.damping/dampingFactor
			return improved, nil
		}
		f.damping *= dampingFactor
	}
	return false, nil
}

// jacobian returns the derivatives of the softened residuals by the logarithm of each quantity.
func (f *fitter) jacobian(ctx context.Context) ([][]float64, error) {
	moved := make([]map[string]float64, len(f.quantities))
	for i, q := range f.quantities {
		moved[i] = maps.Clone(f.values)
		moved[i][q.Name] *= math.Exp(difference)
	}
	rows, err := f.residuals(ctx, moved)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		soften(r)
		for j := range r {
			r[j] = (r[j] - f.r[j]) / difference
		}
	}
	return rows, nil
}

// normalEquations returns the lower half of JᵀJ and −Jᵀr, of a Jacobian that is given by columns.
func normalEquations(jacobian [][]float64, r []float64) (lower [][]float64, gradient []float64) {
	n := len(jacobian)
	lower, gradient = stats.Lower(n), make([]float64, n)
	for a := range n {
		for b := range a + 1 {
			for j, v := range jacobian[a] {
				lower[a][b] += float64(v * jacobian[b][j])
			}
		}
		for j, v := range jacobian[a] {
			gradient[a] -= float64(v * r[j])
		}
	}
	return lower, gradient
}

// What keeps a quantity that changes nothing from making the equations singular.
const (
	leastDiagonal = 1e-9
	leastPivot    = 1e-12
)

// solve returns x of (A + damping·diag(A))·x = b for a symmetric A of which the lower half is given, by Cholesky's
// method.
func solve(lower [][]float64, b []float64, damping float64) []float64 {
	n := len(b)
	l, x := stats.Lower(n), slices.Clone(b)
	for i := range n {
		copy(l[i], lower[i])
		l[i][i] += float64(damping*lower[i][i]) + leastDiagonal
	}
	stats.Cholesky(l, leastPivot)
	stats.Forward(l, x)
	for i := n - 1; i >= 0; i-- { // by rows, as recorded fits were made: stats.Backward rounds in another order
		for k := i + 1; k < n; k++ {
			x[i] -= float64(l[k][i] * x[k])
		}
		x[i] /= l[i][i]
	}
	return x
}
