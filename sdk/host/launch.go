package host

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

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

// Memory is where the Go runtime of the command, and of a plugin in Go, begins to collect garbage at any price: a
// process takes some 40 MB beside its heap, and is to stay below 300 MB (docs/threat-model.md).
const Memory = 224 << 20

func hostEnv() []string {
	env := []string{"GOMEMLIMIT=" + strconv.Itoa(Memory)} // unless the user has another
	for _, name := range environment {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// launcher starts one process of a program for go-plugin's client (a runner.Runner), for three reasons. The client's
// own runner would give the user's standard input to the plugin. Its parser of log lines panics at one with a field of
// a wrong type. And it looks for an executable at its path, where another file may be by now.
type launcher struct {
	ctx      context.Context // of the launch
	program  *program
	file     *binary
	identity *wire.Identity

	cmd    *exec.Cmd // go-plugin's, which has its environment variables
	folder string    // of the socket
	log    *output
	lines  *io.PipeReader // what the log passes on
	passed *io.PipeWriter
	first  *io.PipeReader // the first line of the standard output
	silent bool           // there was none, once first has ended
	line   string         // what it was
	rest   io.Reader      // of a remote program: the standard output from behind that line, nil once it is a connection

	process          *process // nil before Start has succeeded
	network, address string   // of the socket, once the plugin has said so
}

// client returns go-plugin's client for the process.
func (l *launcher) client(sockets string) *plugin.Client {
	options := l.program.host.options
	lines, passed := io.Pipe()
	l.lines, l.passed = lines, passed
	if l.log == nil {
		l.log = &output{level: options.Logger.GetLevel(), pass: l.passLine}
	}
	return plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: wire.Handshake, VersionedPlugins: wire.Plugins(nil),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, Logger: options.Logger, TLSConfig: l.identity.TLS(),
		SkipHostEnv: true, UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: sockets},
		// A launch ends its process earlier.
		StartTimeout: 2 * l.program.startTimeout(),
		SyncStdout:   l.log, SyncStderr: l.log, PluginLogBufferSize: 2 * lineLength,
		GRPCDialOptions: append(wire.DialOptions(), grpc.WithContextDialer(l.dial),
			grpc.WithIdleTimeout(0)), // a connection that was closed for want of use could not be opened again
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, folder string) (runner.Runner, error) {
			l.cmd, l.folder = cmd, folder
			return l, nil
		},
	})
}

// Start implements runner.Runner. go-plugin's client then reads Stdout and Stderr until the process has ended.
func (l *launcher) Start(context.Context) error {
	env := append(hostEnv(), l.cmd.Env...)
	l.cmd = exec.Command(l.program.path, l.program.args...)
	l.cmd.Env = append(env, wire.EnvHostCertificate+"="+l.identity.Certificate, wire.EnvWatch+"=stdin",
		wire.EnvLogLevel+"="+l.log.level.String())
	line := l.identity.KeyLine()
	if l.program.remote {
		l.cmd.Env = os.Environ() // the user's command, which may ask an agent for a key
		certificate := base64.StdEncoding.EncodeToString([]byte(l.identity.Certificate))
		line = append([]byte(certificate+"\n"), line...)
	}
	first, passed := io.Pipe()
	l.first = first
	process, err := start(l.cmd, l.file, line, l.log, func(r io.Reader) { l.passFirstLine(passed, r) })
	if err != nil {
		return err
	}
	l.process = process
	// The start ends with the launch. Until then its deadline, or closing the host, ends the process.
	context.AfterFunc(l.ctx, func() {
		if errors.Is(l.ctx.Err(), context.DeadlineExceeded) || l.program.host.ctx.Err() != nil {
			l.process.kill()
		}
	})
	go func() {
		<-l.process.exited
		_ = l.passed.Close()
	}()
	return nil
}

// timestamps is the form in which go-plugin's client expects the time of a log line.
const timestamps = "2006-01-02T15:04:05.000000Z07:00"

// passLine passes a log line on to go-plugin's client, which would panic at a field of a type that it does not expect.
func (l *launcher) passLine(level hclog.Level, entry map[string]any) {
	entry["@level"] = level.String()
	when, _ := entry["@timestamp"].(string)
	if _, err := time.Parse(timestamps, when); err != nil {
		entry["@timestamp"] = time.Now().Format(timestamps)
	}
	if line, err := json.Marshal(entry); err == nil {
		_, _ = l.passed.Write(append(line, '\n'))
	}
}

// handshakeLength limits the line of the handshake. Most of it is a certificate.
const handshakeLength = 16 << 10

// passFirstLine passes the first line of the standard output on. The rest goes to the log: a plugin that continued to
// print into a full pipe would block forever.
func (l *launcher) passFirstLine(to *io.PipeWriter, r io.Reader) {
	stdout := bufio.NewReaderSize(r, handshakeLength)
	line, _, err := stdout.ReadLine()
	if l.line, l.silent = string(line), err != nil; !l.silent {
		if l.program.remote {
			l.rest = stdout
		}
		_, _ = fmt.Fprintln(to, l.line)
		if !l.program.remote {
			l.log.readFrom(stdout)
		}
	}
	_ = to.Close()
}

// Stdout, Stderr, Name and ID implement runner.Runner. The log has the name and the id.
func (l *launcher) Stdout() io.ReadCloser { return l.first }
func (l *launcher) Stderr() io.ReadCloser { return l.lines }
func (l *launcher) Name() string          { return l.program.name }
func (l *launcher) ID() string            { return strconv.Itoa(l.process.cmd.Process.Pid) }

// Diagnose implements runner.Runner. go-plugin's client kills a plugin after its first line was no handshake. A plugin
// that has closed its standard output without a line most likely is about to end, and how it ends says more than that
// it was killed.
func (l *launcher) Diagnose(context.Context) string {
	patience := dyingTime
	if l.silent {
		patience = stopTime
	}
	l.process.exitedWithin(patience)
	return ""
}

// Wait and Kill implement runner.Runner.
func (l *launcher) Wait(context.Context) error {
	<-l.process.exited
	return nil
}

// Kill does not wait.
func (l *launcher) Kill(context.Context) error {
	l.process.kill()
	return nil
}

// PluginToHost and HostToPlugin implement runner.Runner. The host takes the address of the plugin's socket.
func (l *launcher) PluginToHost(network, address string) (string, string, error) {
	inside := network == "unix" && filepath.Dir(address) == filepath.Clean(l.folder)
	if runtime.GOOS != "windows" && !inside && !l.program.remote {
		return "", "", fmt.Errorf("it listens at %s %s, outside of the folder that it was given", network, address)
	}
	l.network, l.address = network, address
	return network, address, nil
}

// HostToPlugin would be for the broker.
func (*launcher) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// dial connects to the plugin. The connection ends with the process: a descendant of the process may hold the other end
// open, and calls would never return.
func (l *launcher) dial(ctx context.Context, _ string) (net.Conn, error) {
	select {
	case <-l.process.exited:
		return nil, errors.New("the process has ended")
	default:
	}
	var conn net.Conn
	var err error
	switch {
	case !l.program.remote:
		conn, err = new(net.Dialer).DialContext(ctx, l.network, l.address)
	case l.rest == nil:
		err = errors.New("the connection has ended")
	default:
		conn, l.rest = &streams{l.rest, l.process}, nil
	}
	if err == nil {
		go func() {
			<-l.process.exited
			_ = conn.Close()
		}()
	}
	return conn, err
}
