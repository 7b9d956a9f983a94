//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package builtins

import (
	"context"
	"fmt"
	"maps"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/wire"
)

// noTerm says why no prediction of a model depends on a quantity of a level, or none on an architecture.
var noTerm = map[string]string{
	"tritonblas: latency of L2": "the published model has none",
	"pipelined: latency of L2":  "its own load_latency, which was fitted",
	"fused_moe: latency of L2":  "as of pipelined, which it is made of",

	"amd-origami: capacity of MALL": "the published model has none",
	"tensile: bandwidth of L2":      "that of a generation, l2_rate",
	"tensile: bandwidth of MALL":    "that of a generation, mall_rate",
	"tensile: bandwidth of HBM":     "a share of the data sheet's",
	"tensile: latency of HBM":       "its own load_latency, which was fitted",

	"triton: capacity of L2":    "what a die works on at a time is taken to fit",
	"triton: bandwidth of L2":   "that of CDNA 3, l2_rate",
	"triton: bandwidth of MALL": "that of CDNA 3, mall_rate",
	"triton: bandwidth of HBM":  "a share of the data sheet's",
	"triton: latency of HBM":    "its own load_latency, which was fitted",

	"gfx900 tensile: capacity of L2": "only the libraries of today that it is levelled to have a term",

	"library: latency of L2":     "its own step_seconds, which was fitted",
	"library: latency of DRAM":   "its own step_seconds, which was fitted",
	"library: latency of HBM":    "its own step_seconds, which was fitted",
	"library: bandwidth of L2":   "that of an SM or CU, l2_share, which was fitted",
	"library: bandwidth of MALL": "its capacity alone counts",
	"library: bandwidth of DRAM": "a share of the data sheet's",
	"library: bandwidth of HBM":  "a share of the data sheet's",
}

// A prediction of every model changes if a quantity of a memory level is halved, behind gRPC, unless the model is known
// to have no term for it. The devices are the default ones of the architectures.
func TestHalfOfALevel(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range Plugins {
		p, err := b.Provider()
		must.Do(t, err)
		behind := behindGRPC(t, p)
		for _, e := range p.Manifest().Archs {
			for _, model := range e.Models {
				o := opened{provider: behind, request: arch.OpenRequest{Arch: e.ID, Model: model}}
				t.Run(e.ID+" "+model, func(t *testing.T) { o.halve(t, seen) })
			}
		}
	}
	for key := range noTerm {
		must.That(t, seen[key], "there is no %s", key)
	}
}

// halve halves every quantity of every level. What was not measured has a value first, and one cache becomes two.
func (o *opened) halve(t *testing.T, seen map[string]bool) {
	overrides := map[string]hw.OverrideValue{}
	for _, level := range o.open(t, nil).Hierarchy().Levels() {
		for name, v := range numbers(&level) {
			if v == 0 && name == level.Names.Latency {
				overrides[name] = hw.OverrideValue{Value: 100}
			}
		}
	}
	a := o.open(t, overrides)
	for q := range questions {
		o.predictions = append(o.predictions, ask(t.Context(), t, a, q))
	}
	for i, level := range a.Hierarchy().Levels() {
		for what, name := range quantities(&level.Names) {
			key := fmt.Sprintf("%s: %s of %s", o.request.Model, what, level.Name)
			was := numbers(&level)[name]
			if was == 0 {
				continue // the device has no such number
			}
			half := was / 2
			if name == level.Names.Partitions && was == 1 {
				half = 2
			}
			changed := maps.Clone(overrides)
			changed[name] = hw.OverrideValue{Value: half}
			b := o.open(t, changed)
			must.Need(t, b != nil, "%s: %v is refused", key, half)
			got := numbers(&b.Hierarchy().Levels()[i])[name]
			must.That(t, got == half, "%s is %v, and with an override to %v it is %v", key, was, half, got)
			if on := o.request.Arch + " " + key; noTerm[on] != "" {
				key = on
			}
			seen[key] = true
			if _, differs := o.differs(t, b, 0); differs != (noTerm[key] == "") || differs == a.Describe().Ignores(name) {
				t.Errorf("%s: predictions change: %v; the description calls it unused: %v; and here: %q", key, differs,
					a.Describe().Ignores(name), noTerm[key])
			}
		}
	}
}

// quantities are the numbers that state a level.
func quantities(n *arch.LevelNames) map[string]string {
	all := map[string]string{"capacity": n.Capacity, "latency": n.Latency, "partitions": n.Partitions,
		"bandwidth": n.Bandwidth, "published bandwidth": n.DataSheet}
	maps.DeleteFunc(all, func(_, name string) bool { return name == "" })
	return all
}

// numbers are the quantities of a level by the numbers that state them.
func numbers(l *arch.Level) map[string]float64 {
	all := map[string]float64{}
	l.Numbers(func(name string, quantity *float64) { all[name] = *quantity })
	return all
}

// behindGRPC serves a plugin on a socket and returns a client of it.
func behindGRPC(t *testing.T, p arch.Provider) arch.Provider {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	must.Do(t, err)
	service, server := wire.ArchService(p), grpc.NewServer(wire.ServerOptions()...)
	service.Register(server)
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	must.Do(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		_ = service.Close()
	})
	return remote{wire.NewClient("plugin", conn)}
}

type remote struct{ *wire.Client }

// Manifest implements arch.Provider.
func (remote) Manifest() arch.Manifest { return arch.Manifest{} }

// Open implements arch.Provider.
func (r remote) Open(ctx context.Context, q arch.OpenRequest) (arch.Architecture, error) {
	return r.Client.Open(ctx, q)
}
