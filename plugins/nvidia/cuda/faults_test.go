//go:build cuda

package cuda

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/serve"
	"github.com/origami-gemm/origami/sdk/wire"
)

// TestMain makes this binary a plugin too: the executor, with two kernels that no process survives.
func TestMain(m *testing.M) {
	if os.Getenv(wire.Handshake.MagicCookieKey) != "" || len(os.Args) == 2 && os.Args[1] == "describe" {
		serve.MainExecutor(faultyProvider{})
	}
	os.Exit(m.Run())
}

type faultyProvider struct{ Provider }

func (f faultyProvider) Open(ctx context.Context) (exec.Executor, error) {
	x, err := f.Provider.Open(ctx)
	if err != nil {
		return nil, err
	}
	return faultyExecutor{x.(*executor)}, nil
}

type faultyExecutor struct{ *executor }

// texts are kernels by the family that stands for them.
var texts = map[string]string{
	"endless": `.version 7.0
.target sm_80
.address_size 64
.visible .entry endless() {
again:
	nanosleep.u32 1000;
	bra.uni again;
}`,
	"astray": `.version 7.0
.target sm_80
.address_size 64
.visible .entry astray() {
	.reg .b64 %rd<2>;
	mov.b64 %rd1, 16;
	st.global.b64 [%rd1], %rd1;
	ret;
}`,
}

// Library also knows the faulty kernels, as libraries.
func (f faultyExecutor) Library(ctx context.Context, index int, p gemm.Problem, library string) (exec.Kernel, error) {
	text, ok := texts[library]
	if !ok {
		return f.executor.Library(ctx, index, p, library)
	}
	d, err := f.device(index)
	if err != nil {
		return nil, err
	}
	r := &raw{device: d}
	err = d.do(func() (err error) { r.loaded, err = loadFunction(text, library); return err })
	return &runnable{device: d, problem: p, name: library, program: r}, err
}

// raw is a kernel without parameters.
type raw struct {
	loaded
	device *device
}

func (r *raw) resources() exec.Resources { return exec.Resources{} }
func (r *raw) close()                    {}
func (r *raw) bind(*operands) (func() error, error) {
	return func() error {
		return start(r.device.stream, r.function, gemmgen.Launch{GridX: 1, GridY: 1, GridZ: 1, Threads: 32})
	}, nil
}

// A kernel that never ends and one that writes where it must not cost the plugin its process and the host nothing: the
// next kernel runs in a fresh one.
func TestSurvivesKernels(t *testing.T) {
	openGPU(t)
	plugin := filepath.Join(t.TempDir(), host.Prefix+"faulty")
	copyFile(t, plugin)
	lock := filepath.Join(t.TempDir(), "plugins.lock")
	must.Get(host.Trust(t.Context(), lock, plugin))(t)
	h := host.New(host.Options{Plugins: []string{plugin}, LockFile: lock, RunTimeout: 20 * time.Second})
	t.Cleanup(func() { _ = h.Close() })
	x := must.Get(h.Executor(t.Context(), ""))(t)
	p := gemm.New(512, 512, 512)
	works := func() {
		t.Helper()
		k := must.Get(x.Compile(t.Context(), 0, p, config))(t)
		n, err := k.Check(t.Context())
		if err != nil || !n.OK() {
			t.Fatalf("%+v, %v", n, err)
		}
		runs := 0
		if err := k.Measure(t.Context(), exec.MeasureOptions{},
			func(exec.Sample) bool { runs++; return runs < 5 }); err != nil || runs != 5 {
			t.Fatalf("%d runs, %v", runs, err)
		}
		_ = k.Close()
	}
	works()
	for _, c := range []struct{ library, want string }{{"astray", "IllegalAddress"}, {"endless", "did not answer"}} {
		k, err := x.Library(t.Context(), 0, p, c.library)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		err = k.Measure(t.Context(), exec.MeasureOptions{}, func(exec.Sample) bool { return false })
		t.Logf("%s: after %.1f s: %v", c.library, time.Since(begin).Seconds(), err)
		if diag.KindOf(err) != diag.Plugin || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v", c.library, err)
		}
		works()
	}
}

func copyFile(t *testing.T, to string) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	in := must.Get(os.Open(self))(t)
	defer func() { _ = in.Close() }()
	out := must.Get(os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o700))(t)
	must.Get(io.Copy(out, in))(t)
	must.Do(t, out.Close())
}
