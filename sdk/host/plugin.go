package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/sdk/wire"
)

// program is a plugin that can be run, and the connection to it (a grpc.ClientConnInterface). The first call starts
// the process, and so does the first call after it has died. The protocol allows that, see package wire.
type program struct {
	name     string
	path     string
	args     []string
	checksum []byte // nil for a built-in
	remote   bool   // the plugin is at the other end of the program's standard streams
	host     *Host

	mu       sync.Mutex
	current  *session
	starting *startup

	executors atomic.Int32 // open executors
}

// session is one run of a program.
type session struct {
	process *process
	conn    grpc.ClientConnInterface
	client  *plugin.Client // nil if the process has not said where it listens
	stop    sync.Once
	// stopped: one call hung or lost its device, and the process was killed. The other calls did nothing wrong.
	stopped atomic.Bool
}

// startup is a start in progress. Several callers may wait for it.
type startup struct {
	done    chan struct{}
	session *session
	err     error
}

var errClosed = &diag.Error{What: "the plugin host is closed"}

// running returns the current session, starting the program if there is none.
func (p *program) running(ctx context.Context) (*session, error) {
	p.mu.Lock()
	if s := p.current; s != nil {
		p.mu.Unlock()
		return s, nil
	}
	if p.host.ctx.Err() != nil {
		p.mu.Unlock()
		return nil, errClosed
	}
	up := p.starting
	if up == nil {
		up = &startup{done: make(chan struct{})}
		p.starting = up
		go func() {
			up.session, up.err = p.launch()
			p.mu.Lock()
			p.current, p.starting = up.session, nil
			p.mu.Unlock()
			close(up.done)
		}()
	}
	p.mu.Unlock()
	select {
	case <-up.done:
		return up.session, up.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// checked opens the program's file, if it is not a part of this program, and checks its hash.
func (p *program) checked() (*binary, error) {
	if p.checksum == nil {
		return nil, nil
	}
	file, err := openBinary(p.path)
	if err == nil {
		if err = file.hash(p.host.ctx); err != nil {
			_ = file.Close()
		}
	}
	switch {
	case err != nil:
		return nil, fault(p.name, "start", FaultStart, nil, err, "it cannot be read: %v", err)
	case !file.hasHash(p.checksum):
		_ = file.Close()
		return nil, fault(p.name, "start", FaultUntrusted, nil, nil, "%s has changed since it was found and checked",
			p.path)
	}
	return file, nil
}

// begin starts the process for this side of an identity. use gets it when it has said where it listens. The socket is
// there until use returns.
func (p *program) begin(l *launcher, use func(*plugin.Client) error) error {
	file, err := p.checked()
	if err != nil {
		return err
	}
	if file != nil {
		defer func() { _ = file.Close() }()
	}
	sockets, err := p.host.sockets.enter()
	if err != nil {
		return advised("set TMPDIR to a folder with a short path that can be written", fault(p.name, "start",
			FaultStart, nil, err, "its socket cannot be created: %v", err))
	}
	defer p.host.sockets.leave()
	// The only connection exists when this returns; the socket would stay if the host were killed.
	defer func() { _ = os.RemoveAll(l.folder) }()
	l.program, l.file = p, file
	client := l.client(sockets)
	if _, err = client.Start(); err == nil {
		err = use(client)
	}
	if err != nil {
		return p.startFault(l.ctx, l.process, err)
	}
	return nil
}

// launch starts the process and connects to it.
func (p *program) launch() (*session, error) {
	ctx, cancel := context.WithTimeout(p.host.ctx, p.startTimeout())
	defer cancel()
	identity, err := wire.NewIdentity()
	if err != nil {
		return nil, err
	}
	l := &launcher{ctx: ctx, identity: identity}
	s := &session{}
	err = p.begin(l, func(client *plugin.Client) error {
		s.client = client
		protocol, err := client.Client()
		if err != nil {
			return err
		}
		conn, err := protocol.Dispense(wire.PluginName)
		if err != nil {
			return err
		}
		s.conn = conn.(grpc.ClientConnInterface)
		info, err := wire.NewClient(p.name, s.conn).Info(ctx)
		if err == nil && info.Failing != "" {
			err = fault(p.name, "start", FaultFailing, nil, nil, "it cannot work: %s", info.Failing)
		}
		return err
	})
	if s.process = l.process; err != nil {
		if s.process != nil {
			s.end(0)
		}
		return nil, err
	}
	return s, nil
}

// startFault finds the reason of a failed start.
func (p *program) startFault(ctx context.Context, started *process, err error) error {
	var known *PluginError
	switch {
	case p.host.ctx.Err() != nil:
		return errClosed
	case errors.As(err, &known):
		return err
	case p.path == "":
		return advised("mount /proc", fault(p.name, "start", FaultStart, nil, err,
			"it is a part of this program, whose file cannot be found"))
	case started == nil:
		return fault(p.name, "start", FaultStart, nil, err, "it cannot be started: %v", err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		late := fault(p.name, "start", FaultStart, started, err, "it was not ready after %v", p.startTimeout())
		if d := (*diag.Error)(nil); p.remote && errors.As(late, &d) {
			d.Kind = diag.Device
		}
		return late
	case started.exitedWithin(dyingTime) && started.diedByItself():
		return fault(p.name, "start", FaultStart, started, err, "it ended before it was ready")
	default:
		text := strings.Join(strings.Fields(err.Error()), " ")
		if d := (*diag.Error)(nil); errors.As(err, &d) {
			text = d.What
		}
		return fault(p.name, "start", FaultStart, started, err, "it does not start as a plugin: %.300s", text)
	}
}

// dyingTime is the time for which a plugin that does not start is given to end by itself: how it ends says why.
const dyingTime = 100 * time.Millisecond

// stopTime is the time that a plugin has to end by itself after a request to do so.
const stopTime = 2 * time.Second

// end stops the process, kills it after the grace period, and frees everything.
func (s *session) end(grace time.Duration) {
	s.stop.Do(func() {
		force := time.AfterFunc(grace, s.process.kill)
		defer force.Stop()
		if s.client != nil {
			s.client.Kill()
		}
		<-s.process.exited
	})
}

// discard ends a session that cannot be used any more.
func (p *program) discard(s *session) {
	p.mu.Lock()
	if p.current == s {
		p.current = nil
	}
	p.mu.Unlock()
	s.end(0)
}

// kill discards a session because of one call.
func (p *program) kill(s *session) {
	s.stopped.Store(true)
	p.discard(s)
}

// runs reports whether a process runs or is being started.
func (p *program) runs() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current != nil || p.starting != nil
}

// end stops the process, if any, and returns when it has ended. A later call starts another, unless the host's
// context has been cancelled.
func (p *program) end() {
	p.mu.Lock()
	up := p.starting
	p.mu.Unlock()
	if up != nil {
		<-up.done
	}
	p.mu.Lock()
	s := p.current
	p.current = nil
	p.mu.Unlock()
	if s != nil {
		s.end(stopTime)
	}
}

// Invoke implements grpc.ClientConnInterface.
func (p *program) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if path.Base(method) == "Close" && !p.runs() {
		return nil // without a process nothing is open
	}
	_, err := p.invoke(ctx, p.host.options.CallTimeout, method, args, reply, opts...)
	return err
}

// invoke makes a call and returns the session that it used, if any. Every call to a plugin passes through here. It
// limits the time and finds the cause of a failure from the status code and the process. If the process has ended,
// the error wraps wire.ErrDied and the next call starts the process again.
func (p *program) invoke(ctx context.Context, timeout time.Duration, method string, args, reply any,
	opts ...grpc.CallOption) (*session, error) {
	s, err := p.running(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	callCtx, cancel := context.WithTimeout(ctx, timeout)
	limit, _ := callCtx.Deadline()
	err = s.conn.Invoke(callCtx, method, args, reply, opts...)
	expired := callCtx.Err() != nil
	cancel()
	if err == nil || wire.Answered(err) || wire.IsOversize(err) {
		return s, err
	}
	op, code := path.Base(method), status.Code(err)
	if code == codes.DeadlineExceeded && !expired && time.Until(limit) < time.Second {
		// The plugin saw the deadline, ours or the caller's, a moment before us.
		if limit.Before(begin.Add(timeout)) {
			return s, context.DeadlineExceeded
		}
		expired = true
	}
	patience := 50 * time.Millisecond
	if code == codes.Unavailable {
		patience = time.Second // the connection breaks a moment before the process is seen to end
	}
	switch {
	case ctx.Err() != nil:
		return s, ctx.Err()
	case s.stopped.Load():
		if p.host.ctx.Err() != nil {
			return s, errClosed
		}
		return s, fault(p.name, op, FaultInterrupted, nil, errInterrupted,
			"it was stopped during %s because of another call",
			op)
	case expired:
		p.kill(s)
		return s, fault(p.name, op, FaultHung, s.process, err, "it did not answer %s within %v", op, timeout)
	case s.process.exitedWithin(patience) || code == codes.Unavailable:
		p.discard(s) // a process without a connection is of no use either
		if p.host.ctx.Err() != nil {
			return s, errClosed
		}
		return s, fault(p.name, op, FaultDied, s.process, wire.ErrDied, "it died during %s", op)
	default:
		message := printable.Cut(status.Convert(err).Message(), 1<<10)
		return s, fault(p.name, op, FaultCall, nil, err, "%s failed: %s (%s)", op, message, code)
	}
}

// errInterrupted is the cause if another call ended the process. The call may be repeated.
var errInterrupted = fmt.Errorf("%w (%w)", wire.ErrDied, exec.ErrKernelLost)

// NewStream implements grpc.ClientConnInterface. The protocol has no streams.
func (p *program) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, fmt.Errorf("plugin %s: no streaming calls", p.name)
}
