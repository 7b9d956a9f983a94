package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/origami-gemm/origami/sdk/wire"
)

// environment lists the variables that a plugin inherits: the paths of programs, libraries and caches, the visible
// devices, and the settings of the Go runtime. It inherits no others. A plugin needs no credentials, and code loaded
// through LD_PRELOAD or PYTHONPATH has not been hashed. LD_LIBRARY_PATH is an exception, because drivers need it.
var environment = []string{
	"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ",
	"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT",
	"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
	"CUDA_CACHE_PATH", "CUDA_CACHE_DISABLE", "CUDA_CACHE_MAXSIZE", // a sweep compiles thousands of kernels
	"XDG_CACHE_HOME", "TRITON_HOME", "TRITON_CACHE_DIR",
	"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
	"GOCOVERDIR", "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GORACE", "GOTRACEBACK",
}

func hostEnv() []string {
	var env []string
	for _, name := range environment {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// handshakeLength limits the line of the handshake. Most of it is a certificate.
const handshakeLength = 16 << 10

// handshake returns the first line of a process. The rest goes to its log: a plugin that continued to print into a full
// pipe would block forever.
func (p *process) handshake(ctx context.Context) (line string, err error) {
	first := make(chan string, 1)
	go func() {
		defer close(first)
		stdout := bufio.NewReaderSize(p.stdout, handshakeLength)
		if line, _, err := stdout.ReadLine(); err == nil {
			first <- string(line)
		}
		p.stderr.readFrom(stdout)
	}()
	select {
	case line, printed := <-first:
		if !printed {
			// It most likely is about to end, and how it ends says more than that it was killed.
			p.exitedWithin(stopTime)
			return "", errors.New("it closed its standard output without a handshake")
		}
		return line, nil
	case <-p.exited:
		return "", errors.New("it ended without a handshake")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// connect reads the handshake and returns the connection. It is closed when the process ends: a descendant of the
// process may hold the other end open, and calls would never return.
func (s *session) connect(ctx context.Context, identity *wire.Identity) (*grpc.ClientConn, error) {
	line, err := s.process.handshake(ctx)
	if err != nil {
		return nil, err
	}
	plugin, err := wire.ParseHandshake(line)
	if err != nil {
		return nil, err
	}
	inside := plugin.Network == "unix" && filepath.Dir(plugin.Address) == filepath.Clean(s.socket)
	if runtime.GOOS != "windows" && !inside {
		return nil, fmt.Errorf("it listens at %s %s, outside of the folder that it was given", plugin.Network,
			plugin.Address)
	}
	config, err := identity.ToPlugin(plugin.Certificate)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///plugin", append(wire.DialOptions(),
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		// A connection that was closed for want of use could not be opened again.
		grpc.WithIdleTimeout(0),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, plugin.Network, plugin.Address)
		}))...)
	if err != nil {
		return nil, err
	}
	go func() {
		<-s.process.exited
		_ = conn.Close()
	}()
	return conn, nil
}
