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
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/origami-gemm/origami/core/diag"
	coreexec "github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/sdk/wire"
)

// An executor plugin of another machine is at the other end of the standard streams of a command, as of
// `ssh node origami lend cuda`. To it go two lines: the host's certificate and its key, in base64. It answers with the
// line of the plugin's handshake. All further bytes are the connection to the plugin, with the TLS of any other one.
// The key is a secret, so the command must keep to itself what it passes on, as ssh does.

// remoteStart is the least time limit for the start of a command: it may have to log in, or to wait for a GPU. One that
// takes longer has no device: trying again and again would hold up what others could do.
const remoteStart = time.Minute

// Remote returns the executor at the other end of a shell command, where Lend runs, and its version. It is as an
// executor of this machine: what ends the command ends the plugin, and the next call starts the command again.
func (h *Host) Remote(ctx context.Context, name, command string) (_ coreexec.Executor, version string, err error) {
	p := &program{name: fmt.Sprintf("%s at the end of %q", name, printable.Cut(command, 64)), path: "/bin/sh",
		args: []string{"-c", command}, remote: true, host: h}
	h.mu.Lock()
	h.own = append(h.own, p)
	h.mu.Unlock()
	x, err := p.open(ctx, p.name)
	if err != nil {
		return nil, "", err
	}
	m, err := x.(*executor).Manifest(ctx)
	if err == nil && m.Name != name {
		err = diag.Inputf("its executor is %s, and not %s", m.Name, name).Do("name the same executor")
	}
	if err != nil {
		_ = x.Close() // the error says more
		return nil, "", err
	}
	return x, m.Version, nil
}

// startTimeout limits a start of the program.
func (p *program) startTimeout() time.Duration {
	if p.remote {
		return max(remoteStart, p.host.options.StartTimeout)
	}
	return p.host.options.StartTimeout
}

// streams are the standard streams of a process as a connection.
type streams struct {
	io.Reader // the standard output from behind the first line
	process   *process
}

func (s *streams) Write(b []byte) (int, error)        { return s.process.stdin.Write(b) }
func (s *streams) Close() error                       { return s.process.stdin.Close() }
func (s *streams) LocalAddr() net.Addr                { return &net.UnixAddr{} }
func (s *streams) RemoteAddr() net.Addr               { return &net.UnixAddr{} }
func (s *streams) SetReadDeadline(t time.Time) error  { return s.process.stdout.SetReadDeadline(t) }
func (s *streams) SetWriteDeadline(t time.Time) error { return s.process.stdin.SetWriteDeadline(t) }
func (s *streams) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// Lend runs the executor plugin of this name, which this machine trusts, for a host at the other end of two streams
// (see Remote), until either ends. What the plugin logs goes to the standard error.
func (h *Host) Lend(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	f, err := h.findExecutor(ctx, name)
	if err != nil {
		return err
	}
	from := bufio.NewReaderSize(in, handshakeLength)
	var identity *wire.Identity
	certificate, err := from.ReadSlice('\n')
	if err == nil {
		pem, _ := base64.StdEncoding.DecodeString(string(certificate)) // half of one is none
		identity, err = wire.ReadIdentity(string(pem), from)
	}
	if err != nil {
		return diag.Inputf("what comes from the other end is no certificate with a key").
			Do("let a host at the other end of a pipe call it, as for `ssh NODE origami lend %s`", name)
	}
	starting, started := context.WithTimeout(h.ctx, h.options.StartTimeout)
	defer started()
	l := &launcher{ctx: starting, identity: identity}
	l.log = &output{level: hclog.Info, pass: func(level hclog.Level, entry map[string]any) {
		entry["@level"] = level.String()
		line, _ := json.Marshal(entry) // it was read from JSON
		_, _ = fmt.Fprintf(os.Stderr, "%s\n", line)
	}}
	defer func() {
		if l.process != nil {
			l.process.kill()
			<-l.process.exited
		}
	}()
	return f.program.begin(l, func(*plugin.Client) error {
		started()
		conn, err := l.dial(ctx, "")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if _, err := fmt.Fprintln(out, l.line); err != nil {
			return nil // nobody is at the other end any more
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		pass := func(to io.Writer, from io.Reader) {
			_, _ = io.Copy(to, from) // the other end learns of it by its end of the stream
			stop()
		}
		go pass(conn, from)
		go pass(out, conn)
		select {
		case <-ctx.Done():
		case <-l.process.exited:
		}
		if l.process.exitedWithin(dyingTime) && l.process.diedByItself() && !l.process.cmd.ProcessState.Success() {
			return fault(f.info.Name, "serve", FaultDied, l.process, nil, "it died")
		}
		return nil
	})
}
