package wire

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// ExecutorService serves the executor of a provider, which is opened by the first call that needs it.
func ExecutorService(p exec.Provider) *Service {
	// Handles count up from a random number, so that no handle of an earlier process is one of this.
	var first [8]byte
	_, _ = rand.Read(first[:]) // never fails
	server := &executorServer{provider: p, kernels: map[uint64]*held{}, last: binary.LittleEndian.Uint64(first[:])}
	return &Service{
		provider: p,
		describe: func(d *Description) {
			m := p.Manifest()
			d.Executor, d.Info = &m, Info{Name: m.Name, Version: m.Version}
		},
		register: func(r grpc.ServiceRegistrar) { pb.RegisterExecutorServiceServer(r, server) },
		close:    server.close,
	}
}

type executorServer struct {
	pb.UnimplementedExecutorServiceServer
	provider exec.Provider

	calls sync.RWMutex // read-held by every call, held by close

	opening sync.Mutex    // held while opening
	open    exec.Executor // nil until opened

	mu      sync.Mutex
	kernels map[uint64]*held
	last    uint64
}

// held is a kernel behind a handle.
type held struct {
	kernel exec.Kernel
	users  int // calls in progress
	// released says that the handle is gone and that the last user closes the kernel.
	released bool
}

// executor returns the executor, opened if need be. A failure is not kept: the next call tries again.
func (s *executorServer) executor(ctx context.Context) (exec.Executor, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.open == nil {
		open, err := s.provider.Open(ctx)
		if err != nil {
			return nil, err
		}
		s.open = open
	}
	return s.open, nil
}

func (s *executorServer) close() error {
	s.calls.Lock()
	defer s.calls.Unlock()
	var errs []error
	for _, handle := range slices.Sorted(maps.Keys(s.kernels)) {
		errs = append(errs, s.kernels[handle].kernel.Close())
		delete(s.kernels, handle)
	}
	if s.open != nil {
		errs = append(errs, s.open.Close())
		s.open = nil
	}
	return errors.Join(errs...)
}

// use runs do with the kernel behind a handle, which nobody closes meanwhile.
func (s *executorServer) use(handle uint64, do func(exec.Kernel) error) error {
	s.mu.Lock()
	h := s.kernels[handle]
	if h == nil {
		s.mu.Unlock()
		return missingStatus(pb.Missing_RESOURCE_KERNEL)
	}
	h.users++
	s.mu.Unlock()
	err := do(h.kernel)
	s.mu.Lock()
	h.users--
	unused := h.released && h.users == 0
	s.mu.Unlock()
	if unused {
		err = errors.Join(err, h.kernel.Close())
	}
	return err
}

func (s *executorServer) Manifest(context.Context, *pb.Json) (*pb.Json, error) {
	m := s.provider.Manifest()
	return toJSON(&m), nil
}

// withExecutor serves a call that the executor answers.
func withExecutor[Q, A any](ctx context.Context, s *executorServer, req *pb.Json,
	do func(exec.Executor, *Q) (A, error)) (*pb.Json, error) {
	s.calls.RLock()
	defer s.calls.RUnlock()
	return answered(req, func(q *Q) (a A, err error) {
		x, err := s.executor(ctx)
		if err == nil {
			a, err = do(x, q)
		}
		return a, err
	})
}

func (s *executorServer) Devices(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	return withExecutor(ctx, s, req, func(x exec.Executor, _ *nothing) ([]exec.Device, error) { return x.Devices(ctx) })
}

func (s *executorServer) Environment(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	return withExecutor(ctx, s, req, func(x exec.Executor, q *environmentQuestion) (exec.Environment, error) {
		return x.Environment(ctx, q.Device)
	})
}

func (s *executorServer) Compile(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	return withExecutor(ctx, s, req, func(x exec.Executor, q *compileQuestion) (compiled, error) {
		var k exec.Kernel
		var err error
		if library := (gemm.Config{Kernel: q.Config.Kernel}); q.Config == library {
			k, err = x.Library(ctx, q.Device, q.Problem, q.Config.Kernel)
		} else {
			k, err = x.Compile(ctx, q.Device, q.Problem, q.Config)
		}
		if err == nil && ctx.Err() != nil {
			err = errors.Join(ctx.Err(), k.Close()) // nobody waits for the handle
		}
		if err != nil {
			return compiled{}, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.last++; s.last == 0 {
			s.last++
		}
		s.kernels[s.last] = &held{kernel: k}
		return compiled{s.last, k.Resources()}, nil
	})
}

func (s *executorServer) Check(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	s.calls.RLock()
	defer s.calls.RUnlock()
	return answered(req, func(q *kernelQuestion) (n exec.Numerics, err error) {
		err = s.use(q.Kernel, func(k exec.Kernel) (err error) {
			n, err = k.Check(ctx)
			return err
		})
		return n, err
	})
}

func (s *executorServer) Measure(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	s.calls.RLock()
	defer s.calls.RUnlock()
	return answered(req, func(q *measureQuestion) ([]exec.Sample, error) {
		samples := make([]exec.Sample, 0, q.Runs)
		err := s.use(q.Kernel, func(k exec.Kernel) error {
			return k.Measure(ctx, q.MeasureOptions, func(sample exec.Sample) bool {
				samples = append(samples, sample)
				return len(samples) < q.Runs
			})
		})
		return samples, err
	})
}

func (s *executorServer) Run(ctx context.Context, req *pb.Json) (*pb.Json, error) {
	return withExecutor(ctx, s, req, func(x exec.Executor, q *runQuestion) ([]exec.Reading, error) {
		runner, ok := x.(exec.Runner)
		if !ok {
			return nil, status.Error(codes.Unimplemented, "this executor runs no programs")
		}
		if err := q.Program.Validate(); err != nil {
			return nil, err
		}
		return runner.Run(ctx, q.Device, q.Program, q.Runs)
	})
}

func (s *executorServer) Release(_ context.Context, req *pb.Json) (*pb.Json, error) {
	s.calls.RLock()
	defer s.calls.RUnlock()
	return answered(req, func(q *kernelQuestion) (nothing, error) {
		s.mu.Lock()
		h := s.kernels[q.Kernel]
		delete(s.kernels, q.Kernel)
		unused := h != nil && h.users == 0
		if h != nil {
			h.released = true
		}
		s.mu.Unlock()
		if unused {
			return nothing{}, h.kernel.Close()
		}
		return nothing{}, nil
	})
}
