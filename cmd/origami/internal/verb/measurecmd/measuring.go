package measurecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/timing"
	"github.com/origami-gemm/origami/core/unit"
)

// measuring is what the command line says of measuring, and the GPUs that measure.
type measuring struct {
	Factory     *session.Factory
	Executor    string `json:"executor" arg:"NAME" help:"measure with the executor plugin NAME, as in cuda or triton"`
	Records     string `json:"records" arg:"FOLDER" help:"FOLDER of a data set, the shipped one otherwise; with --executor, where to write and continue it"`
	RetryFailed bool   `json:"retry_failed" help:"with --executor, measure again what has failed"`
	Share       session.ShareFlags

	warmL2 bool // --timing alone leaves the L2 warm
	shard  measure.Shard
	gpus   []*measure.GPU
}

// beside opens the model in the timing of what is measured: events, or alone.
func (m *measuring) beside(open func() (arch.Architecture, error)) (arch.Architecture, error) {
	m.warmL2 = m.Factory.Settings.Timing == string(timing.Alone)
	conditions := dataset.Conditions{WarmL2: m.warmL2}
	return m.Factory.Beside(conditions.Timing(), nil, open)
}

// open finds the GPUs, and returns the least memory that one has.
func (m *measuring) open(ctx context.Context, a arch.Architecture) (memory unit.Bytes, err error) {
	m.gpus, memory, err = m.Factory.Sweeps(ctx, a, m.Executor, &m.Share, m.warmL2)
	return memory, err
}

// close ends the executors.
func (m *measuring) close() (err error) {
	for _, g := range m.gpus {
		err = errors.Join(err, g.Executor.Close())
	}
	return err
}

// work is what is measured into a folder. Each shard is a part of it.
type work struct {
	name string // what asks for it
	// problems are the problems of all shards, and costs about how long each takes. best are the best predictions of the
	// problems that have one, and times their times.
	problems []gemm.Problem
	costs    []unit.Seconds
	best     []dataset.Measurement
	times    []unit.Seconds
}

func (w *work) add(p gemm.Problem, cost unit.Seconds) {
	w.problems, w.costs = append(w.problems, p), append(w.costs, cost)
}

func (w *work) predict(p gemm.Problem, c gemm.Config, t unit.Seconds) {
	w.best, w.times = append(w.best, dataset.Measurement{Problem: p, Config: c}), append(w.times, t)
}

// recording is a fleet that measures into a folder.
type recording struct {
	*measure.Fleet
	m     *measuring
	work  string
	store *datastore.Store
	// folder is a shard's, in the folder that shards are merged into, which is the folder itself without shards.
	folder, merged string
}

// checkInterval is how long a GPU measures between two looks at its known kernels. A look takes about a tenth of a
// second. What was measured since the last one is lost with the process.
const checkInterval = 10 * time.Second

// record opens a folder, and lets GPUs measure into it. It tells a bar what goes wrong, and done of each measurement.
func (m *measuring) record(
	ctx context.Context, gpus []*measure.GPU, folder string, w *work, bar *show.Bar, done func(dataset.Measurement),
) (*recording, error) {
	r := &recording{m: m, work: datastore.Work(w.name, w.problems), folder: datastore.ShardFolder(folder, m.shard),
		merged: folder}
	var err error
	if r.store, err = datastore.ContinueShard(ctx, m.Factory.Streams, gpus[0].Data, folder, m.shard, r.work); err != nil {
		return nil, err
	}
	r.Fleet = &measure.Fleet{GPUs: gpus, Known: measure.KnownFrom(w.best, w.times), Data: r.store.Data,
		Interval: checkInterval, Keep: r.store.Append, Alone: !m.Share.On()}
	if !r.Alone {
		r.Keep = func(ms ...dataset.Measurement) error { return cmp.Or(r.store.Append(ms...), r.store.Sync()) }
	}
	for _, g := range gpus {
		g.RetryFailed = m.RetryFailed
		g.Retry = func(err error, wait time.Duration, attempt, of int) {
			bar.Warn(session.Retrying(err, wait, attempt, of))
		}
	}
	r.Done = func(m dataset.Measurement) {
		done(m)
		if why, worth := datastore.LeftOut(&m); worth {
			bar.Warn(why)
		}
	}
	r.Aside = func(g *measure.GPU, why error) {
		bar.Warn(fmt.Sprintf("GPU %s is set aside, and its work is for others: %s", g.Name, diag.Line(why)))
	}
	if err := r.Begin(ctx); err != nil {
		err = r.stopped(ctx, err)
		_ = r.store.Close() // the error says more
		return nil, err
	}
	return r, nil
}

// stopped adds to the error that ended measuring what is kept.
func (r *recording) stopped(ctx context.Context, err error) error {
	return datastore.Stopped(ctx, err, r.store.Data.Len(), r.folder)
}

// finish notes that a shard has measured all of its part.
func (r *recording) finish() error {
	return datastore.FinishShard(r.m.Factory.Streams, r.merged, r.m.shard, r.work)
}

// place is the folder of the records: --records, or a new folder that is named after what is measured.
func (m *measuring) place(c dataset.Conditions, suffix string) string {
	if m.Records != "" {
		return m.Records
	}
	folder := c.Device + "-" + c.Kernel
	if c.WarmL2 {
		folder += "-warm"
	}
	folder += "-" + time.Now().Format(time.DateOnly) + suffix
	m.Factory.Streams.Note("measurements are kept in " + folder)
	return folder
}

// rate is a number of measurements, and how many per second.
func rate(n int, seconds float64) string {
	return fmt.Sprintf("%d measured, %.1f/s", n, float64(n)/max(seconds, 1e-3))
}

// NewLend returns the command at the other end of --remote.
func NewLend(f *session.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "lend EXECUTOR",
		Short: "Lend the GPU of this machine to another one",
		Long: "Run an executor plugin of this machine for `origami tune --remote` or `bench --remote` on another\n" +
			"one, over standard input and output. The plugin must be trusted here. It ends with the connection.",
		Example: "  origami tune sizes.yaml --arch sm90@h200 --executor cuda --remote 'ssh node1 origami lend cuda'",
		Args:    session.OneArgument("EXECUTOR", "an executor plugin, as in cuda"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.Lend(cmd.Context(), args[0], os.Stdin, os.Stdout)
		},
	}
}
