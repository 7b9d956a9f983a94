package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// Client speaks to one plugin over a connection. It trusts nothing that comes back: an answer of the wrong length, with
// an unknown enum value or with a number that cannot be is an error of kind diag.Plugin that names the plugin.
type Client struct {
	name     string
	refuser  Refuser // may be nil
	base     pb.BaseServiceClient
	arch     pb.ArchServiceClient
	executor pb.ExecutorServiceClient
}

// NewClient returns a client for the plugin of that name. It makes no call.
func NewClient(name string, conn grpc.ClientConnInterface) *Client {
	refuser, _ := conn.(Refuser)
	return &Client{name: name, refuser: refuser, base: pb.NewBaseServiceClient(conn), arch: pb.NewArchServiceClient(conn),
		executor: pb.NewExecutorServiceClient(conn)}
}

// Refuser is for a connection that reports what a plugin does wrong in its own error type. Refused converts the
// client's error about an impossible answer to op.
type Refuser interface {
	Refused(op string, d *diag.Error) error
}

// Info asks the plugin who it is.
func (c *Client) Info(ctx context.Context) (Info, error) {
	resp, err := c.base.Info(ctx, &pb.Json{}) // not repeated: it is part of a start
	if err != nil {
		return Info{}, c.fault(ctx, "Info", err)
	}
	info, err := fromJSON[Info]()(resp)
	info.Failing = cut(info.Failing)
	return info, c.nonsense("Info", err)
}

// Manifest asks the plugin what it provides.
func (c *Client) Manifest(ctx context.Context) (arch.Manifest, error) {
	return ask(ctx, c, "Manifest", nil, c.arch.Manifest, &pb.Json{}, fromJSON(checkManifest))
}

// Open opens an architecture in the plugin.
func (c *Client) Open(ctx context.Context, r arch.OpenRequest) (*Architecture, error) {
	a := &Architecture{client: c, request: OpenMessage(r)}
	return ask(ctx, c, "Open", nil, c.arch.Open, a.request, func(q *pb.OpenResponse) (*Architecture, error) {
		o, err := unmarshal(q.GetJson(), MaxShortAnswerMemory, (*opening).check)
		if err != nil {
			return nil, err
		}
		if len(q.GetHandle()) == 0 {
			return nil, errors.New("an empty handle")
		}
		a.opened, a.desc, a.levels = q, &o.Description, o.Levels
		return a, describes(a.desc, r)
	})
}

// ask makes a call, with repeats, and converts its answer.
func ask[Q, R, T any](ctx context.Context, c *Client, op string, reopen func(context.Context) error,
	call func(context.Context, Q, ...grpc.CallOption) (R, error), q Q, from func(R) (T, error)) (got T, err error) {
	var resp R
	err = c.repeat(ctx, op, reopen, func() (err error) {
		resp, err = call(ctx, q)
		return err
	})
	if err != nil {
		return got, err
	}
	got, err = from(resp)
	return got, c.nonsense(op, err)
}

// ErrDied is what a connection's error wraps when the process behind it is gone. A connection that starts the process
// again on the next call may use it: the client repeats a call that is idempotent, once. All are, but those that
// compile and run kernels.
var ErrDied = errors.New("the plugin's process is gone")

// repeat makes a call and repeats it where that can help: after reopen, which may be nil, when the plugin does not hold
// the handle, and once when the process died.
func (c *Client) repeat(ctx context.Context, op string, reopen func(context.Context) error, do func() error) error {
	for restarted, reopened := false, 0; ; {
		err := do()
		if _, missing := details(err); missing == pb.Missing_RESOURCE_HANDLE && reopen != nil {
			// More than once, because others that opened the same may close it, and the process may die, in between.
			if reopened++; reopened > 10 {
				return c.nonsense(op, errors.New("it forgets the architecture as soon as it is opened"))
			}
			if err = reopen(ctx); err == nil {
				continue
			}
		}
		if errors.Is(err, ErrDied) && !restarted {
			restarted = true
			continue
		}
		return c.fault(ctx, op, err)
	}
}

// fault is the one place that turns a failed call into an error for the caller.
func (c *Client) fault(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	var d *diag.Error
	if errors.As(err, &d) {
		return err // the host's connection has reported it
	}
	if diagnostic, _ := details(err); diagnostic != nil {
		return c.reported(fromDiagnostic(diagnostic))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if IsOversize(err) {
		return c.nonsense(op, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s := status.Convert(err)
	if deadline, ok := ctx.Deadline(); ok && s.Code() == codes.DeadlineExceeded && time.Until(deadline) < time.Second {
		return context.DeadlineExceeded // the plugin saw the caller's deadline a moment before us
	}
	return c.refused(op, &diag.Error{Kind: diag.Plugin, Where: "plugin " + c.name, What: fmt.Sprintf("%s failed: %s (%s)",
		op, cut(s.Message()), s.Code()), Err: err,
		Fix: "report it to the plugin's author"})
}

// reported returns the error of a diagnostic. One without a text becomes one about the plugin.
func (c *Client) reported(d *diag.Error) *diag.Error {
	if strings.TrimSpace(d.What) == "" {
		d.Where, d.What = "plugin "+c.name, "it reports a failure and gives no reason"
		d.Fix = "report it to the plugin's author"
	}
	return d
}

// nonsense turns a complaint about an answer into an error; nil stays nil.
func (c *Client) nonsense(op string, err error) error {
	if err == nil {
		return nil
	}
	return c.refused(op, &diag.Error{Kind: diag.Plugin, Where: "plugin " + c.name,
		What: fmt.Sprintf("%s answered nonsense: %v", op, err), Err: err,
		Fix: "report it to the plugin's author"})
}

func (c *Client) refused(op string, d *diag.Error) error {
	if c.refuser != nil {
		return c.refuser.Refused(op, d)
	}
	return d
}
