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
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-plugin/runner"
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

// launcher is the runner that go-plugin starts a process with.
type launcher struct {
	program *program
	file    *binary // nil for a built-in
	ctx     context.Context
	env     []string
	log     *tail
	session *session

	handshake io.ReadCloser
	mute      atomic.Bool // it closed its stdout without a handshake
}

// handshakeLength limits the line of the handshake. Most of it is a certificate.
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
		} else {
			l.mute.Store(true)
		}
		_ = w.Close()
		l.log.readFrom(stdout)
	}()
	// The start ends when launch returns. Until then its deadline, or closing the host, ends the process.
	context.AfterFunc(l.ctx, func() {
		if errors.Is(l.ctx.Err(), context.DeadlineExceeded) || l.program.host.ctx.Err() != nil {
			p.kill()
		}
	})
	return nil
}

// Kill is called when the handshake failed, often because the process is about to end by itself. If it closed its
// stdout, it most likely is, and how it ends says more than that it was killed.
func (l *launcher) Kill(context.Context) error {
	grace := 100 * time.Millisecond
	if l.mute.Load() {
		grace = stopTime
	}
	if p := l.session.process; p != nil && !p.exitedWithin(grace) {
		p.kill()
	}
	return nil
}

func (l *launcher) Wait(context.Context) error {
	<-l.session.process.exited
	return nil
}

// Stdout gives go-plugin only the first line, the handshake. The launcher reads the rest: go-plugin stops at a long
// line, and a plugin that continues to print would then block forever.
func (l *launcher) Stdout() io.ReadCloser { return l.handshake }

// Stderr is empty for go-plugin: process reads the real one.
func (l *launcher) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

func (l *launcher) Name() string                    { return l.program.path }
func (l *launcher) ID() string                      { return l.program.name }
func (l *launcher) Diagnose(context.Context) string { return "" }

// PluginToHost refuses any address outside the folder that the plugin was given.
func (l *launcher) PluginToHost(network, address string) (string, string, error) {
	if runtime.GOOS != "windows" && (network != "unix" || filepath.Dir(address) != filepath.Clean(l.session.socket)) {
		return "", "", fmt.Errorf("it listens at %s %s, outside of the folder that it was given", network, address)
	}
	return network, address, nil
}

func (l *launcher) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
