package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// environment lists the variables that a plugin inherits: where programs and libraries are, which device is meant,
// where caches are, and what the Go runtime listens to. It gets no others. A plugin needs no credentials, and what a
// variable makes it load (LD_PRELOAD, PYTHONPATH) would not be what was hashed; LD_LIBRARY_PATH has to be, for
// drivers.
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

// launcher is what go-plugin runs a process with.
type launcher struct {
	program *program
	file    *binary // nil for a built-in
	ctx     context.Context
	env     []string
	log     *tail
	session *session

	handshake io.ReadCloser
}

// handshakeLength bounds the line of the handshake, most of which is a certificate.
const handshakeLength = 16 << 10

var _ runner.Runner = (*launcher)(nil)

func (l *launcher) Start(context.Context) error {
	p, err := start(l.program.path, l.file, l.program.args, l.env, l.log)
	if err != nil {
		return err
	}
	l.session.process = p
	handshake, w := io.Pipe()
	l.handshake = handshake
	go func() {
		stdout := bufio.NewReaderSize(p.stdout, handshakeLength)
		line, _, err := stdout.ReadLine()
		if err == nil {
			_, _ = w.Write(append(line, '\n'))
		}
		_ = w.Close()
		l.log.readFrom(stdout)
	}()
	// The start is over when launch returns; until then its deadline, or the end of the host, ends the process.
	context.AfterFunc(l.ctx, func() {
		if errors.Is(l.ctx.Err(), context.DeadlineExceeded) || l.program.host.ctx.Err() != nil {
			p.kill()
		}
	})
	return nil
}

// Kill is called when the handshake failed, often because the process is about to end by itself.
func (l *launcher) Kill(context.Context) error {
	if p := l.session.process; p != nil && !p.exitedWithin(100*time.Millisecond) {
		p.kill()
	}
	return nil
}

func (l *launcher) Wait(context.Context) error {
	<-l.session.process.exited
	return nil
}

// Stdout is for go-plugin the first line, the handshake. The rest is read here to the end, whatever it is: go-plugin
// gives up at a long line, and a plugin that prints on would wait for ever.
func (l *launcher) Stdout() io.ReadCloser { return l.handshake }

// Stderr is empty for go-plugin: process reads the real one.
func (l *launcher) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

func (l *launcher) Name() string                    { return l.program.path }
func (l *launcher) ID() string                      { return l.program.name }
func (l *launcher) Diagnose(context.Context) string { return "" }

// PluginToHost refuses to be sent anywhere but into the folder that the plugin was given.
func (l *launcher) PluginToHost(network, address string) (string, string, error) {
	if runtime.GOOS != "windows" && (network != "unix" || filepath.Dir(address) != filepath.Clean(l.session.socket)) {
		return "", "", fmt.Errorf("it listens at %s %s, outside of the folder that it was given", network, address)
	}
	return network, address, nil
}

func (l *launcher) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
