package example

import (
	"context"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
)

// Simulator stands in for a device that does not exist: its kernels take as long as the model predicts with the values
// of hidden, and a little more or less. An executor of a real device compiles, checks and times kernels in these
// methods.
type Simulator struct{}

// hidden are the constants of the simulated device. `origami fit` finds them from measured times.
var hidden = map[string]float64{"compute_efficiency": 0.82, "memory_efficiency": 0.57}

// The standard deviations of the logarithms of times: of the kernels of a problem, and of the runs of a kernel.
const kernelNoise, runNoise = 0.03, 0.005

// Manifest implements exec.Provider.
func (Simulator) Manifest() exec.Manifest {
	return exec.Manifest{Name: "example-simulator", Version: "1.0.0"}
}

// Open implements exec.Provider.
func (Simulator) Open(ctx context.Context) (exec.Executor, error) {
	provider, err := Provider()
	if err != nil {
		return nil, err
	}
	model, err := provider.Open(ctx, arch.OpenRequest{Arch: "example"})
	if err != nil {
		return nil, err
	}
	return &simulated{model.(fit.Tunable)}, nil
}

type simulated struct{ fit.Tunable }

func (s *simulated) Devices(context.Context) ([]exec.Device, error) {
	d := s.Describe()
	return []exec.Device{{Name: d.DeviceName, Arch: d.Arch, Kernels: d.Kernels}}, nil
}

func (s *simulated) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if err := known(device); err != nil {
		return nil, err
	}
	times, err := s.EstimateWith(ctx, []map[string]float64{hidden}, []fit.Kernels{{Problem: p, Configs: []gemm.Config{c}}})
	if err != nil {
		return nil, err
	}
	if times[0][0] == 0 {
		return nil, diag.Inputf("%s does not fit", c)
	}
	seed := fnv.New64a() // equal kernels take equally long
	_, _ = seed.Write([]byte(p.String() + c.String()))
	noise := rand.New(rand.NewPCG(seed.Sum64(), 0))
	return &kernel{times[0][0] * unit.Seconds(math.Exp(kernelNoise*noise.NormFloat64())), noise}, nil
}

func (s *simulated) Library(context.Context, int, gemm.Problem, string) (exec.Kernel, error) {
	return nil, diag.Inputf("there is no library")
}

func (s *simulated) Environment(_ context.Context, device int) (exec.Environment, error) {
	return exec.Environment{Time: time.Now(), Clock: s.Describe().Clock}, known(device)
}

func known(device int) error {
	if device != 0 {
		return diag.Inputf("there is no device %d", device).Do("use 0")
	}
	return nil
}

func (s *simulated) Close() error { return nil }

type kernel struct {
	time  unit.Seconds
	noise *rand.Rand
}

func (k *kernel) Resources() exec.Resources { return exec.Resources{} }

func (k *kernel) Check(context.Context) (exec.Numerics, error) {
	return exec.Numerics{Checked: 1, Reference: "nothing: a simulated kernel has no result"}, nil
}

func (k *kernel) Measure(ctx context.Context, o exec.MeasureOptions, sample func(exec.Sample) bool) error {
	if o.Input != "" && o.Input != exec.InputNormal {
		return diag.Inputf("there is no distribution %q", o.Input).Do("use %s", exec.InputNormal)
	}
	for ctx.Err() == nil {
		if !sample(exec.Sample{Time: k.time * unit.Seconds(math.Exp(runNoise*k.noise.NormFloat64()))}) {
			return nil
		}
	}
	return ctx.Err()
}

func (k *kernel) Close() error { return nil }
