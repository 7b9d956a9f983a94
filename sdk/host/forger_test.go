package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/origami-gemm/origami/internal/testing/fake"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
	"github.com/origami-gemm/origami/sdk/serve"
	"github.com/origami-gemm/origami/sdk/wire"
)

// The forger is the plugin of the fault matrix. It serves the fake provider or the fake executor. If a file in its
// folder says so, it makes one fault in one call or at its start. Like a plugin in another language it does not use
// package serve, so it does nothing to end with its host.
const (
	forger         = "forger" // a built-in plugin
	forgerExternal = "forger-external"
	forgerExecutor = "forger-executor" // external too
)

// forgery is one fault.
type forgery struct {
	name string // a row of the matrix
	// once: the forger makes the fault once, so that the next call, or the next process, is right.
	once bool
	// hangs: only a timeout ends it.
	hangs bool
	// says is a part of the error.
	says string
	// do runs before the call. If it returns an answer, that is the answer of the call.
	do func(folder) (any, error)
	// forge changes the answer.
	forge func(protoreflect.Message)
	// other: the answer is another one, which may be taken.
	other bool
}

// folder holds the files through which the forger and its test communicate.
type folder string

func (f folder) file(name string) string { return filepath.Join(string(f), name) }

func (f folder) append(name, line string) {
	file, err := os.OpenFile(f.file(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(line + "\n")
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		panic(err)
	}
}

func (f folder) lines(name string) []string {
	text, _ := os.ReadFile(f.file(name))
	return strings.Fields(string(text))
}

const (
	armedFile     = "armed"     // the call, and the name of the fault
	startsFile    = "starts"    // a process id per start, including those for descriptions
	daemonsFile   = "daemons"   // process ids of children in new sessions
	childrenFile  = "children"  // process ids of the other children
	unchangedFile = "unchanged" // exists if the forged answer is the right one
)

// arm sets the next fault; an empty call means none.
func (f folder) arm(call, name string) error {
	if err := os.WriteFile(f.file("arming"), []byte(call+"\n"+name), 0o600); err != nil {
		return err
	}
	_ = os.Remove(f.file(unchangedFile))
	return os.Rename(f.file("arming"), f.file(armedFile))
}

// armed returns the fault to make in a call.
func (f folder) armed(forgeries []forgery, call string) forgery {
	text, _ := os.ReadFile(f.file(armedFile))
	at, name, _ := strings.Cut(string(text), "\n")
	if at != call {
		return forgery{}
	}
	i := slices.IndexFunc(forgeries, func(g forgery) bool { return g.name == name })
	if forgeries[i].once {
		_ = os.Remove(f.file(armedFile))
	}
	return forgeries[i]
}

func runForger(f folder, name string) {
	f.append(startsFile, strconv.Itoa(os.Getpid()))
	phase := "start"
	if describes() {
		phase = "describe"
	}
	if wrong := f.armed(startForgeries, phase); wrong.do != nil {
		_, _ = wrong.do(f)
	}
	architectures, executor := fake.Provider{Name: forger}, fake.ExecutorProvider{Name: name}
	service := wire.ArchService(architectures)
	switch {
	case name == forgerExecutor && describes():
		serve.MainExecutor(executor)
	case name == forgerExecutor:
		service = wire.ExecutorService(executor)
	case describes():
		serve.Main(architectures)
	}
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(wire.MaxRequest), grpc.UnaryInterceptor(f.intercept),
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")})}
	plugin.Serve(&plugin.ServeConfig{HandshakeConfig: wire.Handshake, VersionedPlugins: wire.Plugins(service),
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server { return grpc.NewServer(append(o, options...)...) }})
	if f.armed(callForgeries, "afterwards").do != nil {
		time.Sleep(time.Minute)
	}
	os.Exit(0)
}

func (f folder) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	handle grpc.UnaryHandler) (any, error) {
	wrong := f.armed(callForgeries, path.Base(info.FullMethod))
	if wrong.do != nil {
		if resp, err := wrong.do(f); resp != nil || err != nil {
			return resp, err
		}
	}
	resp, err := handle(ctx, req)
	if err != nil || wrong.forge == nil {
		return resp, err
	}
	forged := proto.Clone(resp.(proto.Message))
	wrong.forge(forged.ProtoReflect())
	if proto.Equal(forged, resp.(proto.Message)) {
		f.append(unchangedFile, "")
	}
	return forged, nil
}

// codec can send a message that is not that of the call, and a large one without using memory for it.
type codec struct{ encoding.CodecV2 }

// repeated is a message that consists of one record n times.
type repeated struct {
	record string
	n      int
}

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(repeated)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	var b mem.BufferSlice
	const together = 1 << 16
	for part := mem.SliceBuffer(strings.Repeat(r.record, min(r.n, together))); r.n > 0; r.n -= together {
		b = append(b, part[:min(r.n, together)*len(r.record)])
	}
	return b, nil
}

// callForgeries are the faults in a call.
var callForgeries = slices.Concat(
	inBoth("exits", "(exit status 3)", func(folder) (any, error) { os.Exit(3); return nil, nil }),
	inBoth("panics", "(exit status 2): panic: boom", func(folder) (any, error) { panic("boom") }),
	inBoth("is killed", "(signal: killed)", func(folder) (any, error) { return nil, killSelf(syscall.SIGKILL) }),
	[]forgery{
		{name: "exits; a child keeps its output and its connection", once: true, do: func(f folder) (any, error) {
			f.leaveChild(false)
			os.Exit(3)
			return nil, nil
		}},
		{name: "exits; a child in a new session keeps them", once: true, do: func(f folder) (any, error) {
			f.leaveChild(true)
			os.Exit(3)
			return nil, nil
		}},
		{name: "closes its connections and lives on", once: true, do: func(f folder) (any, error) {
			if err := f.arm("afterwards", "hangs"); err != nil {
				return nil, err
			}
			for fd := 3; fd < 256; fd++ {
				_ = syscall.Shutdown(fd, syscall.SHUT_RDWR) // fails if fd is not a socket
			}
			for {
				time.Sleep(time.Hour)
			}
		}},
		{name: "hangs", hangs: true, says: "within " + patience.String(), do: func(folder) (any, error) {
			for {
				time.Sleep(time.Hour)
			}
		}},
		{name: "is stopped", hangs: true, says: "within " + patience.String(), do: func(folder) (any, error) {
			return nil, killSelf(syscall.SIGSTOP)
		}},
		{name: "prints garbage", do: func(folder) (any, error) {
			for _, fd := range []int{1, 2} {
				write(fd, "1|2|tcp|nowhere\x00\xff\x1b[2J\n{\"@message\":[]}\n{\"@message\":\"x\",\"@level\":{}}\n")
				write(fd, strings.Repeat("x", 1<<20)) // more than a pipe holds, and no end of the line
			}
			return nil, nil
		}},
		{name: "prints as fast as it can", do: func(folder) (any, error) {
			for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
				write(1, "so it goes\n")
				write(2, "so it goes\n")
			}
			return nil, nil
		}},
		{name: "answers INTERNAL", do: answerStatus(codes.Internal)},
		{name: "answers UNIMPLEMENTED", do: answerStatus(codes.Unimplemented)},
		{name: "answers CANCELED", do: answerStatus(codes.Canceled)},
		{name: "answers DEADLINE_EXCEEDED", do: answerStatus(codes.DeadlineExceeded)},
		{name: "answers UNAVAILABLE", do: answerStatus(codes.Unavailable)},
		{name: "answers that it does not hold the handle", do: answerDetails(codes.NotFound,
			&pb.Missing{Resource: pb.Missing_RESOURCE_HANDLE})},
		{name: "answers that it does not hold the kernel", do: answerDetails(codes.NotFound,
			&pb.Missing{Resource: pb.Missing_RESOURCE_KERNEL})},
		{name: "answers a diagnostic of kind plugin", do: answerDetails(codes.Internal,
			&pb.Diagnostic{Kind: pb.Diagnostic_KIND_PLUGIN, What: "the device is lost"})},
		{name: "answers a diagnostic of an unknown kind", do: answerDetails(codes.Internal, &pb.Diagnostic{Kind: 99,
			What: "?"})},
		{name: "answers 33 MiB", do: func(folder) (any, error) { return repeated{"\x00", 33 << 20}, nil }},
		{name: "answers 1 million empty items", other: true, do: func(folder) (any, error) {
			return repeated{"\x0a\x00", 1_000_000}, nil
		}},
		{name: "answers 1 MiB more than needed", forge: func(m protoreflect.Message) {
			// One unknown field, number 10000, of that many bytes.
			m.SetUnknown(append([]byte{0x82, 0xf1, 0x04, 0x80, 0x80, 0x40}, make([]byte, 1<<20)...))
		}},
		{name: "answers an empty message", forge: func(m protoreflect.Message) { proto.Reset(m.Interface()) }},
	},
)

// inBoth returns a fault that happens once, and the same fault in each call.
func inBoth(name, says string, do func(folder) (any, error)) []forgery {
	return []forgery{{name: name + ", once", once: true, says: says, do: do}, {name: name + ", each time", says: says,
		do: do}}
}

func killSelf(signal syscall.Signal) error {
	if err := syscall.Kill(os.Getpid(), signal); err != nil {
		return err
	}
	time.Sleep(time.Second) // for the signal to arrive
	return nil
}

func write(fd int, text string) {
	for len(text) > 0 {
		n, err := syscall.Write(fd, []byte(text))
		if err != nil && !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.EAGAIN) {
			return
		}
		text = text[max(n, 0):]
	}
}

// leaveChild starts a process that inherits all open files of this one.
func (f folder) leaveChild(session bool) {
	var files []uintptr
	for fd := range 64 {
		files = append(files, uintptr(fd))
		if _, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil {
			files[fd] = 2
		}
	}
	pid, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "600"}, &syscall.ProcAttr{Files: files,
		Sys: &syscall.SysProcAttr{Setsid: session}})
	if err != nil {
		panic(err)
	}
	name := childrenFile
	if session {
		name = daemonsFile
	}
	f.append(name, strconv.Itoa(pid))
}

func answerStatus(code codes.Code) func(folder) (any, error) {
	return func(folder) (any, error) { return nil, status.Error(code, "no reason") }
}

func answerDetails(code codes.Code, details proto.Message) func(folder) (any, error) {
	return func(folder) (any, error) {
		s, err := status.New(code, "no reason").WithDetails(protoadapt.MessageV1Of(details))
		if err != nil {
			panic(err)
		}
		return nil, s.Err()
	}
}
