package measurecmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
)

// group is the problems that are measured with one kernel family, nil for all that are recorded, and the measurements.
type group struct {
	kernel   string
	problems []problems.Problem
	data     *dataset.Dataset
}

// measure measures the problems, or a shard of them, on the executor's device or on several. It returns the data set of
// each kernel family, as its folder then holds it.
func (o *BenchOptions) measure(
	ctx context.Context, a arch.Architecture, list []problems.Problem,
) (groups []group, err error) {
	shard, err := o.Share.Part(o.Factory.Getenv)
	if err != nil {
		return nil, err
	}
	gpus, memory, err := o.gpus(ctx, a)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, g := range gpus {
			if closed := g.Executor.Close(); err == nil {
				err = closed
			}
		}
	}()
	gpus[0].Data.Source = "origami bench --executor " + o.Executor
	if err := o.offerCalibration(ctx, a.Describe()); err != nil {
		return nil, err
	}
	families, err := o.Factory.FamiliesToMeasure(ctx, gpus[0].Sweep)
	if err != nil {
		return nil, err
	}
	if groups, err = byFamily(ctx, a, families, list); err != nil {
		return nil, err
	}
	for i := range groups {
		g := &groups[i]
		of := make([]*measure.GPU, len(gpus))
		for j, gpu := range gpus {
			of[j] = &measure.GPU{Name: gpu.Name, Sweep: ofFamily(gpu.Sweep, g.kernel)}
		}
		folder, fitting := o.place(g, of[0].Data.Conditions, families[0], memory)
		if o.Share.On() {
			err = o.fillShared(ctx, g, of, shard, folder, fitting)
		} else if err = o.fill(ctx, of[0].Sweep, folder, fitting); err == nil {
			g.data, err = dataset.Read(folder, datastore.Files(ctx, folder))
		}
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.problems) == 0 }), nil
}

// offerCalibration says so where a model has no measured numbers of the GPU that is there, and they can be measured.
func (o *BenchOptions) offerCalibration(ctx context.Context, d *arch.Description) error {
	if d.Rung != arch.RungSpec {
		return nil
	}
	manifests, err := o.Factory.Manifests(ctx)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		if m.Calibrates && slices.ContainsFunc(m.Archs, func(a arch.ArchEntry) bool { return a.ID == d.Arch }) {
			o.Factory.Streams.Note(fmt.Sprintf(
				"the model of %s has the numbers of a data sheet; `origami calibrate` measures those of this GPU", d.ID()))
			break
		}
	}
	return nil
}

// place returns the folder of a group, and its problems that fit into the device's memory.
func (o *BenchOptions) place(
	g *group, c dataset.Conditions, first string, memory unit.Bytes,
) (folder string, fitting []problems.Problem) {
	folder = o.folder(c, first)
	if g.kernel != first {
		o.Factory.Streams.Note(fmt.Sprintf("there is no %s kernel for %s; %s measured with %s, in %s", first,
			some(g.problems), isAre(len(g.problems)), g.kernel, folder))
	}
	return folder, slices.DeleteFunc(slices.Clone(g.problems), func(p problems.Problem) bool {
		return !datastore.Fits(o.Factory.Streams, p.Problem, memory)
	})
}

// byFamily groups problems by the first of the families that has a kernel for them. Those without any are the first
// family's, whose sweep then says why.
func byFamily(
	ctx context.Context, a arch.Architecture, families []string, list []problems.Problem,
) (groups []group, err error) {
	of := map[string][]problems.Problem{families[0]: list}
	if len(families) > 1 {
		answers, err := ask.Rankings(ctx, a, ask.Question{Problems: problems.Shapes(list), Kernel: families[0],
			Fallbacks: families[1:], Top: 1})
		if err != nil {
			return nil, err
		}
		clear(of)
		for i := range answers {
			if err := answers[i].Err; err != nil && diag.KindOf(err) != diag.Input {
				return nil, err
			}
			of[answers[i].Kernel] = append(of[answers[i].Kernel], list[i])
		}
	}
	for _, family := range families {
		if of[family] != nil {
			groups = append(groups, group{kernel: family, problems: of[family]})
		}
	}
	return groups, nil
}

// ofFamily returns a sweep on the same device with kernels of a family, and an empty data set.
func ofFamily(sweep *measure.Sweep, kernel string) *measure.Sweep {
	one := *sweep
	one.Space.Kernel = kernel
	conditions := sweep.Data.Conditions
	conditions.Kernel = kernel
	one.Data = dataset.New("", conditions)
	one.Data.Software, one.Data.Source = sweep.Data.Software, sweep.Data.Source
	return &one
}

// folder returns where the measurements are kept. Those of a family other than the first one have a folder beside it.
func (o *BenchOptions) folder(c dataset.Conditions, first string) string {
	switch {
	case o.Records == "":
		folder := datastore.DefaultFolder(c)
		o.Factory.Streams.Note("measurements are kept in " + folder)
		return folder
	case c.Kernel == first:
		return filepath.Clean(o.Records)
	default:
		return filepath.Clean(o.Records) + "-" + c.Kernel
	}
}

// some names problems: the first, and how many others.
func some(problems []problems.Problem) string {
	if len(problems) == 1 {
		return problems[0].String()
	}
	return fmt.Sprintf("%s and %s", problems[0].Problem, digits.Plural(len(problems)-1, "other problem", "other problems"))
}

func isAre(n int) string {
	if n == 1 {
		return "it is"
	}
	return "they are"
}

// fill measures the candidates that the folder does not have yet.
func (o *BenchOptions) fill(
	ctx context.Context, sweep *measure.Sweep, folder string, problems []problems.Problem,
) (err error) {
	kept, err := datastore.Continue(ctx, o.Factory.Streams, sweep, folder)
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
	datastore.Watch(sweep, progress.Bar, progress.done)
	for _, p := range problems {
		err := sweep.Run(ctx, p.Problem)
		if err != nil && diag.KindOf(err) != diag.Input { // the answer reports each problem without a time
			return datastore.Stopped(ctx, err, kept.Data.Len(), folder)
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
