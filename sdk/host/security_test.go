package host_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"math/big"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
	"github.com/origami-gemm/origami/sdk/wire"
)

// docs/threat-model.md names these tests.

// Only the host that started a plugin can call it. A client without its certificate gets no answer.
func TestPluginAnswersItsHostOnly(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	client := plugin.NewClient(&plugin.ClientConfig{HandshakeConfig: wire.Handshake, VersionedPlugins: wire.Plugins(nil),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, Cmd: osexec.Command(os.Args[0], asPlugin, "good"),
		AutoMTLS: true, Logger: hclog.NewNullLogger()})
	defer client.Kill()
	address := must.Get(client.Start())(t)
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	foreign := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	for name, c := range map[string]credentials.TransportCredentials{
		"no TLS":         insecure.NewCredentials(),
		"no certificate": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}),
		"another certificate": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12,
			Certificates: []tls.Certificate{foreign}}),
	} {
		conn := must.Get(grpc.NewClient("unix:"+address.String(), grpc.WithTransportCredentials(c)))(t)
		resp, err := pb.NewBaseServiceClient(conn).Info(t.Context(), &pb.Json{})
		must.That(t, status.Code(err) == codes.Unavailable, "%s: got %v, %v", name, resp, err)
		_ = conn.Close()
	}
	// The host that started it gets one.
	protocol := must.Get(client.Client())(t)
	conn := must.Get(protocol.Dispense(wire.PluginName))(t)
	if info, err := wire.NewClient("good", conn.(grpc.ClientConnInterface)).Info(t.Context()); err != nil ||
		info.Name != "good" {
		t.Errorf("got %+v, %v", info, err)
	}
}

// The host does not call a plugin that cannot prove to be the started process.
func TestHostTrustsItsPluginOnly(t *testing.T) {
	h := hostOf(t, host.Options{StartTimeout: 5 * time.Second}, "plain", "elsewhere", "good")
	for mode, says := range map[string]string{"plain": "it does not start as a plugin",
		"elsewhere": "outside of the folder that it was given"} {
		_, err := h.Open(t.Context(), arch.OpenRequest{Arch: mode})
		wantFault(t, err, mode, host.FaultStart, says)
		noneAlive(t, mode)
	}
	open(t, h, arch.OpenRequest{Arch: "good"})
}

// Only the owner may enter the folder of a socket, from the moment it exists.
func TestSocketsArePrivate(t *testing.T) {
	h := hostOf(t, host.Options{}, "slow.1")
	done := make(chan struct{})
	go func() {
		defer close(done)
		open(t, h, arch.OpenRequest{Arch: "slow.1"})
	}()
	seen := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(20 * time.Millisecond):
		}
		_ = filepath.WalkDir(os.TempDir(), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && path != os.TempDir() {
				if info, err := d.Info(); err == nil {
					seen++
					if info.Mode().Perm() != 0o700 {
						t.Errorf("%s has mode %v", path, info.Mode())
					}
				}
			}
			return nil
		})
	}
	must.That(t, seen != 0, "no folder was seen")
}

// A plugin inherits the listed variables and no others.
func TestSecretsStayHere(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, secret := range []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "PYTHONPATH",
		"PYTHONSTARTUP"} {
		t.Setenv(secret, "a-secret")
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "3")
	t.Setenv("TRITON_CACHE_DIR", "/cache")
	t.Setenv("GOMEMLIMIT", "")
	_ = os.Unsetenv("GOMEMLIMIT")
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	trust(t, lock, install(t, dir, "environment"))
	h := newHost(t, host.Options{LockFile: lock})
	file := started("environment") + ".env"
	for _, when := range []string{"describing", "serving"} {
		if when == "describing" {
			pluginsOf(t, h)
		} else {
			_ = os.Remove(file)
			open(t, h, arch.OpenRequest{Arch: "environment"})
		}
		text := must.Get(os.ReadFile(file))(t)
		must.That(t, !strings.Contains(string(text), "a-secret") && !strings.Contains(string(text), "PRIVATE KEY") &&
			strings.Contains(string(text), "CUDA_VISIBLE_DEVICES=3\n") &&
			strings.Contains(string(text), "TRITON_CACHE_DIR=/cache\n") &&
			strings.Contains(string(text), "GOMEMLIMIT="+strconv.Itoa(host.Memory)+"\n"), "%s, it inherits\n%s", when, text)
	}
}

// A plugin may have so many files open.
func TestFilesOfAPluginAreLimited(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have no call for it")
	}
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	trust(t, lock, install(t, dir, "environment"))
	h := newHost(t, host.Options{LockFile: lock})
	open(t, h, arch.OpenRequest{Arch: "environment"})
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	limited := false
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, pid := range strings.Fields(string(text)) {
			limits, _ := os.ReadFile("/proc/" + pid + "/limits")
			for line := range strings.Lines(string(limits)) {
				f := strings.Fields(line)
				limited = limited || strings.HasPrefix(line, "Max open files") && len(f) > 4 && len(f[4]) <= len("4096")
			}
		}
	}
	must.That(t, limited, "no process of a plugin has a limit")
}

// A file that every user may write to is neither trusted nor run. A file that every user may replace causes a warning.
func TestWhatOthersMayWrite(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	lock := filepath.Join(t.TempDir(), "lock")
	path := install(t, dir, "outside")
	chmod := func(path string, mode fs.FileMode) {
		t.Helper()
		must.Do(t, os.Chmod(path, mode))
	}
	chmod(path, 0o707)
	_, err := host.Trust(t.Context(), lock, path)
	must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(),
		"every user may write to it; check its content, then `chmod o-w "+path+"`"), "Trust: got %v", err)
	chmod(path, 0o700)
	trust(t, lock, path)
	var log syncBuffer
	options := host.Options{LockFile: lock, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})}

	for _, exposed := range []string{path, lock} {
		chmod(exposed, 0o777)
		p := info(t, newHost(t, host.Options{Plugins: []string{path}, LockFile: lock}),
			"outside")
		must.That(t, p.State == host.Skipped && strings.Contains(p.Reason,
			"every user may write to it; check its content, then `chmod o-w "+exposed+"`"), "%s: got %+v", exposed, p)
		chmod(exposed, 0o700)
	}
	n := starts(t, "outside")
	must.That(t, n == 0, "the plugin was run %d times", n)
	if p := info(t, newHost(t, options), "outside"); p.State != host.OK || log.String() != "" {
		t.Errorf("got %+v, warned %q", p, log.String())
	}
	chmod(dir, 0o777)
	if p := info(t, newHost(t, options), "outside"); p.State != host.OK || !strings.Contains(log.String(),
		"every user may replace "+path) || !strings.Contains(log.String(), "chmod o-w "+dir) {
		t.Errorf("got %+v, warned %q", p, log.String())
	}
}

// A link that is trusted runs the hashed file or nothing. Something that is not a file does not block the host.
func TestLinksAndPipes(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, searched := t.TempDir(), t.TempDir()
	lock := filepath.Join(dir, "lock")
	link := filepath.Join(searched, host.Prefix+"outside")
	must.Do(t, os.Symlink(install(t, dir, "outside"), link))
	trust(t, lock, link)
	options := host.Options{SearchPath: []string{searched}, LockFile: lock}
	h := newHost(t, options)
	p := info(t, h, "outside")
	must.That(t, p.State == host.OK && p.Path == link, "got %+v", p)
	other := install(t, dir, "other")
	tamper(t, other)
	_ = os.Remove(link)
	must.Do(t, os.Symlink(other, link))
	_, err := h.Open(t.Context(), arch.OpenRequest{Arch: "outside"})
	wantFault(t, err, "outside", host.FaultUntrusted, "has changed")
	p = info(t, newHost(t, options), "outside")
	must.That(t, p.State == host.Skipped && strings.Contains(p.Reason, "SHA-256"), "got %+v", p)

	pipe := filepath.Join(dir, host.Prefix+"pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o700))
	p = info(t, newHost(t, host.Options{Plugins: []string{pipe}, LockFile: lock}), "pipe")
	must.That(t, p.State == host.Error &&
		strings.Contains(p.Reason, "not a regular file"), "got %+v", p)
	_, err = host.Trust(t.Context(), lock, pipe)
	must.That(t, diag.KindOf(err) == diag.Input, "got %v", err)
}

// A script can be a plugin too. The size of its description is limited, and a different protocol is reported.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "lock")
	for name, test := range map[string]struct {
		script string
		state  host.State
		reason string
	}{
		"newer": {`echo '{"info":{"name":"newer","version":"9"},` +
			`"protocols":[3],"manifest":{"name":"newer"}}'`,
			host.Skipped, "it speaks protocol [3], this origami speaks 2; rebuild it"},
		"talks": {`exec cat /dev/zero`, host.Error, "what describe prints: it is larger than 1 MiB"},
		"args": {`echo "called as $1 from $0" >&2; exit 7`, host.Error,
			"describe failed (exit status 7): called as describe from " + filepath.Join(dir, host.Prefix+"args")},
	} {
		path := filepath.Join(dir, host.Prefix+name)
		must.Do(t, os.WriteFile(path, []byte("#!/bin/sh\n"+test.script+"\n"), 0o700))
		trust(t, lock, path)
		p := info(t, newHost(t, host.Options{LockFile: lock}), name)
		must.That(t, p.State == test.state &&
			strings.Contains(p.Reason, test.reason), "%s: got %+v, want %s because of %q", name, p, test.state, test.reason)
	}
}
