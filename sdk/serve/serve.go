// Package serve is what the author of a plugin calls. A whole plugin is
//
//	func main() { serve.Main(myProvider{}) }
//
// or, for one that runs kernels, serve.MainExecutor. The rest is handled here: the handshake, gRPC over a private
// socket with mutual TLS, log lines as JSON on stderr, and ending when the host does. Authors log with
// hclog.Default(); standard output belongs to the handshake.
package serve

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/sdk/wire"
)

// Main is the main function of a plugin binary that models architectures. Started by a host it serves p until the host
// ends. Run by hand with the argument "describe" it prints as JSON who it is and what it provides; without it, what to
// do instead. It does not return.
func Main(p arch.Provider) { run(wire.ArchService(p)) }

// MainExecutor is Main for a plugin that runs kernels. "describe" must work without a device, which p.Open is the first
// to look for.
func MainExecutor(p exec.Provider) { run(wire.ExecutorService(p)) }

// Serve serves p to the host that started this process, and returns when the host has ended the connection. A program
// with plugins built in calls it from a hidden command.
func Serve(p arch.Provider) { serve(wire.ArchService(p)) }

func run(s *wire.Service) {
	arg := ""
	if len(os.Args) > 1 {
		arg = os.Args[1]
	}
	switch {
	case arg == "describe":
		if err := describe(os.Stdout, s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case os.Getenv(wire.Handshake.MagicCookieKey) == wire.Handshake.MagicCookieValue:
		serve(s)
	default:
		hint(os.Stderr, os.Args[0], s)
		os.Exit(2)
	}
	os.Exit(0)
}

func describe(w io.Writer, s *wire.Service) error {
	text, err := protojson.MarshalOptions{Multiline: true, UseProtoNames: true}.Marshal(s.Describe(context.Background()))
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", text)
	}
	return err
}

func hint(w io.Writer, path string, s *wire.Service) {
	info := s.Describe(context.Background()).GetInfo()
	_, _ = fmt.Fprintf(w, `%s: this is the plugin %s %s of origami, which starts it when it needs it
  %s describe              prints what it provides, as JSON
  origami plugin trust %[4]s   lets origami use it
`, filepath.Base(path), info.GetName(), info.GetVersion(), path)
}

func serve(s *wire.Service) {
	logger := hclog.New(&hclog.LoggerOptions{
		Level:      hclog.LevelFromString(os.Getenv(wire.EnvLogLevel)), // unset: info
		Output:     os.Stderr,
		JSONFormat: true,
	})
	hclog.SetDefault(logger)
	// The host executes a descriptor, after whose number Linux would call this process in top and nvidia-smi.
	_ = os.WriteFile("/proc/self/comm", []byte("origami-"+s.Describe(context.Background()).GetInfo().GetName()), 0)
	go exitWithHost(logger)
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  wire.Handshake,
		VersionedPlugins: wire.Plugins(s),
		Logger:           logger,
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			// go-plugin lifts gRPC's limit of 4 MiB for the host only.
			return grpc.NewServer(append(o, grpc.MaxRecvMsgSize(wire.MaxMessage))...)
		},
	})
	if err := s.Close(); err != nil {
		logger.Warn("it did not end well", "error", err)
	}
}

// exitWithHost ends this process when the host is gone: plugins would outlive a killed host otherwise. An origami host
// holds our standard input open; under any other host the parent's process id is watched.
func exitWithHost(logger hclog.Logger) {
	if os.Getenv(wire.EnvWatch) == "stdin" {
		_, _ = io.Copy(io.Discard, os.Stdin)
	} else {
		for parent := os.Getppid(); os.Getppid() == parent; {
			time.Sleep(250 * time.Millisecond)
		}
	}
	logger.Debug("the host is gone")
	os.Exit(0)
}
