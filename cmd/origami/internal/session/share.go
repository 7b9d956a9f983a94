package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
)

// ShareFlags say which part of a work is done, and by which GPUs.
type ShareFlags struct {
	GPUs, Shard string
	Remote      []string
}

// Register adds the flags.
func (s *ShareFlags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&s.GPUs, "gpus", "",
		"measure with several GPUs of this machine: all, or their `NUMBERS`, as in 0,1")
	flags.StringVar(&s.Shard, "shard", "",
		"do part `I/N` of the work in a folder of its own; auto/N: I from a Slurm array or an indexed job")
	flags.StringArrayVar(&s.Remote, "remote", nil,
		"measure with the GPU at the end of a `COMMAND`, as in 'ssh node1 origami lend cuda'; may be repeated")
}

// On reports whether the work is shared.
func (s *ShareFlags) On() bool { return s.GPUs != "" || s.Shard != "" || len(s.Remote) > 0 }

// Check reports a flag that measures where nothing is measured.
func (s *ShareFlags) Check(measures bool) error {
	if s.On() && !measures {
		return diag.Inputf("--gpus, --remote and --shard are about measuring").Do("add --executor")
	}
	return nil
}

// indices are the variables that number the tasks of a cluster, and the number of their first task.
var indices = []struct {
	name  string
	first int
}{{"SLURM_ARRAY_TASK_ID", 1}, {"JOB_COMPLETION_INDEX", 0}}

// Part returns the part of the work, the zero value for all of it.
func (s *ShareFlags) Part(getenv func(string) string) (measure.Shard, error) {
	if s.Shard == "" {
		return measure.Shard{}, nil
	}
	wrong := func(format string, args ...any) error {
		return diag.Inputf(format, args...).At("--shard %s", s.Shard).Do("write it as in 2/4, or auto/4")
	}
	index, of, ok := strings.Cut(s.Shard, "/")
	n, err := strconv.Atoi(of)
	if !ok || err != nil || n < 1 || n > measure.MostShards {
		return measure.Shard{}, wrong("it names no number of parts from 1 to %d", measure.MostShards)
	}
	if index != "auto" {
		i, err := strconv.Atoi(index)
		if err != nil || i < 1 || i > n {
			return measure.Shard{}, wrong("%q is no part from 1 to %d", index, n)
		}
		return measure.Shard{Index: i, Of: n}, nil
	}
	for _, v := range indices {
		text := getenv(v.name)
		if text == "" {
			continue
		}
		i, err := strconv.Atoi(text)
		if err != nil || i < v.first || i >= v.first+n {
			return measure.Shard{}, diag.Inputf("%s is %s, and %d parts are numbered from %d to %d", v.name, text, n, v.first,
				v.first+n-1).At("--shard %s", s.Shard).Do("number the tasks so, or write the part as in 2/%d", n)
		}
		return measure.Shard{Index: i - v.first + 1, Of: n}, nil
	}
	return measure.Shard{}, diag.Inputf("neither %s nor %s is set", indices[0].name, indices[1].name).
		At("--shard %s", s.Shard).Do("write the part as in 2/%d", n)
}

// Sweeps prepares a sweep on each GPU of the flags, with an empty data set. Each has an executor in a process of its
// own, and the same conditions. A GPU of another machine that cannot be used, or is unlike the first one, is left out
// with a warning. memory is the least memory that a GPU has. The caller closes the executors.
func (f *Factory) Sweeps(
	ctx context.Context, a arch.Architecture, executor string, share *ShareFlags, warmL2 bool,
) (gpus []*measure.GPU, memory unit.Bytes, err error) {
	if err := f.connect(ctx); err != nil {
		return nil, 0, err
	}
	if share.GPUs != "" || len(share.Remote) == 0 {
		if gpus, memory, err = f.localSweeps(ctx, a, executor, share, warmL2); err != nil {
			return nil, 0, err
		}
	}
	remote, sizes, errs := make([]*measure.GPU, len(share.Remote)), make([]unit.Bytes, len(share.Remote)),
		make([]error, len(share.Remote))
	var all sync.WaitGroup
	for i, command := range share.Remote {
		all.Go(func() { remote[i], sizes[i], errs[i] = f.remoteSweep(ctx, a, executor, command, warmL2) })
	}
	all.Wait()
	for i, g := range remote {
		if errs[i] == nil && len(gpus) > 0 {
			errs[i] = alike(g, gpus[0])
		}
		if errs[i] != nil {
			if g != nil {
				_ = g.Executor.Close() // the warning says more
			}
			if ctx.Err() == nil {
				f.Streams.Warn(fmt.Sprintf("--remote %q is left out: %s", share.Remote[i], diag.Line(errs[i])))
			}
			continue
		}
		g.Name = dataset.Text(fmt.Sprintf("%d %s", i+1, share.Remote[i]), dataset.MaxName)
		gpus = append(gpus, g)
		if memory == 0 || sizes[i] < memory {
			memory = sizes[i]
		}
	}
	if len(gpus) == 0 {
		return nil, 0, cmp.Or(ctx.Err(), cmp.Or(errs...))
	}
	return gpus, memory, nil
}

// alike returns an error if the measurements of two GPUs cannot be compared.
func alike(g, first *measure.GPU) error {
	what := g.Data.Difference(first.Data.Conditions)
	if what == "" && g.Data.Software != first.Data.Software {
		what = fmt.Sprintf("it has %s, and GPU %s has %s", g.Data.Software, first.Name, first.Data.Software)
	}
	if what == "" {
		return nil
	}
	return diag.Inputf("%s", what).Do("install one driver and one executor on all machines")
}

// remoteSweep is Sweep on the executor at the end of a command.
func (f *Factory) remoteSweep(ctx context.Context, a arch.Architecture, executor, command string, warmL2 bool) (
	_ *measure.GPU, memory unit.Bytes, err error,
) {
	x, version, err := f.host.Remote(ctx, executor, command)
	if err != nil {
		return nil, 0, err
	}
	at, device, err := findDevice(ctx, x, executor, a.Describe())
	if err == nil {
		var s *measure.Sweep
		if s, memory, err = f.sweepOn(ctx, a, x, executor, version, at, device, warmL2); err == nil {
			s.Ahead = remoteAhead
			return &measure.GPU{Sweep: s}, memory, nil
		}
	}
	_ = x.Close() // the error says more
	return nil, 0, err
}

// remoteAhead is Sweep.Ahead on a machine whose processors are not known.
const remoteAhead = maxAhead / 2

// Lend runs an executor plugin for another machine (see host.Lend).
func (f *Factory) Lend(ctx context.Context, executor string, in io.Reader, out io.Writer) error {
	if err := f.connect(ctx); err != nil {
		return err
	}
	return f.host.Lend(ctx, executor, in, out)
}

// localSweeps are the sweeps on the GPUs that --gpus names: "all", numbers, or nothing for the first one.
func (f *Factory) localSweeps(
	ctx context.Context, a arch.Architecture, executor string, share *ShareFlags, warmL2 bool,
) (_ []*measure.GPU, memory unit.Bytes, err error) {
	first, err := f.Executor(ctx, executor)
	if err != nil {
		return nil, 0, err
	}
	all := []exec.Executor{first}
	defer func() {
		if err != nil {
			for _, x := range all {
				_ = x.Close() // the error says more
			}
		}
	}()
	at, _, err := findDevice(ctx, first, executor, a.Describe())
	if err != nil {
		return nil, 0, err
	}
	devices, err := first.Devices(ctx)
	if err != nil {
		return nil, 0, err
	}
	numbers, err := f.chooseGPUs(share.GPUs, devices, at)
	if err != nil {
		return nil, 0, err
	}
	others, err := f.ownExecutors(ctx, executor, len(numbers)-1)
	if all = append(all, others...); err != nil {
		return nil, 0, err
	}
	list := make([]*measure.GPU, len(numbers))
	for i, n := range numbers {
		s, bytes, err := f.sweepOn(ctx, a, all[i], executor, f.pluginVersion(executor), n, devices[n], warmL2)
		if err != nil {
			return nil, 0, err
		}
		if memory == 0 || bytes < memory {
			memory = bytes
		}
		s.Ahead = max(1, min(runtime.NumCPU()/len(numbers), maxAhead))
		if list[i] = (&measure.GPU{Sweep: s}); share.On() {
			list[i].Name = strconv.Itoa(n)
		}
	}
	return list, memory, nil
}

// ownExecutors opens executors in processes of their own, all at once. Those that are open are returned with the first
// error.
func (f *Factory) ownExecutors(ctx context.Context, name string, n int) ([]exec.Executor, error) {
	opened, errs := make([]exec.Executor, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { opened[i], errs[i] = f.host.OwnExecutor(ctx, name) })
	}
	all.Wait()
	return slices.DeleteFunc(opened, func(x exec.Executor) bool { return x == nil }), cmp.Or(errs...)
}

// chooseGPUs returns the numbers of the GPUs that a text names, which must be of one kind. "all" names the GPUs of the
// same kind as the GPU first.
func (f *Factory) chooseGPUs(text string, devices []exec.Device, first int) (numbers []int, err error) {
	like := func(i, j int) bool { return devices[i].Name == devices[j].Name && devices[i].Arch == devices[j].Arch }
	switch text {
	case "":
		return []int{first}, nil
	case "all":
		for i := range devices {
			if like(i, first) {
				numbers = append(numbers, i)
				continue
			}
			f.Streams.Note(fmt.Sprintf("GPU %d is left out: it is %s, and %s is measured", i, devices[i].Name,
				devices[first].Name))
		}
		return numbers, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		switch {
		case err != nil || n < 0:
			return nil, diag.Inputf("%q is no number of a GPU", word).At("--gpus %s", text).Do("write all, or as in 0,1")
		case n >= len(devices):
			return nil, &diag.Error{Kind: diag.Device, Where: "--gpus " + text, What: fmt.Sprintf("there is no GPU %d", n),
				Fix: fmt.Sprintf("this machine has %d, numbered from 0", len(devices))}
		case slices.Contains(numbers, n):
			return nil, diag.Inputf("GPU %d is named twice", n).At("--gpus %s", text).Do("name each GPU once")
		case len(numbers) > 0 && !like(n, numbers[0]) || devices[n].Arch != devices[first].Arch:
			return nil, diag.Inputf("GPU %d is %s, and another kind is measured", n, devices[n].Name).
				At("--gpus %s", text).Do("name GPUs of one kind")
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
