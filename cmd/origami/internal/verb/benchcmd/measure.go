package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/render"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
)

// measure measures the problems on the executor's device, and returns the data set that its folder then holds.
func (o *Options) measure(
	ctx context.Context, a arch.Architecture, problems []session.Problem,
) (data *dataset.Dataset, err error) {
	sweep, memory, err := o.Factory.Sweep(ctx, a, o.Executor, o.WarmL2)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := sweep.Executor.Close(); err == nil {
			err = closed
		}
	}()
	sweep.Data.Source = fmt.Sprintf("origami bench --executor %s", o.Executor)
	folder := o.Records
	if folder == "" {
		folder = defaultFolder(sweep.Data.Conditions)
		o.Factory.Streams.Note("measurements are kept in " + folder)
	}
	folder = filepath.Clean(folder)
	if err := o.fill(ctx, sweep, folder, o.fitting(problems, memory)); err != nil {
		return nil, err
	}
	return dataset.Read(folder, datastore.Files(ctx, folder))
}

// fitting leaves out the problems whose matrices alone are larger than the device's memory: no candidate could run.
// Zero means that the executor does not know the memory.
func (o *Options) fitting(problems []session.Problem, memory unit.Bytes) []session.Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p session.Problem) bool {
		var need unit.Bytes
		for o := gemm.A; o <= gemm.C; o++ {
			need += unit.Bytes(p.Matrices(o)) * unit.Bytes(p.Type(o).Size(p.Stride(o)))
		}
		if memory == 0 || need <= memory {
			return false
		}
		o.Factory.Streams.Warn(fmt.Sprintf("%s is not measured: its matrices take %.4g GB, and the device has %.4g GB",
			p.Problem, float64(need)/1e9, float64(memory)/1e9))
		return true
	})
}

// defaultFolder names a folder after what is measured and the day.
func defaultFolder(c dataset.Conditions) string {
	name := c.Device + "-" + c.Kernel
	if c.WarmL2 {
		name += "-warm"
	}
	return name + "-" + time.Now().Format(time.DateOnly)
}

// fill measures the candidates that the folder does not have yet.
func (o *Options) fill(
	ctx context.Context, sweep *measure.Sweep, folder string, problems []session.Problem,
) (err error) {
	kept, err := datastore.Open(ctx, folder, sweep.Data)
	if err != nil {
		return err
	}
	defer func() {
		if closed := kept.Close(); err == nil {
			err = closed
		}
	}()
	if kept.Torn != nil {
		o.Factory.Streams.Warn(fmt.Sprintf("%s: %s; it is dropped and measured again", kept.Torn.Where, kept.Torn.Why))
	}
	sweep.Data, sweep.Keep, sweep.RetryFailed = kept.Data, kept.Append, o.RetryFailed
	progress := newProgress(o.Factory.Streams, sweep, problems)
	defer progress.stop()
	sweep.Begin = progress.begin
	sweep.Done = func(m dataset.Measurement) {
		progress.done(m)
		switch m.Status {
		case dataset.OK, dataset.NotBuilt: // many candidates do not fit, which is no reason to warn
		default:
			progress.warn(fmt.Sprintf("%s of %s is left out: %s: %s", m.Label(), m.Problem, words(m.Status),
				m.Detail))
		}
	}
	sweep.Retry = func(err error, wait time.Duration, attempt, of int) {
		progress.warn(session.Retrying(err, wait, attempt, of))
	}
	for _, p := range problems {
		err := sweep.Run(ctx, p.Problem)
		if err != nil && diag.KindOf(err) != diag.Input { // the answer reports each problem without a time
			return stopped(ctx, err, kept.Data.Len(), folder)
		}
		if err := kept.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// stopped adds to the error that ended a sweep how many measurements are kept, and how to continue.
func stopped(ctx context.Context, err error, measurements int, folder string) error {
	var d *diag.Error
	switch {
	case ctx.Err() != nil:
		d = &diag.Error{What: session.ErrInterrupted.Error(), Err: session.ErrInterrupted}
	case !errors.As(err, &d):
		d = &diag.Error{What: err.Error(), Err: err}
	}
	if measurements == 0 {
		return d
	}
	fix := fmt.Sprintf("%s kept in %s, and the same command with --records %s goes on from there",
		render.Plural(measurements, "measurement is", "measurements are"), folder, folder)
	if d.Fix != "" {
		fix = d.Fix + "; " + fix
	}
	return d.Do("%s", fix)
}

// words writes a status for a reader.
func words(s dataset.Status) string {
	switch s {
	case dataset.Wrong:
		return "wrong result"
	case dataset.Timeout:
		return "it did not end in time"
	default:
		return string(s)
	}
}

// weight is what it costs to measure a configuration of a problem, in 10⁹ operations: its arithmetic, and about 10¹²
// operations' worth of compiling and checking. Problems differ by a factor of 10⁶, so counting them would mislead.
func weight(p gemm.Problem) int64 { return int64(p.Flops()/1e9) + 1000 }
