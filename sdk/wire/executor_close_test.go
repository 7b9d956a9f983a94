package wire

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// blocking is an executor whose kernels wait in Check and Measure, and count how often they are closed.
type blocking struct {
	fake.ExecutorProvider
	entered, leave chan struct{}
	mu             sync.Mutex
	kernels, ended int
}

func (b *blocking) Open(ctx context.Context) (exec.Executor, error) {
	x, err := b.ExecutorProvider.Open(ctx)
	return &blockingExecutor{x, b}, err
}

type blockingExecutor struct {
	exec.Executor
	b *blocking
}

func (x *blockingExecutor) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel,
	error) {
	k, err := x.Executor.Compile(ctx, device, p, c)
	if c.NumStages == 9 {
		<-ctx.Done()
	}
	return x.b.count(&x.b.kernels, &blockingKernel{k, x.b}), err
}

func (x *blockingExecutor) Close() error { x.b.count(&x.b.ended, nil); return nil }

func (b *blocking) count(n *int, k exec.Kernel) exec.Kernel {
	b.mu.Lock()
	defer b.mu.Unlock()
	*n++
	return k
}

func (b *blocking) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kernels
}

type blockingKernel struct {
	exec.Kernel
	b *blocking
}

func (k *blockingKernel) Check(ctx context.Context) (exec.Numerics, error) {
	k.b.entered <- struct{}{}
	<-k.b.leave
	return k.Kernel.Check(ctx)
}

func (k *blockingKernel) Close() error {
	k.b.mu.Lock()
	defer k.b.mu.Unlock()
	k.b.kernels--
	return nil
}

// A kernel is closed once, when the last call about it has ended, and nobody waits for that; what is left is closed
// with the service.
func TestKernelsAreClosed(t *testing.T) {
	b := &blocking{entered: make(chan struct{}), leave: make(chan struct{})}
	service := ExecutorService(b)
	x := connectTo(t, service).client.Executor()
	k := compile(t, x)
	checked := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := k.Check(t.Context())
			checked <- err
		}()
		<-b.entered
	}
	for range 2 {
		err := k.Close()
		must.That(t, err == nil, "%v", err)
	}
	if _, err := k.Check(t.Context()); !errors.Is(err, exec.ErrKernelLost) {
		t.Errorf("a released kernel: got %v", err)
	}
	for i := range 2 {
		n := b.open()
		must.That(t, n == 1, "%d kernels are open with %d calls in progress", n, 2-i)
		b.leave <- struct{}{}
		err := <-checked
		must.That(t, err == nil, "%v", err)
	}
	if n := b.open(); n != 0 {
		t.Errorf("%d kernels are open", n)
	}
	// Nobody gets the handle of a compilation that was given up.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	slow := config
	slow.NumStages = 9
	if _, err := x.Compile(ctx, 0, problem, slow); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	for range 3 {
		compile(t, x)
	}
	if err := service.Close(); err != nil || b.open() != 0 || b.ended != 1 {
		t.Errorf("%d kernels are open, the executor was closed %d times, %v", b.open(), b.ended, err)
	}
}
