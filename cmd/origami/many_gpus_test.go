package main

import (
	"bytes"
	"context"
	"fmt"
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

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/measure"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/csvtest"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

// The sweep whose times are replayed: a grid of sizes × 100 kernels, on one H200.
const slides = "../../plugins/nvidia/data/grids/slides"

// profiled is `origami`, which writes a CPU profile to the file $CPUPROFILE.
func profiled() int {
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

// gpu returns a GPU that lends. Its times vary by 1 %.
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

// lendMany is `lend-many N SOCKET`: N GPUs that lend, whose kernels take no time. A GPU that is given back is lent
// again. Opening one takes $OPENING.
func lendMany() int {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	opening, _ := time.ParseDuration(os.Getenv("OPENING"))
	r, err := newReplay(context.Background())
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("unix", os.Args[2])
	if err != nil {
		panic(err)
	}
	free := make(chan int, n)
	for i := range n {
		free <- i
	}
	for {
		i := <-free
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		more := len(free)
		go func() {
			defer func() { free <- i }()
			defer func() { _ = conn.Close() }()
			_, _ = fmt.Fprintf(conn, "{\"more\":%d}\n", more)
			x := r.gpu(i)
			_ = measure.Lend(context.Background(), conn, "node/"+strconv.Itoa(i),
				func(context.Context, measure.Wanted) (*measure.Sweep, measure.Lending, error) {
					time.Sleep(opening)
					env, err := x.Environment(context.Background(), 0)
					return &measure.Sweep{Arch: r.model, Executor: x, Ahead: 1, Host: "simulated"},
						measure.Lending{Device: x.Device, Version: "1", Environment: env}, err
				})
		}()
	}
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
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
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

// TestManyGPUs tunes with GPUs that are lent, 1,000 by default, and shows what the process that chooses and writes
// costs. $GPUS, $SIZES, $KERNELS, $STRATEGY and $MOST say what is tuned. After $KILL seconds the process is killed, and
// begun again. $PROFILES is a folder for its CPU profiles, $OPENING how long a GPU takes to begin.
func TestManyGPUs(t *testing.T) {
	if os.Getenv("ORIGAMI_MANY_GPUS") == "" {
		t.Skip("`make many-gpus` runs it")
	}
	work := t.TempDir()
	file, log := filepath.Join(work, "sizes.yaml"), filepath.Join(work, "records", dataset.Log)
	sizesFile(t, file, number("SIZES", 10000), number("KERNELS", 20))
	sweep, err := filepath.Abs(slides)
	if err != nil {
		t.Fatal(err)
	}
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
	lenders := as("lend-many", strconv.Itoa(number("GPUS", 1000)), socket)
	if err := lenders.Start(); err != nil {
		t.Fatal(err)
	}
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
	args := []string{"--arch", "sm90@h200", "--in-process", "tune", file, "--executor", "replay",
		"--records", filepath.Dir(log), "--lent", socket, "--strategy", "all", "--json"}
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
		if err := head.Start(); err != nil {
			t.Fatal(err)
		}
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
		text, e := os.ReadFile(log)
		if e != nil {
			t.Fatal(e)
		}
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
	d, err := dataset.Read("records", os.DirFS(filepath.Dir(log)))
	if err != nil {
		t.Fatal(err)
	}
	gpus := map[string]bool{}
	for _, m := range d.All() {
		gpus[m.GPU] = true
	}
	t.Logf("%d measurements, none twice, by %d GPUs", d.Len(), len(gpus))
}
