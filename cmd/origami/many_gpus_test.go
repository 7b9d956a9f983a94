package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia"
	"github.com/origami-gemm/origami/sdk/wire"
)

// The sweep whose times are replayed: a grid of sizes × 100 kernels, on one H200.
const slides = "../../plugins/nvidia/data/grids/slides"

// profiled is `origami`, which writes a CPU profile to the file $CPUPROFILE, and its plugins, which do not.
func profiled() int {
	if os.Getenv("CPUPROFILE") == "" {
		return run()
	}
	f, err := os.Create(os.Getenv("CPUPROFILE"))
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		panic(err)
	}
	code := run()
	pprof.StopCPUProfile()
	_ = f.Close()
	return code
}

// replay is a GPU on which kernels take as long as a model predicts, times the error of that prediction at the nearest
// size of a sweep.
type replay struct {
	model arch.Architecture
	data  *dataset.Dataset
	logs  [][3]float64
	mu    sync.Mutex
	near  map[gemm.Problem]gemm.Problem
}

func newReplay(ctx context.Context) (*replay, error) {
	d, err := dataset.Read("slides", os.DirFS(filepath.Join(os.Getenv("SLIDES"), "h200")))
	if err != nil {
		return nil, err
	}
	provider, err := nvidia.Provider()
	if err != nil {
		return nil, err
	}
	r := &replay{data: d, near: map[gemm.Problem]gemm.Problem{}}
	for _, p := range d.Problems() {
		r.logs = append(r.logs, logSize(p))
	}
	r.model, err = provider.Open(ctx, arch.OpenRequest{Arch: "sm90", Device: "h200"})
	return r, err
}

func logSize(p gemm.Problem) [3]float64 {
	return [3]float64{math.Log2(float64(p.M)), math.Log2(float64(p.N)), math.Log2(float64(p.K))}
}

// nearest is the size of the sweep that is nearest in powers of two.
func (r *replay) nearest(p gemm.Problem) gemm.Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q, there := r.near[p]; there {
		return q
	}
	at, least, x := 0, math.Inf(1), logSize(p)
	for i, y := range r.logs {
		if d := math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2]); d < least {
			at, least = i, d
		}
	}
	r.near[p] = r.data.Problems()[at]
	return r.near[p]
}

func (r *replay) predicted(p gemm.Problem, c gemm.Config) float64 {
	var e [1]arch.Estimate
	if err := r.model.Estimate(context.Background(), e[:], p, []gemm.Config{c}); err != nil {
		panic(err)
	}
	return float64(e[0].Cycles.At(r.model.Describe().Clock))
}

// time is 0 for a kernel that has no time in the sweep.
func (r *replay) time(p gemm.Problem, c gemm.Config) unit.Seconds {
	q := r.nearest(p)
	m, there := r.data.Candidate(q, c)
	if !there || m.Status != dataset.OK {
		return 0
	}
	return unit.Seconds(r.predicted(p, c) * float64(m.Median) / r.predicted(q, c))
}

// gpu returns a GPU. Its times vary by 1 %.
func (r *replay) gpu(seed int) *exectest.Executor {
	return &exectest.Executor{
		Device: exec.Device{Name: "NVIDIA H200", Arch: "sm90", Kernels: []string{"triton"}},
		Noise:  0.01, Seed: uint64(seed) << 32, Time: r.time,
		Fate: func(p gemm.Problem, c gemm.Config) exectest.Fate {
			if r.time(p, c) == 0 {
				return exectest.NotBuilt
			}
			return exectest.Fine
		},
	}
}

// replayMany is `replay-many SOCKET`: at each connection to the socket it is the other end of --remote, with a GPU
// whose kernels take no time. Opening one takes $OPENING.
func replayMany() int {
	opening, _ := time.ParseDuration(os.Getenv("OPENING"))
	r, err := newReplay(context.Background())
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			time.Sleep(opening)
			_ = lendReplay(conn, r.gpu(i)) // the other end may be killed
			_ = conn.Close()
		}()
	}
}

// lendReplay does what `origami lend` does with an executor of this process.
func lendReplay(conn net.Conn, x *exectest.Executor) error {
	from := bufio.NewReader(conn)
	line, err := from.ReadString('\n')
	certificate, err1 := base64.StdEncoding.DecodeString(line)
	identity, err2 := wire.ReadIdentity(string(certificate), from)
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "1|%d|unix|/replay|grpc|\n", wire.ProtocolVersion); err != nil {
		return err
	}
	ends := make(chan net.Conn, 1)
	ends <- &buffered{conn, from}
	s := grpc.NewServer(append(wire.ServerOptions(), grpc.Creds(credentials.NewTLS(identity.TLS())))...)
	wire.ExecutorService(replaying{x}).Register(s)
	health := health.NewServer()
	health.SetServingStatus("plugin", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(s, health)
	return s.Serve(&once{ends: ends})
}

// replaying provides an executor that is open.
type replaying struct{ x exec.Executor }

func (replaying) Manifest() exec.Manifest { return exec.Manifest{Name: "replay", Version: "1"} }

func (r replaying) Open(context.Context) (exec.Executor, error) { return r.x, nil }

// buffered is a connection of which something was read.
type buffered struct {
	net.Conn
	io.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.Reader.Read(p) }

// once is a listener with one connection.
type once struct{ ends chan net.Conn }

func (o *once) Accept() (net.Conn, error) { return <-o.ends, nil }
func (o *once) Close() error              { return nil }
func (o *once) Addr() net.Addr            { return &net.UnixAddr{} }

// pass is `pass SOCKET`: it passes bytes on between its standard streams and a socket.
func pass() int {
	conn, err := net.Dial("unix", os.Args[1])
	if err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		os.Exit(0)
	}()
	_, _ = io.Copy(os.Stdout, conn)
	return 0
}

// sizesFile writes a tuning file: random sizes within the range of the recorded sweep, and the sweep's first kernels.
func sizesFile(t *testing.T, name string, sizes, kernels int) {
	t.Helper()
	rows := csvtest.Read(t, filepath.Join(slides, "configs.csv"))
	var b strings.Builder
	b.WriteString("kernel: triton\nproblems:\n- dtype: fp16\n  sets:\n  - configs:\n")
	for _, r := range rows[1:][:kernels] {
		fmt.Fprintf(&b, "    - \"%sx%sx%s,w%s,s%s,k%s\"\n", r[0], r[1], r[2], r[4], r[5], r[6])
	}
	b.WriteString("    sizes:\n")
	random, seen := rand.New(rand.NewPCG(1, 2)), map[[3]int]bool{}
	draw := func() int { return 16 * int(math.Exp2(1+7.5*random.Float64())) } // 32 to 5,600
	for len(seen) < sizes {
		s := [3]int{draw(), draw(), 16 * int(math.Exp2(4+4*random.Float64()))}
		if !seen[s] {
			seen[s] = true
			fmt.Fprintf(&b, "    - exact: [%d, %d, %d]\n", s[0], s[1], s[2])
		}
	}
	must.Do(t, os.WriteFile(name, []byte(b.String()), 0o600))
}

// number is the number in an environment variable.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// peak is the most memory that a process has had, in MiB, 0 where there is no /proc.
func peak(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kib := 0
	_, _ = fmt.Sscan(after, &kib)
	return kib >> 10
}

// TestManyGPUs tunes with GPUs at the end of commands, 100 by default, and shows what the process that chooses and
// writes costs. $GPUS, $SIZES, $KERNELS, $STRATEGY and $MOST say what is tuned. After $KILL seconds the process is
// killed, and begun again. $PROFILES is a folder for its CPU profiles, $OPENING how long a GPU takes to begin.
func TestManyGPUs(t *testing.T) {
	if os.Getenv("ORIGAMI_MANY_GPUS") == "" {
		t.Skip("`make many-gpus` runs it")
	}
	work := t.TempDir()
	file, log := filepath.Join(work, "sizes.yaml"), filepath.Join(work, "records", dataset.Log)
	sizesFile(t, file, number("SIZES", 10000), number("KERNELS", 20))
	sweep := must.Get(filepath.Abs(slides))(t)
	t.Setenv("SLIDES", sweep)
	programs := filepath.Dir(binary(t))
	as := func(name string, args ...string) *osexec.Cmd {
		program := filepath.Join(programs, name)
		_ = os.Link(filepath.Join(programs, "origami"), program) // there since the first time
		cmd := osexec.Command(program, args...)
		cmd.Stderr = os.Stderr
		return cmd
	}
	socket := filepath.Join(work, "socket")
	lenders := as("replay-many", socket)
	_ = as("pass") // it is linked now
	must.Do(t, lenders.Start())
	defer func() {
		_ = lenders.Process.Kill()
		_ = lenders.Wait()
	}()
	size := func(name string) int64 {
		info, err := os.Stat(name)
		if err != nil {
			return -1
		}
		return info.Size()
	}
	for size(socket) < 0 {
		time.Sleep(10 * time.Millisecond)
	}
	args := []string{"--arch", "sm90@h200", "tune", file, "--executor", "replay",
		"--records", filepath.Dir(log), "--strategy", "all", "--json"}
	for range number("GPUS", 100) {
		args = append(args, "--remote", "exec "+filepath.Join(programs, "pass")+" "+socket)
	}
	if s := os.Getenv("STRATEGY"); s != "" {
		args = append(args, "--strategy", s)
	}
	if most := number("MOST", 0); most > 0 {
		args = append(args, "--max-measurements", strconv.Itoa(most))
	}
	kill := time.Duration(number("KILL", 0)) * time.Second
	for run := 1; ; run++ {
		head := as("origami-profiled", args...)
		profile := filepath.Join(work, "profile")
		if folder := os.Getenv("PROFILES"); folder != "" {
			profile = filepath.Join(folder, fmt.Sprintf("head-%d.prof", run))
		}
		head.Env = append(os.Environ(), "CPUPROFILE="+profile)
		before, begun, first := max(0, size(log)), time.Now(), time.Duration(0)
		must.Do(t, head.Start())
		ended := make(chan error, 1)
		go func() { ended <- head.Wait() }()
		var err error
		memory := 0
		for waiting := true; waiting; {
			select {
			case err = <-ended:
				waiting = false
			case <-time.After(10 * time.Millisecond):
				memory = max(memory, peak(head.Process.Pid))
				if first == 0 && size(log) > before {
					first = time.Since(begun)
				}
				if kill > 0 && time.Since(begun) > kill {
					_ = head.Process.Kill()
				}
			}
		}
		took := time.Since(begun)
		text := must.Get(os.ReadFile(log))(t)
		checks := bytes.Count(text[before:], []byte(`"phase":"check"`))
		lines := bytes.Count(text[before:], []byte("\n"))
		cpu := head.ProcessState.UserTime() + head.ProcessState.SystemTime()
		t.Logf("run %d: %.1f s, the first record after %.1f s; %d measurements and %d checks; %.1f s of CPU time, "+
			"%.0f records per CPU second; at most %d MiB", run, took.Seconds(), first.Seconds(), lines-checks, checks,
			cpu.Seconds(), float64(lines)/cpu.Seconds(), memory)
		if kill == 0 {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		kill = 0
	}
	d := must.Get(dataset.Read("records", os.DirFS(filepath.Dir(log))))(t)
	gpus := map[string]bool{}
	for _, m := range d.All() {
		gpus[m.GPU] = true
	}
	t.Logf("%d measurements, none twice, by %d GPUs", d.Len(), len(gpus))
}
