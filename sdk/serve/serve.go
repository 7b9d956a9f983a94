// Package serve is the main program of a plugin. A complete plugin is
//
//	func main() { serve.Main(myProvider{}) }
//
// or, if it runs kernels, serve.MainExecutor. This package does the handshake, serves gRPC over a private socket with
// mutual TLS, writes log lines as JSON to stderr, and ends with the host. Authors log with hclog.Default(). Standard
// output is reserved for the handshake.
package serve

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"

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
	case os.Getenv(wire.EnvCookie) == wire.Cookie:
		serve(s)
	default:
		hint(os.Stderr, os.Args[0], s)
		os.Exit(2)
	}
	os.Exit(0)
}

func describe(w io.Writer, s *wire.Service) error {
	options := protojson.MarshalOptions{Multiline: true, UseProtoNames: true}
	text, err := options.Marshal(s.Describe(context.Background()))
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", text)
	}
	return err
}

func hint(w io.Writer, path string, s *wire.Service) {
	info := s.Describe(context.Background()).GetInfo()
	_, _ = fmt.Fprintf(w, `%s: this is the plugin %s %s of origami; origami starts it when needed
  %s describe              prints its manifest as JSON
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
	// The host executes a file descriptor. Without this, top and nvidia-smi would show its number as the process name.
	_ = os.WriteFile("/proc/self/comm", []byte("origami-"+s.Describe(context.Background()).GetInfo().GetName()), 0)
	go exitWithHost(logger)
	// The host handles a Ctrl-C at the terminal.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	stdout := os.Stdout
	os.Stdout = os.Stderr
	if err := listen(stdout, s); err != nil {
		logger.Error("the plugin cannot serve", "error", err)
		os.Exit(1)
	}
	if err := s.Close(); err != nil {
		logger.Warn("the plugin did not close cleanly", "error", err)
	}
}

// listen announces a socket in the handshake and serves there until the host asks the plugin to end. If the host has
// sent its certificate, each side accepts only the other.
func listen(stdout io.Writer, s *wire.Service) error {
	options := wire.ServerOptions()
	network, address := "unix", filepath.Join(cmp.Or(os.Getenv(wire.EnvSocketDir), os.TempDir()),
		fmt.Sprintf("plugin%d", rand.Uint32()))
	if runtime.GOOS == "windows" {
		network, address = "tcp", "127.0.0.1:0"
	}
	socket, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	line := wire.Handshake{Network: network, Address: socket.Addr().String()}
	if theirs := os.Getenv(wire.EnvHostCertificate); theirs != "" {
		identity, err := wire.NewIdentity()
		if err != nil {
			return err
		}
		config, err := identity.ToHost(theirs)
		if err != nil {
			return err
		}
		line.Certificate = identity.DER()
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	server := grpc.NewServer(options...)
	s.Register(server)
	server.RegisterService(wire.Controller(server.Stop), nil)
	if _, err := fmt.Fprintln(stdout, line); err != nil {
		return err
	}
	return server.Serve(socket)
}

// exitWithHost ends this process when the host ends. Otherwise a plugin would outlive a killed host. An origami host
// keeps the standard input of the plugin open. With any other host, the plugin polls the id of its parent process.
func exitWithHost(logger hclog.Logger) {
	if os.Getenv(wire.EnvWatch) == "stdin" {
		_, _ = io.Copy(io.Discard, os.Stdin)
	} else {
		for parent := os.Getppid(); os.Getppid() == parent; {
			time.Sleep(250 * time.Millisecond)
		}
	}
	logger.Debug("the host has ended")
	os.Exit(0)
}
