package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
)

// Serving is what the command line of `origami serve` says.
type Serving struct {
	Factory   *session.Factory
	Listen    string
	Limits    Options
	Endpoints func() []Endpoint
}

// NewServe returns `origami serve`.
func NewServe(f *session.Factory, endpoints func() []Endpoint) *cobra.Command {
	o := &Serving{Factory: f, Endpoints: endpoints}
	cmd := &cobra.Command{
		Use:   "serve [--listen ADDRESS]",
		Short: "Answer questions in a browser, and programs in JSON",
		Long: "Serve the page of `origami report` with a form for the question, on this machine until it is\n" +
			"interrupted. Programs get the JSON of select, rank, explain, compare, roofline, map, eval and arch\n" +
			"ls below /api/v1 (/openapi.json describes it), and probes /healthz. Requests run no program, name\n" +
			"no file, do not reach the GPU, and are limited in size, rate and time. Everyone who reaches the\n" +
			"address may ask; other machines do with --listen only.",
		Example: `  origami serve
  origami serve --arch h200,mi300x --listen localhost:9000
  curl 'http://localhost:8620/api/v1/select?arch=h200&m=4096&n=4096&k=4096'`,
		RunE: func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Listen, "listen", "localhost:8620", "`ADDRESS` to listen on, as HOST:PORT; port 0 is any free one")
	flags.Float64Var(&o.Limits.Rate, "rate", 20, "questions per second that are answered, of all clients together")
	flags.DurationVar(&o.Limits.TimeLimit, "time-limit", 30*time.Second, "how long one question may take, as a `DURATION`")
	return cmd
}

// Run serves until the context ends. The error is then the context's, as of every interrupted command.
func Run(ctx context.Context, o *Serving) error {
	if !(o.Limits.Rate > 0) {
		return diag.Inputf("%g questions per second are none", o.Limits.Rate).At("--rate").Do("give a positive number")
	}
	if o.Limits.TimeLimit <= 0 {
		return diag.Inputf("%v is no time", o.Limits.TimeLimit).At("--time-limit").Do("give a positive duration")
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return diag.Inputf("it cannot be listened on: %v", err).At("--listen %s", o.Listen).Do("name another address")
	}
	at, err := netip.ParseAddrPort(l.Addr().String())
	o.Limits.Local = err == nil && at.Addr().IsLoopback()
	server, err := New(ctx, o.Factory, o.Endpoints(), o.Limits)
	if err != nil {
		_ = l.Close()
		return err
	}
	if !o.Limits.Local {
		o.Factory.Streams.Warn(fmt.Sprintf("everyone who reaches %s may ask", l.Addr()))
	}
	if o.Factory.Getenv("GOMEMLIMIT") == "" { // what large answers leave behind is collected before it doubles the heap
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(128<<20 + int64(cap(server.working))*(32<<20)))
	}
	o.Factory.Streams.Note(fmt.Sprintf("listening on http://%s/", l.Addr()))
	return errors.Join(server.Serve(ctx, l), ctx.Err())
}
