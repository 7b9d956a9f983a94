package zbench

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/plugins/builtins"
	"github.com/origami-gemm/origami/sdk/wire"
)

func connect(b testing.TB) *wire.Client {
	all, err := builtins.Providers()
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer(wire.ServerOptions()...)
	wire.ArchService(all[0]).Register(server)
	l := bufconn.Listen(1 << 20)
	go server.Serve(l)
	conn, err := grpc.NewClient("passthrough:memory", append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Stop)
	return wire.NewClient("x", conn)
}

func BenchmarkOpenHeld(b *testing.B) { // held by the plugin: wire alone, response cached
	c := connect(b)
	for b.Loop() {
		if _, err := c.Open(b.Context(), arch.OpenRequest{Arch: "sm90", Device: "h200"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenClosed(b *testing.B) { // model opened and described each time
	c := connect(b)
	for b.Loop() {
		a, err := c.Open(b.Context(), arch.OpenRequest{Arch: "sm90", Device: "h200"})
		if err != nil {
			b.Fatal(err)
		}
		a.Close(b.Context())
	}
}

func BenchmarkManifest(b *testing.B) {
	c := connect(b)
	for b.Loop() {
		if _, err := c.Manifest(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRank(b *testing.B) {
	c := connect(b)
	a, err := c.Open(b.Context(), arch.OpenRequest{Arch: "sm90", Device: "h200"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := a.Rank(b.Context(), selector.Request{Problems: []gemm.Problem{gemm.New(4096, 4096, 4096)}, Top: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEstimate(b *testing.B) {
	c := connect(b)
	a, err := c.Open(b.Context(), arch.OpenRequest{Arch: "sm90", Device: "h200"})
	if err != nil {
		b.Fatal(err)
	}
	l, err := a.Candidates(b.Context(), gemm.New(4096, 4096, 4096), arch.Space{})
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]arch.Estimate, len(l.Configs))
	for b.Loop() {
		if err := a.Estimate(b.Context(), dst, gemm.New(4096, 4096, 4096), l.Configs); err != nil {
			b.Fatal(err)
		}
	}
}
