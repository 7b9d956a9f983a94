package measure

import (
	"context"
	"sync"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/exec"
)

// built is a kernel, or the reason why there is none.
type built struct {
	kernel exec.Kernel
	err    error
}

// compile builds what a measurement is to measure.
func (s *Sweep) compile(ctx context.Context, m *dataset.Measurement) built {
	if m.Library != "" {
		k, err := s.Executor.Library(ctx, s.Device, m.Problem, m.Library)
		return built{k, err}
	}
	k, err := s.Executor.Compile(ctx, s.Device, m.Problem, m.Config)
	return built{k, err}
}

// pipeline compiles kernels in order, a bounded number ahead of the next one needed.
type pipeline struct {
	cancel  context.CancelFunc
	results chan chan built
	// slots bounds the kernels that have been compiled, or are being compiled, and not taken yet.
	slots   chan struct{}
	running sync.WaitGroup
}

func (s *Sweep) compileAhead(ctx context.Context, queue []entry) *pipeline {
	ctx, cancel := context.WithCancel(ctx)
	l := &pipeline{cancel: cancel, results: make(chan chan built, s.Ahead), slots: make(chan struct{}, s.Ahead)}
	l.running.Go(func() {
		defer close(l.results)
		for i := range queue {
			select {
			case l.slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			one := make(chan built, 1)
			l.results <- one
			l.running.Go(func() { one <- s.compile(ctx, &queue[i].todo) })
		}
	})
	return l
}

// next waits for the next kernel. If the context ends it returns context.Canceled.
func (l *pipeline) next() built {
	one, ok := <-l.results
	if !ok {
		return built{err: context.Canceled}
	}
	b := <-one
	<-l.slots
	return b
}

// stop ends the compilations and closes the kernels that were not taken.
func (l *pipeline) stop() {
	if l == nil {
		return
	}
	l.cancel()
	l.running.Wait()
	for one := range l.results {
		if b := <-one; b.kernel != nil {
			_ = b.kernel.Close()
		}
	}
}
