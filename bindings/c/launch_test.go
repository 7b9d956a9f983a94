package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// launcher is the program testdata/launch.c over a driver without a GPU.
type launcher struct{ folder, log string }

// buildLauncher builds the driver and the program beside the library.
func buildLauncher(t *testing.T, folder string) launcher {
	t.Helper()
	compiler := compilerName()
	must.Do(t, os.MkdirAll(filepath.Join(folder, "driver"), 0o755))
	run(t, exec.Command(compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,libcuda.so.1",
		"-o", filepath.Join(folder, "driver", "libcuda.so.1"), "testdata/fakecuda.c"))
	run(t, exec.Command(compiler, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I.",
		"-o", filepath.Join(folder, "launch"), "testdata/launch.c",
		"-L"+folder, "-lorigami", "-lpthread", "-Wl,-rpath,"+folder))
	return launcher{folder, filepath.Join(t.TempDir(), "log")}
}

// run returns what the program prints, and what the driver was asked since the last run.
func (l launcher) run(t *testing.T, driver bool, environment []string, args ...string) (out string, calls []string) {
	t.Helper()
	c := exec.Command(filepath.Join(l.folder, "launch"), args...)
	c.Env = append(os.Environ(), environment...)
	c.Env = append(c.Env, "FAKE_LOG="+l.log)
	if driver {
		c.Env = append(c.Env, "LD_LIBRARY_PATH="+filepath.Join(l.folder, "driver"))
	}
	out = strings.TrimSpace(string(run(t, c)))
	log, err := os.ReadFile(l.log)
	must.Need(t, err == nil || os.IsNotExist(err), "%v", err)
	_ = os.Remove(l.log)
	return plain(t, out), strings.Split(strings.TrimSpace(string(log)), "\n")
}

// plain writes a status with an error in JSON as the status with the error's line.
func plain(t *testing.T, out string) string {
	t.Helper()
	status, text, _ := strings.Cut(out, " ")
	if !strings.HasPrefix(text, "{") {
		return out
	}
	var f ask.Failure
	err := json.Unmarshal([]byte(text), &f)
	must.Need(t, err == nil, "%s: %v", out, err)
	line := f.Error.What
	if f.Error.Where != "" {
		line = f.Error.Where + ": " + line
	}
	if f.Error.Fix != "" {
		line += "; " + f.Error.Fix
	}
	return status + " " + line
}

// count counts the calls that begin with a word.
func count(calls []string, word string) (n int) {
	for _, c := range calls {
		if strings.HasPrefix(c, word) {
			n++
		}
	}
	return n
}

// launches loads and launches kernels on a driver without a GPU, which notes what it is asked and fails when told to.
func launches(t *testing.T, folder string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("kernels are launched on Linux alone")
	}
	l := buildLauncher(t, folder)
	t.Run("cases", l.cases)
	t.Run("once", l.once)
	t.Run("failures", l.failures)
	t.Run("fork", func(t *testing.T) {
		out, _ := l.run(t, true, nil, "fork")
		must.That(t, out == "ok", "%v", out)
	})
}

func (l launcher) cases(t *testing.T) {
	out, calls := l.run(t, true, nil, "cases")
	must.Need(t, out == "ok", "%v", out)
	// Five launches of two plans. A map is encoded once for an address and a shape: three of A, one of B, or two if the
	// plans' tiles differ, two of C, if the copy engine stores C.
	launches, encodes := count(calls, "launch "), count(calls, "encode ")
	if launches != 5 || encodes < 4 || encodes > 7 || count(calls, "retain") != 1 {
		t.Errorf("%d launches, %d maps:\n%s", launches, encodes, strings.Join(calls, "\n"))
	}
	if !strings.Contains(strings.Join(calls, "\n"), "encode 9 0x100000 4096,512,1 8192,8192 64,") {
		t.Errorf("A of 512 rows is not described:\n%s", strings.Join(calls, "\n"))
	}
}

// once: threads that load the same kernel compile it once.
func (l launcher) once(t *testing.T) {
	out, calls := l.run(t, true, nil, "load", "0", "8")
	must.That(t, out == "ok" && count(calls, "load") == 1, "%s: %q", out, calls)
}

// failures: each is one sentence that says what failed and where, and the status of a device.
func (l launcher) failures(t *testing.T) {
	if out, _ := l.run(t, false, []string{"LD_LIBRARY_PATH=/nonexistent"}, "cases"); out != "ok" &&
		!strings.HasPrefix(out, "4 there is no NVIDIA driver: ") && !strings.HasPrefix(out, "4 CUDA device 0: ") {
		t.Error(out)
	}
	for environment, want := range map[string]string{
		"FAKE_FAIL=cuInit 100":                 "4 the NVIDIA driver does not start: CUDA_ERROR_NO_DEVICE (100)",
		"FAKE_CC=80":                           "4 CUDA device 0: it is NVIDIA H200, an sm80, and the kernel is for sm90",
		"FAKE_FAIL=cuDevicePrimaryCtxRetain 2": "4 CUDA device 0: opening it: CUDA_ERROR_OUT_OF_MEMORY (2)",
		"FAKE_FAIL=cuModuleLoadDataEx 2":       "4 CUDA device 0: compiling a kernel: CUDA_ERROR_OUT_OF_MEMORY (2)",
		"FAKE_FAIL=cuModuleLoadDataEx 218": "4 CUDA device 0: compiling a kernel: ptxas application ptx input, line 7; " +
			"fatal: CUDA_ERROR (218)",
		"FAKE_FAIL=cuModuleGetFunction 500":  "4 CUDA device 0: loading a kernel: CUDA_ERROR (500)",
		"FAKE_FAIL=cuFuncSetAttribute 1":     "4 CUDA device 0: loading a kernel: CUDA_ERROR (1)",
		"FAKE_FAIL=cuFuncGetAttribute 1":     "4 CUDA device 0: loading a kernel: CUDA_ERROR (1)",
		"FAKE_LOCAL=1600":                    "4 CUDA device 0: its driver compiles wgmma_",
		"FAKE_FAIL=cuTensorMapEncodeTiled 1": "4 CUDA device 0: describing a matrix: CUDA_ERROR (1)",
		"FAKE_FAIL=cuLaunchKernel 2":         "4 CUDA device 0: launching a kernel: CUDA_ERROR_OUT_OF_MEMORY (2)",
	} {
		out, calls := l.run(t, true, []string{environment}, "cases")
		must.That(t, strings.HasPrefix(out, want) && !strings.Contains(out, "\n"), "%s: %s, want %s", environment, out, want)
		if (strings.Contains(environment, "Func") || strings.Contains(environment, "LOCAL")) && count(calls, "unload") == 0 {
			t.Errorf("%s: a module that is not used stays loaded", environment)
		}
	}
	if out, calls := l.run(t, true, []string{"FAKE_LOCAL=1600"}, "load", "0", "1"); count(calls, "unload") != 1 ||
		!strings.HasSuffix(out, " with 1600 bytes of local memory per thread, which makes it slow; "+
			"use another configuration or another driver") {
		t.Error(out, calls)
	}
	if out, _ := l.run(t, true, []string{"FAKE_LOCAL=16"}, "load", "0", "1"); out != "ok" {
		t.Errorf("a kernel with a few spilled registers: %s", out)
	}
	if out, _ := l.run(t, true, nil, "load", "3", "1"); !strings.HasPrefix(out, "4 CUDA device 3: ") {
		t.Error(out)
	}
}
