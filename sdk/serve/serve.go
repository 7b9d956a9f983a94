// Package serve is the main program of a plugin. A complete plugin is
//
//	func main() { serve.Main(myProvider{}) }
//
// or, if it runs kernels, serve.MainExecutor. This package serves as hashicorp/go-plugin does, but over gRPC alone:
// go-plugin has a server of net/rpc too, whose reflection makes the linker keep every method of every type, 4 MB. Log
// lines are JSON on stderr, and the plugin ends with the host. Authors log with hclog.Default().
package serve

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"

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
	watched := os.Getenv(wire.EnvWatch) == "stdin"
	listener, handshake, options, err := listen(watched, stdin)
	if err != nil {
		logger.Error("the plugin cannot serve", "error", err)
		os.Exit(1)
	}
	go exitWithHost(logger, watched, stdin)
	server := grpc.NewServer(append(wire.ServerOptions(), options...)...)
	serving := health.NewServer()
	serving.SetServingStatus(plugin.GRPCServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, serving)
	stop := func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
		server.Stop()
		return &emptypb.Empty{}, nil
	}
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "plugin.GRPCController", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Shutdown", Handler: stop}}}, nil)
	s.Register(server)
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // the host handles a Ctrl-C at the terminal
	fmt.Println(handshake)
	os.Stdout = os.Stderr // what a provider prints is for the log
	if err := errors.Join(server.Serve(listener), s.Close()); err != nil {
		logger.Warn("the plugin did not close cleanly", "error", err)
	}
}

// listen listens on a socket in the host's folder. The handshake tells the host where. With a host's certificate, each
// side accepts the other alone: origami also sends a key for both sides, and for any other host the plugin makes its
// own.
func listen(watched bool, stdin *bufio.Reader) (l net.Listener, handshake string, o []grpc.ServerOption, err error) {
	own := ""
	if certificate := os.Getenv(wire.EnvHostCertificate); certificate != "" {
		identify := wire.NewIdentity
		if watched {
			identify = func() (*wire.Identity, error) { return wire.ReadIdentity(certificate, stdin) }
		}
		identity, err := identify()
		if err != nil {
			return nil, "", nil, err
		}
		config := identity.TLS()
		if !watched {
			config.ClientCAs = x509.NewCertPool()
			config.ClientCAs.AppendCertsFromPEM([]byte(certificate))
			own = base64.RawStdEncoding.EncodeToString(config.Certificates[0].Certificate[0])
		}
		o = append(o, grpc.Creds(credentials.NewTLS(config)))
	}
	network, address := "unix", filepath.Join(cmp.Or(os.Getenv(plugin.EnvUnixSocketDir), os.TempDir()),
		"plugin"+rand.Text()[:10])
	if runtime.GOOS == "windows" { // as go-plugin does
		network, address = "tcp", "127.0.0.1:0"
	}
	if l, err = net.Listen(network, address); err != nil {
		return nil, "", nil, err
	}
	return l, fmt.Sprintf("%d|%d|%s|%s|grpc|%s", plugin.CoreProtocolVersion, wire.ProtocolVersion, network, l.Addr(), own),
		o, nil
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
