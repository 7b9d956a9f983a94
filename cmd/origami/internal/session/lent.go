package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
)

// Lenders are the GPUs of other machines that somebody brings to a Unix socket (docs/decisions/measuring.md).
type Lenders struct {
	f                *Factory
	a                arch.Architecture
	socket, executor string
	warmL2           bool

	memory unit.Bytes
	mu     sync.Mutex
	lent   []*measure.Lent
}

// Borrow waits for a GPU, and takes those that are to be had with it. It returns how much memory they have. The caller
// closes the lenders.
func (f *Factory) Borrow(ctx context.Context, a arch.Architecture, socket, executor string, warmL2 bool) (
	l *Lenders, gpus []*measure.GPU, memory unit.Bytes, err error,
) {
	l = &Lenders{f: f, a: a, socket: socket, executor: executor, warmL2: warmL2}
	more := 0
	for len(gpus) == 0 {
		g, others, e := l.next(ctx)
		switch more = others; {
		case g != nil:
			gpus = append(gpus, g)
		case ctx.Err() != nil, errors.Is(e, measure.ErrNotLent):
			_ = l.Close() // the error says more
			return nil, nil, 0, cmp.Or(err, e)
		default:
			f.Streams.Warn(diag.Line(e))
			err = e
		}
	}
	// The others begin beside each other: each starts a process and a device.
	const most = 1 << 14
	others := make([]*measure.GPU, max(0, min(more, most)))
	var all sync.WaitGroup
	for i := range others {
		all.Go(func() {
			var e error
			if others[i], _, e = l.next(ctx); e != nil && ctx.Err() == nil && !errors.Is(e, measure.ErrNotLent) {
				f.Streams.Warn(diag.Line(e))
			}
		})
	}
	all.Wait()
	gpus = append(gpus, slices.DeleteFunc(others, func(g *measure.GPU) bool { return g == nil })...)
	return l, gpus, l.memory, nil
}

// next waits for the next GPU, and says how many more are to be had at once.
func (l *Lenders) next(ctx context.Context) (_ *measure.GPU, more int, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", l.socket)
	if err != nil {
		return nil, 0, &diag.Error{Kind: diag.Device, What: fmt.Sprintf("nobody lends GPUs: %v", err),
			Where: "--lent " + l.socket, Fix: "tune with origami_gemm.ray, which does", Err: measure.ErrNotLent}
	}
	x, err := measure.Borrow(ctx, conn, measure.Wanted{Executor: l.executor, Arch: l.a.Describe().Arch, WarmL2: l.warmL2})
	if err != nil {
		return nil, 0, err
	}
	l.mu.Lock()
	l.lent = append(l.lent, x)
	l.mu.Unlock()
	s, memory, err := l.f.sweepOn(ctx, l.a, x, l.executor, 0, x.Device, l.warmL2)
	if err != nil {
		_ = x.Close() // the error says more
		return nil, x.More, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.memory == 0 {
		l.memory = memory
	}
	return &measure.GPU{Name: x.Name, Sweep: s}, x.More, nil
}

// Join lets the GPUs that are lent from now on join a fleet whose first GPU is the given one, until none will be, or
// until the context ends.
func (l *Lenders) Join(ctx context.Context, fleet *measure.Fleet, first *measure.GPU, warn func(string)) {
	defer fleet.NoMore()
	var joining sync.WaitGroup
	defer joining.Wait()
	for {
		g, _, err := l.next(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, measure.ErrNotLent):
			return
		case err != nil:
			warn(diag.Line(err))
			continue
		}
		joining.Go(func() {
			err := alike(g, first)
			if err == nil {
				g.Retry = first.Retry
				g.RetryFailed = first.RetryFailed
				err = fleet.Join(g)
			}
			if err != nil {
				if ctx.Err() == nil {
					warn(fmt.Sprintf("GPU %s is left out: %s", g.Name, diag.Line(err)))
				}
				_ = g.Executor.Close() // it is given back
			}
		})
	}
}

// alike returns an error if the measurements of two GPUs cannot be compared.
func alike(g, first *measure.GPU) error {
	if what := g.Data.Difference(first.Data.Conditions); what != "" {
		return diag.Inputf("%s", what)
	}
	if mine, others := driver(g), driver(first); mine != others {
		return diag.Inputf("the driver is %q, and that of GPU %s is %q", mine, first.Name, others).
			Do("install one driver on all machines")
	}
	return nil
}

func driver(g *measure.GPU) string {
	x, is := g.Executor.(*measure.Lent)
	if !is {
		return ""
	}
	return x.Lending.Environment.Driver
}

// Close gives all GPUs back.
func (l *Lenders) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.lent {
		_ = x.Close() // it may have ended before
	}
	return nil
}

// Lend opens what a borrower wants, for measure.Lend. The caller closes the sweep's executor.
func (f *Factory) Lend(ctx context.Context, w measure.Wanted) (
	_ *measure.Sweep, lending measure.Lending, err error,
) {
	if err := f.connect(ctx); err != nil {
		return nil, lending, err
	}
	x, err := f.host.OwnExecutor(ctx, w.Executor)
	if err != nil {
		return nil, lending, err
	}
	at, device, err := findDevice(ctx, x, w.Executor, &arch.Description{Arch: w.Arch})
	if err == nil {
		if lending.Environment, err = x.Environment(ctx, at); diag.KindOf(err) == diag.Input {
			err = nil // it cannot tell
		}
	}
	if err != nil {
		_ = x.Close() // the error says more
		return nil, lending, err
	}
	lending.Device, lending.Version = device, f.pluginVersion(w.Executor)
	return f.sweepWith(x, at, device, w.WarmL2), lending, nil
}
