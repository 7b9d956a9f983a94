//go:build linux

package hostile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/example"
	"github.com/origami-gemm/origami/sdk/serve"
	"github.com/origami-gemm/origami/sdk/wire"
)

// The hostile plugins serve the example's model and an executor that runs nothing. In one call they do what a file in
// their home folder names.
const (
	modelPlugin    = "origami-plugin-hostile"
	executorPlugin = "origami-plugin-hostile-executor"
	lieFile        = "lie"
)

// TestMain makes this binary a plugin, or the program that measures, if it is called by that name.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case modelPlugin:
		p, err := example.Provider()
		if err != nil {
			panic(err)
		}
		serveLies(wire.ArchService(p), func() { serve.Main(p) })
	case executorPlugin:
		serveLies(wire.ExecutorService(honest{}), func() { serve.MainExecutor(honest{}) })
	case "measure":
		runMeasured()
	default:
		code := m.Run()
		_ = os.RemoveAll(folder)
		os.Exit(code)
	}
}

// lie is what a plugin does to its host.
type lie struct {
	// method is the call that it happens in, "describe", or the stream that it floods, "broker" or "stdio".
	method string
	// answer makes the message, of any length. Without one the call does not end.
	answer func() message
	// packed: the answer is compressed.
	packed bool
	// before runs at the start of the call.
	before func()
}

// message is an encoded message that need not be in memory as a whole.
type message struct{ parts [][]byte }

func (m message) size() (n int) {
	for _, part := range m.parts {
		n += len(part)
	}
	return n
}

// many makes a message of a text again and again, of so many bytes altogether. numbers says of which field, of which
// other field, and so on, the text is the content.
func many(text string, size int, numbers ...protowire.Number) func() message {
	return func() message {
		block := []byte(strings.Repeat(text, 1+mib/len(text)))
		var m message
		for n := size / len(text) * len(text); n > 0; n -= len(m.parts[len(m.parts)-1]) {
			m.parts = append(m.parts, block[:min(n, len(block))])
		}
		return m.in(numbers...)
	}
}

// in makes the message a field of a field … of another one.
func (m message) in(numbers ...protowire.Number) message {
	for _, number := range numbers {
		m = m.after(string(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType),
			uint64(m.size()))))
	}
	return m
}

// after is the message behind other fields.
func (m message) after(head string) message {
	return message{slices.Concat([][]byte{[]byte(head)}, m.parts)}
}

// empty is an empty message or text as a field of another one.
func empty(number protowire.Number) string {
	return string(append(protowire.AppendTag(nil, number, protowire.BytesType), 0))
}

// honest is an executor whose answers are right.
type honest struct{}

func (honest) Manifest() exec.Manifest {
	return exec.Manifest{Name: "hostile-executor", Version: "1.0.0"}
}

func (honest) Open(context.Context) (exec.Executor, error) {
	return &exectest.Executor{Device: exec.Device{Name: "NVIDIA GeForce RTX 4090", Arch: "sm89",
		Kernels: []string{"triton"}}}, nil
}

// told returns the lie that this process is to tell.
func told() lie {
	name, _ := os.ReadFile(filepath.Join(os.Getenv("HOME"), lieFile))
	for _, h := range slices.Concat(answers, streams, executors) {
		if h.name == string(name) {
			return *h.lie
		}
	}
	return lie{}
}

func serveLies(s *wire.Service, describe func()) {
	l := told()
	if len(os.Args) > 1 {
		if l.method == "describe" {
			l.before()
		}
		describe()
	}
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(512 * mib), grpc.UnaryInterceptor(l.call),
		grpc.StreamInterceptor(l.stream), grpc.ForceServerCodecV2(rawCodec{encoding.GetCodecV2("proto")})}
	if l.packed {
		options = append(options, grpc.RPCCompressor(grpc.NewGZIPCompressor())) //nolint:staticcheck // it asks nobody
	}
	plugin.Serve(&plugin.ServeConfig{HandshakeConfig: wire.Handshake, VersionedPlugins: wire.Plugins(s),
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server { return grpc.NewServer(append(o, options...)...) }})
	os.Exit(0)
}

// call answers a call. While a stream floods the host, its call does not end.
func (l lie) call(ctx context.Context, req any, i *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
	floods := l.method == "broker" || l.method == "stdio"
	method := l.method
	if floods {
		method = "Rank"
	}
	if path.Base(i.FullMethod) != method {
		return h(ctx, req)
	}
	if l.before != nil {
		l.before()
	}
	if floods || l.answer == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.answer(), nil
}

// stream sends messages of go-plugin's own services, without end.
func (l lie) stream(srv any, to grpc.ServerStream, i *grpc.StreamServerInfo, h grpc.StreamHandler) error {
	if l.method == "" || !strings.Contains(strings.ToLower(i.FullMethod), "grpc"+l.method) {
		return h(srv, to)
	}
	m := l.answer()
	for to.SendMsg(m) == nil {
	}
	return nil
}

// rawCodec sends a message as it is.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, raw := v.(message)
	if !raw {
		return c.CodecV2.Marshal(v)
	}
	var b mem.BufferSlice
	for _, part := range m.parts {
		b = append(b, mem.SliceBuffer(part))
	}
	return b, nil
}

// floodStderr prints a text as fast as it can for as long as the host lets it.
func floodStderr(text string) func() {
	return func() {
		block := []byte(strings.Repeat(text, 1+(64<<10)/len(text)))
		for {
			if _, err := os.Stderr.Write(block); err != nil {
				return
			}
		}
	}
}

// build returns a folder with the command and the plugins, which are trusted. All tests share it.
func build(t *testing.T) string {
	t.Helper()
	bin := must.Get(built())(t)
	return bin
}

var folder string // of built, empty if there is none

var built = sync.OnceValues(func() (bin string, err error) {
	if bin, err = os.MkdirTemp("", "hostile"); err != nil {
		return "", err
	}
	folder = bin
	origami := filepath.Join(bin, "origami")
	commands := [][]string{{"go", "build", "-o", origami, "github.com/origami-gemm/origami/cmd/origami"}}
	self, err := os.Executable()
	if err != nil {
		return bin, err
	}
	for _, name := range []string{"measure", modelPlugin, executorPlugin} {
		path := filepath.Join(bin, name)
		commands = append(commands, []string{"cp", self, path})
		if name != "measure" {
			commands = append(commands, []string{origami, "plugin", "trust", path})
		}
	}
	for _, words := range commands {
		cmd := osexec.Command(words[0], words[1:]...)
		cmd.Env = append(os.Environ(), "ORIGAMI_LOCK_FILE="+filepath.Join(bin, "lock.json"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return bin, fmt.Errorf("%v: %w: %s", words, err, bytes.TrimSpace(out))
		}
	}
	return bin, nil
})
