//go:build cuda

package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
)

// runnable is a program for a problem.
type runnable struct {
	device  *device
	problem gemm.Problem
	name    string // of the configuration or the library, for errors
	program program
}

// Resources implements exec.Kernel.
func (k *runnable) Resources() exec.Resources { return k.program.resources() }

// Check implements exec.Kernel.
func (k *runnable) Check(ctx context.Context) (n exec.Numerics, err error) {
	err = k.run(ctx, "checking", exec.InputNormal, func(o *operands, run func() error) error {
		n, err = k.device.check(o, k.rounds(), run)
		return err
	})
	return n, err
}

// rounds is the type to which the program rounds its operands, 0 for none.
func (k *runnable) rounds() gemm.DType {
	if g, ok := k.program.(*generated); ok {
		return g.kernel.Rounds
	}
	return 0
}

// Measure implements exec.Kernel.
func (k *runnable) Measure(ctx context.Context, m exec.MeasureOptions, sample func(exec.Sample) bool) error {
	return k.run(ctx, "measuring", m.Input, func(_ *operands, run func() error) error {
		k.device.quiet.Lock()
		defer k.device.quiet.Unlock()
		for range m.Warmup {
			if err := run(); err != nil {
				return err
			}
		}
		for more := true; more && ctx.Err() == nil; {
			s, err := k.device.timed(run, m.WarmL2)
			if err != nil {
				return err
			}
			more = sample(s)
		}
		return ctx.Err()
	})
}

// run gives f the device, the operands and a way to run the program on them.
func (k *runnable) run(ctx context.Context, doing, input string, f func(o *operands, run func() error) error) error {
	d := k.device
	d.running.Lock()
	defer d.running.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	err := d.do(func() error {
		o, err := d.prepare(k.problem, input)
		if err != nil {
			return err
		}
		run, err := k.program.bind(o)
		if err != nil {
			return err
		}
		return f(o, run)
	})
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return err
	}
	return fault(err, fmt.Sprintf("%s %s on %s", doing, k.name, k.problem))
}

// Close implements exec.Kernel.
func (k *runnable) Close() error {
	k.program.close()
	return nil
}
