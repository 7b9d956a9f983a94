package benchcmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/measuring"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
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
		folder = measuring.DefaultFolder(sweep.Data.Conditions)
		o.Factory.Streams.Note("measurements are kept in " + folder)
	}
	folder = filepath.Clean(folder)
	fitting := slices.DeleteFunc(slices.Clone(problems), func(p session.Problem) bool {
		return !measuring.Fits(o.Factory.Streams, p.Problem, memory)
	})
	if err := o.fill(ctx, sweep, folder, fitting); err != nil {
		return nil, err
	}
	return dataset.Read(folder, datastore.Files(ctx, folder))
}

// fill measures the candidates that the folder does not have yet.
func (o *Options) fill(
	ctx context.Context, sweep *measure.Sweep, folder string, problems []session.Problem,
) (err error) {
	kept, err := measuring.Open(ctx, o.Factory.Streams, sweep, folder)
	if err != nil {
		return err
	}
	defer func() {
		if closed := kept.Close(); err == nil {
			err = closed
		}
	}()
	sweep.RetryFailed = o.RetryFailed
	progress := newProgress(o.Factory.Streams, sweep, problems)
	defer progress.Stop()
	sweep.Begin = progress.begin
	sweep.Done = func(m dataset.Measurement) {
		progress.done(m)
		if why, worth := measuring.LeftOut(&m); worth {
			progress.Warn(why)
		}
	}
	sweep.Retry = func(err error, wait time.Duration, attempt, of int) {
		progress.Warn(session.Retrying(err, wait, attempt, of))
	}
	for _, p := range problems {
		err := sweep.Run(ctx, p.Problem)
		if err != nil && diag.KindOf(err) != diag.Input { // the answer reports each problem without a time
			return measuring.Stopped(ctx, err, kept.Data.Len(), folder)
		}
		if err := kept.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// weight is what it costs to measure a configuration of a problem, in 10⁹ operations: its arithmetic, and about 10¹²
// operations' worth of compiling and checking. Problems differ by a factor of 10⁶, so counting them would mislead.
func weight(p gemm.Problem) int64 { return int64(p.Flops()/1e9) + 1000 }
