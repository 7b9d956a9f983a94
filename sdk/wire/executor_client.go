package wire

import (
	"context"
	"errors"
	"fmt"
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// Executor is the executor of a plugin. What only reads is repeated once when the process has died; what compiles and
// runs kernels never is.
type Executor struct{ client *Client }

var (
	_ exec.Executor = (*Executor)(nil)
	_ exec.Runner   = (*Executor)(nil)
)

// Executor returns the executor behind the connection. It makes no call.
func (c *Client) Executor() *Executor { return &Executor{c} }

// Manifest asks the plugin who its executor is.
func (x *Executor) Manifest(ctx context.Context) (exec.Manifest, error) {
	return ask(ctx, x.client, "Manifest", nil, x.client.executor.Manifest, &pb.Json{}, fromJSON[exec.Manifest]())
}

// Devices implements exec.Executor.
func (x *Executor) Devices(ctx context.Context) ([]exec.Device, error) {
	return ask(ctx, x.client, "Devices", nil, x.client.executor.Devices, &pb.Json{}, fromJSON[[]exec.Device]())
}

// Environment implements exec.Executor.
func (x *Executor) Environment(ctx context.Context, device int) (exec.Environment, error) {
	return ask(ctx, x.client, "Environment", nil, x.client.executor.Environment, toJSON(&environmentQuestion{device}),
		fromJSON[exec.Environment]())
}

// Close implements exec.Executor. It does nothing: kernels live in the process, and the process belongs to the owner
// of the connection.
func (x *Executor) Close() error { return nil }

// Compile implements exec.Executor.
func (x *Executor) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if p.AMajor == 0 || p.BMajor == 0 { // what JSON cannot say
		return nil, p.Validate()
	}
	got, err := execute(ctx, x.client.kernelFault, x.client, "Compile", x.client.executor.Compile,
		CompileMessage(device, p, c), (*compiled).check)
	if err != nil {
		return nil, err
	}
	return &kernel{client: x.client, handle: got.Kernel, resources: got.Resources}, nil
}

// Library implements exec.Executor. On the wire a library is a configuration that has nothing but its kernel.
func (x *Executor) Library(ctx context.Context, device int, p gemm.Problem, library string) (exec.Kernel, error) {
	return x.Compile(ctx, device, p, gemm.Config{Kernel: library})
}

// execute makes a call that is never repeated, and reads its answer.
func execute[T any](ctx context.Context, fault func(context.Context, string, error) error, c *Client, op string,
	call func(context.Context, *pb.Json, ...grpc.CallOption) (*pb.Json, error), q *pb.Json, checks ...func(*T) error,
) (got T, err error) {
	resp, err := call(ctx, q)
	if err != nil {
		return got, fault(ctx, op, err)
	}
	got, err = fromJSON(checks...)(resp)
	return got, c.nonsense(op, err)
}

// kernel is a kernel that lives in a plugin.
type kernel struct {
	client    *Client
	handle    uint64
	resources exec.Resources
}

func (k *kernel) Resources() exec.Resources { return k.resources }

func (k *kernel) Check(ctx context.Context) (exec.Numerics, error) {
	return execute[exec.Numerics](ctx, k.fault, k.client, "Check", k.client.executor.Check, KernelMessage(k.handle))
}

// Measure asks for one run, then for a few at a time until the caller stops it.
func (k *kernel) Measure(ctx context.Context, o exec.MeasureOptions, sample func(exec.Sample) bool) error {
	var runs int
	var total unit.Seconds
	for {
		n := nextRuns(runs, total)
		samples, err := execute(ctx, k.fault, k.client, "Measure", k.client.executor.Measure,
			MeasureMessage(k.handle, o, n), several[exec.Sample](n))
		if err != nil {
			return err
		}
		for _, s := range samples {
			if err := ctx.Err(); err != nil {
				return err
			}
			total += s.Time
			if !sample(s) {
				return nil
			}
		}
		runs += n
		o.Warmup = 0 // the kernel is warm
	}
}

// Runs per call of Measure: enough that the round trip is a small part of the call, and few enough that stopping
// wastes little.
const (
	measureSeconds = 5e-3
	measureRuns    = 16
)

// nextRuns returns how many runs to ask for after some runs that took a total time.
func nextRuns(runs int, total unit.Seconds) int {
	if runs == 0 {
		return 1
	}
	mean := float64(total) / float64(runs)
	return int(min(max(math.Round(measureSeconds/mean), 1), measureRuns))
}

// Close frees the kernel in the plugin.
func (k *kernel) Close() error {
	ctx := context.Background()
	_, err := k.client.executor.Release(ctx, KernelMessage(k.handle))
	if errors.Is(err, ErrDied) {
		return nil // and the kernel with it
	}
	return k.client.fault(ctx, "Release", err)
}

// fault is the client's, and knows kernels that are gone.
func (k *kernel) fault(ctx context.Context, op string, err error) error {
	if _, missing := details(err); missing == pb.Missing_RESOURCE_KERNEL {
		return &diag.Error{Kind: diag.Plugin, Where: "plugin " + k.client.name,
			What: fmt.Sprintf("%s: the kernel was lost with the process that compiled it", op),
			Fix:  "compile it again", Err: exec.ErrKernelLost}
	}
	return k.client.kernelFault(ctx, op, err)
}

// Run implements exec.Runner. An executor that runs no programs is an error of kind diag.Input.
func (x *Executor) Run(ctx context.Context, device int, p exec.Program, runs int) ([]exec.Reading, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	unable := func(ctx context.Context, op string, err error) error {
		if status.Code(err) == codes.Unimplemented {
			return diag.Inputf("its executor runs no programs, which calibrating needs").At("plugin %s", x.client.name).
				Do("use another executor, or a later version of this one")
		}
		return x.client.kernelFault(ctx, op, err)
	}
	return execute(ctx, unable, x.client, "Run", x.client.executor.Run, toJSON(&runQuestion{device, p, runs}),
		several[exec.Reading](runs), func(list *[]exec.Reading) error {
			for i, reading := range *list {
				if len(reading.Counters) != p.Counters {
					return fmt.Errorf("[%d]: %d counters, where %d are expected", i, len(reading.Counters), p.Counters)
				}
			}
			return nil
		})
}

// kernelFault is fault for a call that compiles or runs a kernel. An executor that reports its device context as lost
// is no better than a dead one.
func (c *Client) kernelFault(ctx context.Context, op string, err error) error {
	lost := LostDevice(err)
	err = c.fault(ctx, op, err)
	if d := (*diag.Error)(nil); lost && errors.As(err, &d) {
		died := *d
		died.Err = exec.ErrDied
		return &died
	}
	return err
}
