// Package serve is the main program of a plugin. A complete plugin is
//
//	func main() { serve.Main(myProvider{}) }
//
// or, if it runs kernels, serve.MainExecutor. hashicorp/go-plugin serves. This package gives it the identity for mutual
// TLS, writes log lines as JSON to stderr, and ends with the host. Authors log with hclog.Default().
package serve

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/sdk/wire"
)

// Main is the main function of a plugin binary that models architectures. If a host started the process, Main serves p
// until the host ends. If a user started it, the argument "describe" prints the plugin's identity and manifest as JSON,
// and anything else prints usage. Main does not return.
func Main(p arch.Provider) { run(wire.ArchService(p)) }

// MainExecutor is Main for a plugin that runs kernels. "describe" must work without a device. Only p.Open may look for
// one.
func MainExecutor(p exec.Provider) { run(wire.ExecutorService(p)) }

// Serve serves p to the host that started this process and returns when the host closes the connection. A program with
// built-in plugins calls it from a hidden command.
func Serve(p arch.Provider) { serve(wire.ArchService(p)) }

// Started reports whether a host started this process as a plugin.
func Started() bool {
	return os.Getenv(wire.Handshake.MagicCookieKey) == wire.Handshake.MagicCookieValue
}

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
	case Started():
		serve(s)
	default:
		hint(os.Stderr, os.Args[0], s)
		os.Exit(2)
	}
	os.Exit(0)
}

func describe(w io.Writer, s *wire.Service) error {
	_, err := fmt.Fprintf(w, "%s\n", s.Describe(context.Background()).JSON())
	return err
}

func hint(w io.Writer, path string, s *wire.Service) {
	info := s.Describe(context.Background()).Info
	_, _ = fmt.Fprintf(w, `%s: this is the plugin %s %s of origami; origami starts it when needed
  %s describe              prints its manifest as JSON
  origami plugin trust %[4]s   lets origami use it
`, filepath.Base(path), info.Name, info.Version, path)
}

func serve(s *wire.Service) {
	logger := hclog.New(&hclog.LoggerOptions{
		Level:      hclog.LevelFromString(os.Getenv(wire.EnvLogLevel)), // unset: info
		Output:     os.Stderr,
		JSONFormat: true,
	})
	hclog.SetDefault(logger)
	// The host executes a file descriptor. Without this, top and nvidia-smi would show its number as the process name.
	_ = os.WriteFile("/proc/self/comm", []byte("origami-"+s.Describe(context.Background()).Info.Name), 0)
	stdin := bufio.NewReader(os.Stdin)
	config := &plugin.ServeConfig{HandshakeConfig: wire.Handshake, VersionedPlugins: wire.Plugins(s), Logger: logger,
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, wire.ServerOptions()...)...)
		}}
	watched := os.Getenv(wire.EnvWatch) == "stdin"
	if certificate := os.Getenv(wire.EnvHostCertificate); watched && certificate != "" {
		identity, err := wire.ReadIdentity(certificate, stdin)
		if err != nil {
			logger.Error("the plugin cannot serve", "error", err)
			os.Exit(1)
		}
		config.TLSProvider = func() (*tls.Config, error) { return identity.TLS(), nil }
	}
	go exitWithHost(logger, watched, stdin)
	plugin.Serve(config)
	if err := s.Close(); err != nil {
		logger.Warn("the plugin did not close cleanly", "error", err)
	}
}

// exitWithHost ends this process when the host ends. Otherwise a plugin would outlive a killed host. An origami host
// keeps the standard input of the plugin open. With any other host, the plugin polls the id of its parent process.
func exitWithHost(logger hclog.Logger, watched bool, stdin io.Reader) {
	if watched {
		_, _ = io.Copy(io.Discard, stdin)
	} else {
		for parent := os.Getppid(); os.Getppid() == parent; {
			time.Sleep(250 * time.Millisecond)
		}
	}
	logger.Debug("the host has ended")
	os.Exit(0)
}
