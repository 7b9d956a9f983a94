package host_test

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/conformance"
	"github.com/origami-gemm/origami/sdk/host"
)

// Plugins in Python (sdk/python) under the real host. Their packages are in the folder of `make python-test`, or
// python3 finds them.

// The meaning of num_stages in sdk/python/tests/toy.py.
const (
	toyWell  = 2
	toyWrong = iota + 9
	toyRefused
	toyLost
	toyCrash
	toyHang
	toyBug
	toyNoDevice
	toyLongLog
	toySlow
)

// pythonPlugin writes a plugin's file from a source with a main part, and returns its path.
func pythonPlugin(t testing.TB, name, source string) string {
	t.Helper()
	root := must.Get(filepath.Abs("../.."))(t)
	python, err := osexec.LookPath("python3")
	// The plugins set their paths themselves: a host does not pass on PYTHONPATH.
	paths := []string{filepath.Join(root, "sdk/python"), filepath.Join(root, "bin/tools/python")}
	lines := fmt.Sprintf("#!%s\nimport sys\nsys.path[:0] = %s\n", python,
		strings.ReplaceAll(fmt.Sprintf("[%q, %q]", paths[0], paths[1]), `\\`, `\`))
	if err == nil {
		var out []byte
		if out, err = osexec.Command(python, "-c",
			lines+"import grpc, origami_gemm_plugin").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		must.Need(t, os.Getenv("ORIGAMI_REQUIRE_PYTHON") == "", "%v", err)
		t.Skipf("needs python3 with grpcio (make python-test): %v", err)
	}
	path := filepath.Join(t.TempDir(), host.Prefix+name)
	must.Do(t, os.WriteFile(path, []byte(lines+source), 0o755))
	return path
}

func toySource(t testing.TB) string {
	t.Helper()
	source := must.Get(os.ReadFile("../python/tests/toy.py"))(t)
	return string(source)
}

// pythonHost returns a host that trusts a plugin.
func pythonHost(t testing.TB, path string, o host.Options) *host.Host {
	t.Helper()
	o.Plugins, o.LockFile = []string{path}, filepath.Join(t.TempDir(), "plugins.lock")
	must.Get(host.Trust(t.Context(), o.LockFile, path))(t)
	h := host.New(o)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func toy(t testing.TB, o host.Options) exec.Executor {
	t.Helper()
	h := pythonHost(t, pythonPlugin(t, "toy", toySource(t)), o)
	x := must.Get(h.Executor(t.Context(), "toy"))(t)
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func toyConfig(stages int) gemm.Config {
	return gemm.Config{BlockM: 64, BlockN: 32, BlockK: 16, GroupM: 8, NumWarps: 4, NumStages: stages, SplitK: 1,
		Kernel: "toy"}
}

func TestPythonExecutor(t *testing.T) {
	var log syncBuffer
	x := toy(t, host.Options{Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: &log})})
	ctx := t.Context()

	devices := must.Get(x.Devices(ctx))(t)
	d := devices[0]
	must.That(t, len(devices) == 1 && d.Name == "Toy ™" && d.Arch == "toy1" &&
		d.Attributes["clock"] == 1.5e9 && len(d.Attributes) == 2 &&
		d.Kernels[0] == "toy" && d.Libraries[0] == "toylib", "%+v", devices)
	e, err := x.Environment(ctx, 0)
	must.That(t, err == nil && e.Time.UnixNano() == 1_700_000_000_000_000_001 && e.Driver == "driver 1" &&
		e.PowerWatts == 300.5 &&
		e.TemperatureC == -3.5 &&
		len(e.ThrottleReasons) == 1, "%+v, %v", e, err)

	k := must.Get(x.Compile(ctx, 0, gemm.New(100, 50, 30), toyConfig(toyWell)))(t)
	r := k.Resources()
	must.That(t, r == (exec.Resources{Registers: 128, SpillBytes: 8, SharedMemory: 4096, CTAsPerSM: 2}), "%+v", r)
	n, err := k.Check(ctx)
	must.That(t, err == nil && n.OK() && n.Checked == 5000 && n.Reference == "nothing", "%+v, %v", n, err)
	var samples []exec.Sample
	err = k.Measure(ctx, exec.MeasureOptions{WarmL2: true, Warmup: 3}, func(s exec.Sample) bool {
		samples = append(samples, s)
		return len(samples) < 4
	})
	must.That(t, err == nil && len(samples) == 4 && samples[0].Clock == 1e9 && samples[0].Time == 64e-3+1e-9*4,
		"%v, %v", samples, err)
	err = k.Close()
	must.That(t, err == nil, "%v", err)
	_, err = k.Check(ctx)
	must.That(t, errors.Is(err, exec.ErrKernelLost), "a released kernel: %v", err)
	err = x.Close()
	must.That(t, err == nil, "%v", err)
	for _, line := range []string{"a line that is no handshake", "closed 64x32x16 w4 s2 g8"} {
		must.That(t, strings.Contains(log.String(), line), "the log lacks %q:\n%s", line, &log)
	}
}

// The toy and the README's example pass the conformance suite for executors.
func TestPythonConformance(t *testing.T) {
	for name, source := range map[string]string{"toy": toySource(t), "sleepy": readmeExample(t)} {
		conn := must.Get(pythonHost(t, pythonPlugin(t, name, source), host.Options{}).Connection(t.Context(), name))(t)
		conformance.Run(t.Context(), name, conn, conformance.ExecutorChecks(), conformance.Options{},
			func(r conformance.Result) {
				must.That(t, !r.Failed() && (r.Skipped == "" || r.Name == "libraries"),
					"%s: %s: %v %s", name, r.Name, r.Findings, r.Skipped)
			})
	}
}

func TestPythonExceptions(t *testing.T) {
	x := toy(t, host.Options{RunTimeout: 3 * time.Second})
	for _, c := range []struct {
		name   string
		device int
		stages int
		kind   diag.Kind
		says   string
	}{
		{"an input error", 0, toyRefused, diag.Input,
			"toy: 64x32x16 w4 s11 g8 on 100x50x30 bf16 batch 2 trans-a trans-b " +
				"does not build; take another"},
		{"of the device", 5, toyWell, diag.Input, "toy: there is no device 5; use 0"},
		{"a long log", 0, toyLongLog, diag.Input, "ptxas says äöü ptxas says"},
		{"a lost context", 0, toyLost, diag.Plugin, "an illegal address"},
		{"a lost device", 0, toyNoDevice, diag.Device, "the device fell off the bus"},
		{"a mistake", 0, toyBug, diag.Internal, "ZeroDivisionError: a mistake"},
		{"a crash", 0, toyCrash, diag.Plugin, "it died during Check (exit status 3)"},
		{"a hang", 0, toyHang, diag.Plugin, "it did not answer Check within 3s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := gemm.New(100, 50, 30)
			p.DType, p.Batch = gemm.BF16, 2
			p.SetTrans(true, true)
			k, err := x.Compile(t.Context(), c.device, p, toyConfig(c.stages))
			if err == nil {
				_, err = k.Check(t.Context())
			}
			if err == nil || diag.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v (kind %v), want kind %v and %q", err, diag.KindOf(err), c.kind, c.says)
			}
			// After any failure the next call works, in the same process or a new one.
			k = must.Get(x.Compile(t.Context(), 0, p, toyConfig(toyWrong)))(t)
			n, err := k.Check(t.Context())
			must.That(t, err == nil && !n.OK() && n.Wrong == 7, "%+v, %v", n, err)
		})
	}
}

// readmeExample is the plugin in sdk/python/README.md.
func readmeExample(t testing.TB) string {
	t.Helper()
	text := must.Get(os.ReadFile("../python/README.md"))(t)
	_, code, _ := strings.Cut(string(text), "```python\n")
	code, _, _ = strings.Cut(code, "```")
	return code
}

func TestPythonPluginThatCannotImport(t *testing.T) {
	path := pythonPlugin(t, "broken", "import nothing_of_that_name\n")
	for _, p := range pluginsOf(t, pythonHost(t, path, host.Options{})) {
		must.That(t, p.State == host.Error && strings.Contains(p.Reason, "No module named 'nothing_of_that_name'"), "%+v", p)
	}
}

// The operating system ends the children of a host. In addition a plugin ends when its standard input ends.
func TestPythonPluginEndsWithItsInput(t *testing.T) {
	path := pythonPlugin(t, "toy", toySource(t))
	cmd := osexec.Command(path)
	cmd.Env = append(os.Environ(), "ORIGAMI_PLUGIN=6d9b3c5e1f8247a0b4e2c7d15a90f863", "ORIGAMI_PLUGIN_WATCH=stdin")
	stdin := must.Get(cmd.StdinPipe())(t)
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	line := make([]byte, 512)
	n, _ := stdout.Read(line)
	if parts := strings.Split(string(line[:n]), "|"); len(parts) != 5 || parts[0] != "1" || parts[1] != "2" ||
		parts[2] != "unix" || parts[4] != "grpc\n" {
		t.Errorf("the handshake is %q", line[:n])
	}
	_ = stdin.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		must.That(t, err == nil, "%v", err)
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("it lives on")
	}
}
