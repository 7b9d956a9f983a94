package session

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
)

// ShareFlags say which part of a work is done, and by which GPUs of this machine.
type ShareFlags struct{ GPUs, Shard string }

// Register adds the flags.
func (s *ShareFlags) Register(flags *pflag.FlagSet) {
	flags.StringVar(&s.GPUs, "gpus", "",
		"measure with several GPUs of this machine: all, or their `NUMBERS`, as in 0,1")
	flags.StringVar(&s.Shard, "shard", "",
		"do part `I/N` of the work in a folder of its own; auto/N: I from a Slurm array or an indexed job")
}

// On reports whether the work is shared.
func (s *ShareFlags) On() bool { return s.GPUs != "" || s.Shard != "" }

// Check reports a flag that measures where nothing is measured.
func (s *ShareFlags) Check(measures bool) error {
	if s.On() && !measures {
		return diag.Inputf("--gpus and --shard are about measuring").Do("add --executor")
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

// Sweeps is Sweep for each GPU that gpus names: "all", numbers, or nothing for the first one. Each has an executor in a
// process of its own, and the same conditions. The caller closes the executors.
func (f *Factory) Sweeps(
	ctx context.Context, a arch.Architecture, executor, gpus string, warmL2 bool,
) (_ []*measure.GPU, memory unit.Bytes, err error) {
	if err := f.connect(ctx); err != nil {
		return nil, 0, err
	}
	// Each takes a while to start, so all that are surely needed start at once.
	all, err := f.ownExecutors(ctx, executor, expected(gpus))
	defer func() {
		if err != nil {
			for _, x := range all {
				_ = x.Close() // the error says more
			}
		}
	}()
	if err != nil {
		return nil, 0, err
	}
	d := a.Describe()
	at, _, err := findDevice(ctx, all[0], executor, d)
	if err != nil {
		return nil, 0, err
	}
	devices, err := all[0].Devices(ctx)
	if err != nil {
		return nil, 0, err
	}
	numbers, err := f.chooseGPUs(gpus, devices, at)
	if err != nil {
		return nil, 0, err
	}
	for _, x := range all[min(len(numbers), len(all)):] {
		if err := x.Close(); err != nil {
			return nil, 0, err
		}
	}
	all = all[:min(len(numbers), len(all))]
	others, err := f.ownExecutors(ctx, executor, len(numbers)-len(all))
	if all = append(all, others...); err != nil {
		return nil, 0, err
	}
	list := make([]*measure.GPU, len(numbers))
	for i, n := range numbers {
		s, bytes, err := f.sweepOn(ctx, a, all[i], executor, n, devices[n], warmL2)
		if err != nil {
			return nil, 0, err
		}
		if memory == 0 || bytes < memory {
			memory = bytes
		}
		s.Ahead = max(1, min(runtime.NumCPU()/len(numbers), maxAhead))
		list[i] = &measure.GPU{Name: strconv.Itoa(n), Sweep: s}
	}
	return list, memory, nil
}

// expected is how many GPUs a text names, as far as it says: who writes all has two at least.
func expected(gpus string) int {
	const several, most = 2, 64 // of a wrong text, not too many
	if gpus == "all" {
		return several
	}
	return min(1+strings.Count(gpus, ","), most)
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
