package host

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/sdk/wire"
)

// Executor starts the plugin of this name, or the first plugin that runs kernels if name is empty, and returns its
// executor. Without such a plugin the error is of kind diag.Device.
//
// A call that hangs, kills the process or loses the device context ends the process. The next call starts a new one.
// No kernel is compiled or run again automatically. Other kernels of the old process, and other calls that were in
// progress, fail with exec.ErrKernelLost. The process ends when the last executor of the plugin is closed.
func (h *Host) Executor(ctx context.Context, name string) (exec.Executor, error) {
	f, err := h.findExecutor(ctx, name)
	if err != nil {
		return nil, err
	}
	return f.program.open(ctx, f.info.Name)
}

// OwnExecutor is Executor in a process that no other executor uses. What ends it leaves the others alone.
func (h *Host) OwnExecutor(ctx context.Context, name string) (exec.Executor, error) {
	f, err := h.findExecutor(ctx, name)
	if err != nil {
		return nil, err
	}
	p := f.program.again()
	h.mu.Lock()
	h.own = append(h.own, p)
	h.mu.Unlock()
	return p.open(ctx, f.info.Name)
}

// open starts the program, if it does not run, and returns its executor. plugin is the name that errors have.
func (p *program) open(ctx context.Context, plugin string) (exec.Executor, error) {
	if _, err := p.running(ctx); err != nil {
		return nil, err
	}
	conn := p.executor()
	return &executor{wire.NewClient(plugin, conn).Executor(), conn}, nil
}

// again returns the same program without a process.
func (p *program) again() *program {
	return &program{name: p.name, path: p.path, args: p.args, checksum: p.checksum, host: p.host}
}

// executor returns a connection that counts as an open executor until it is closed.
func (p *program) executor() *executorConn {
	p.executors.Add(1)
	return &executorConn{program: p}
}

func (h *Host) findExecutor(ctx context.Context, name string) (*found, error) {
	if h.ctx.Err() != nil {
		return nil, errClosed
	}
	if name != "" {
		f, err := h.called(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case f != nil && f.info.State != OK:
			return nil, f.info.Err()
		case f != nil && f.info.Executor:
			return f, nil
		}
	}
	if err := h.askAll(ctx, ""); err != nil {
		return nil, err
	}
	executors := h.executors()
	if len(executors) == 0 && name == "" {
		var err error
		if executors, err = h.awaitExecutor(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case len(executors) > 0 && name == "":
		return executors[0], nil
	case len(executors) > 0:
		names := make([]string, len(executors))
		for i, f := range executors {
			names[i] = f.info.Name
		}
		return nil, h.mentionUnusable(diag.Inputf("no plugin %q runs kernels", name).Do("use %s",
			strings.Join(names, " or ")))
	default:
		return nil, h.mentionUnusable(&diag.Error{Kind: diag.Device, What: "no plugin that runs kernels is installed",
			Fix: "install one and trust it", Code: diag.CodeNoExecutor})
	}
}

// awaitExecutor waits for the plugins that are late until one of them runs kernels.
func (h *Host) awaitExecutor(ctx context.Context) (executors []*found, err error) {
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	all := h.listed()
	answers := make(chan error, len(all))
	for _, q := range all {
		go func() { answers <- h.ask(waiting, []*inquiry{q}, nil) }()
	}
	for range all {
		if err := <-answers; err != nil {
			return nil, err
		}
		if executors = h.executors(); len(executors) > 0 {
			break
		}
	}
	return executors, nil
}

// executors returns the known plugins that run kernels.
func (h *Host) executors() []*found {
	return slices.DeleteFunc(h.known(), func(f *found) bool { return f.info.State != OK || !f.info.Executor })
}

// executor is a plugin's executor with a connection that nothing else uses.
type executor struct {
	*wire.Executor
	conn *executorConn
}

// Close ends the plugin's process, unless another executor uses it.
func (x *executor) Close() error {
	x.conn.close()
	return nil
}

// executorConn is a program's connection for an executor. It handles kernels: they may hang or lose the device
// context of the process, and they are lost with the process.
type executorConn struct {
	*program
	closing sync.Once
	closed  atomic.Bool
}

var errExecutorClosed = &diag.Error{What: "the executor is closed"}

func (c *executorConn) close() {
	c.closing.Do(func() {
		c.closed.Store(true)
		if c.executors.Add(-1) == 0 {
			c.end()
		}
	})
}

// Invoke implements grpc.ClientConnInterface.
func (c *executorConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	op := path.Base(method)
	switch {
	case op == "Release" && (c.closed.Load() || !c.runs()):
		return nil // no process, no kernel
	case c.closed.Load():
		return errExecutorClosed
	}
	call := func(ctx context.Context) error {
		s, err := c.invoke(ctx, c.host.options.RunTimeout, method, args, reply, opts...)
		if s != nil && wire.LostDevice(err) {
			c.kill(s)
		}
		if err != nil && c.closed.Load() {
			return errExecutorClosed
		}
		return err
	}
	if op != "Check" && op != "Measure" && op != "Run" {
		return call(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err() // cancelled before the call began
	}
	// A cancelled caller returns at once and the call continues. If it hangs, its timeout stops the process;
	// otherwise later calls would wait for the device forever.
	done := make(chan error, 1)
	go func() {
		err := call(context.WithoutCancel(ctx))
		if err != nil && ctx.Err() != nil {
			c.host.options.Logger.Named(c.name).Debug("a call failed after its caller had given up", "call",
				op, "error", err)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
