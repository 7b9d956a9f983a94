package conformance

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/sdk/wire"
)

// Architecture checks a provider of architectures behind gRPC, each property in a subtest. With -short and under the
// race detector it checks only the default device of each architecture. Under the race detector it does not measure
// time.
func Architecture(t *testing.T, p arch.Provider, o Options) {
	t.Helper()
	test(t, p.Manifest().Name, wire.ArchService(p), architectureChecks, o)
}

// Executor checks a provider of an executor behind gRPC, each property in a subtest. Without a device the checks that
// need one are skipped, or fail if the environment variable ORIGAMI_REQUIRE_GPU is 1.
func Executor(t *testing.T, p exec.Provider, o Options) {
	t.Helper()
	o.RequireDevice = o.RequireDevice || os.Getenv("ORIGAMI_REQUIRE_GPU") == "1"
	test(t, p.Manifest().Name, wire.ExecutorService(p), executorChecks, o)
}

func test(t *testing.T, name string, service *wire.Service, checks []Check, o Options) {
	t.Helper()
	o.Short = o.Short || testing.Short() || raceDetector
	o.Untimed = o.Untimed || raceDetector
	conn, stop, err := connect(service)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	s := newSubject(name, conn, o)
	for _, check := range checks {
		t.Run(check.Name, func(t *testing.T) {
			r := s.run(t.Context(), check)
			if r.Skipped != "" {
				t.Skip(r.Skipped)
			}
			for _, finding := range r.Findings {
				t.Error(finding)
			}
			if r.Failed() {
				t.Logf("required: %s", check.Doc)
			}
		})
	}
}

// callTimeout limits a call, as in a host.
const callTimeout = 30 * time.Second

// connect serves a service to a connection, like the process of a plugin. The answers pass through forge, if any.
func connect(service *wire.Service, forge ...grpc.UnaryServerInterceptor) (conn *grpc.ClientConn, stop func(),
	err error) {
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(append(wire.ServerOptions(), grpc.ChainUnaryInterceptor(append(forge, survive)...))...)
	service.Register(server)
	conn, err = grpc.NewClient("passthrough:plugin", append(wire.DialOptions(),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			return invoke(ctx, method, req, reply, cc, opts...)
		}))...)
	if err != nil {
		return nil, nil, err
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	return conn, func() {
		_ = conn.Close()
		server.Stop()
		serving.Wait()
		_ = service.Close()
	}, nil
}

// survive turns a panic, which would end the process of a plugin, into an error that a check can report.
func survive(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = status.Errorf(codes.Unavailable, "it panics: %v", r)
		}
	}()
	return handle(ctx, req)
}
