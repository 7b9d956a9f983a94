package export_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/export"
	"github.com/origami-gemm/origami/plugins/nvidia/gemmgen/families"
)

// kernels are one of each family, with and without splits.
func kernels(t *testing.T) map[string]export.Kernel {
	t.Helper()
	all := map[string]export.Kernel{}
	for _, f := range families.All() {
		for name, text := range map[string]string{
			"mma": "64x64x64,warps=4,stages=3,split=1", "mma ": "64x64x64,warps=4,stages=3,split=3",
			"wgmma": "64x64x64,warps=8,stages=4,split=1", "wgmma ": "64x128x64,warps=8,stages=3,split=2",
		} {
			if strings.TrimSpace(name) != f.Name() {
				continue
			}
			c := must.Get(gemm.ParseConfig(text, gemm.Config{}, f.Axes()...))(t)
			c.Kernel = f.Name()
			all[name] = export.Kernel{
				Family: f, Problem: gemm.New(200, 264, 320), Config: c, Adds: name == "mma",
				Limits: gemmgen.Limits{
					RegistersPerThread: 255, RegisterFile: 65536, RegisterGranule: 8, SharedMemory: unit.Bytes(227 << 10),
					Processors: 132, Target: f.Target(),
				},
			}
		}
	}
	for e, name := range map[gemm.Epilogue]string{
		{Bias: true, Activation: gemm.GELU}: "mma", {Bias: true}: "wgmma", {Activation: gemm.SiLU, Residual: true}: "wgmma ",
		{Scales: true}: "wgmma", {Scales: true, Bias: true, BiasType: gemm.FP32, Residual: true}: "wgmma ",
	} {
		k := all[name]
		k.Problem.Epilogue = e
		all[name+e.String()] = k
	}
	return all
}

// TestFiles: the files name the kernel's entry point, the C compiles, and Python parses.
func TestFiles(t *testing.T) {
	header := headerFolder()
	cc, noC := exec.LookPath("cc")
	python, noPython := exec.LookPath("python3")
	for name, k := range kernels(t) {
		t.Run(name, func(t *testing.T) {
			files := must.Get(k.Files())(t)
			folder, texts := t.TempDir(), map[string]string{}
			for _, f := range files {
				texts[filepath.Ext(f.Name)] = string(f.Text)
				must.Do(t, os.WriteFile(filepath.Join(folder, f.Name), f.Text, 0o600))
			}
			entry := strings.TrimSuffix(files[0].Name, ".ptx")
			must.Need(t, strings.Contains(texts[".ptx"], ".entry "+entry+"(") && len(files) == 4,
				"%d files, %s", len(files), entry)
			must.That(t, k.Config.SplitK > 1 != strings.Contains(texts[".py"], "WORKSPACE = 0 + 0"),
				"a workspace is for splits of K alone")
			for _, kind := range []string{".h", ".c", ".py"} {
				if bias := k.Problem.Epilogue.Bias; bias != strings.Contains(texts[kind], "bias") {
					t.Errorf("a bias is an argument of kernels that add one alone: %s", texts[kind])
				}
				if scales := k.Problem.Epilogue.Scales; scales != strings.Contains(texts[kind], "scale_a, ") {
					t.Errorf("scales are arguments of kernels that have them alone: %s", texts[kind])
				}
				argument := map[string]string{".h": "CUdeviceptr r,", ".c": "CUdeviceptr r,", ".py": " r, alpha=1"}[kind]
				if residual := k.Problem.Epilogue.Residual; residual != strings.Contains(texts[kind], argument) {
					t.Errorf("R is an argument of kernels that add it last alone: %s", texts[kind])
				}
			}
			if noC == nil && header != "" {
				out, err := exec.Command(cc, "-c", "-Wall", "-Wextra", "-Werror", "-I", header, "-o",
					filepath.Join(folder, "x.o"), filepath.Join(folder, entry+".c")).CombinedOutput()
				must.That(t, err == nil, "%v\n%s", err, out)
			}
			if noPython == nil {
				program := "import ast, sys; ast.parse(open(sys.argv[1]).read())"
				out, err := exec.Command(python, "-c", program, filepath.Join(folder, entry+".py")).CombinedOutput()
				must.That(t, err == nil, "%v\n%s", err, out)
			}
		})
	}
}

// headerFolder is where cuda.h is, "" if it is nowhere that `make cuda` looks.
func headerFolder() string {
	for _, folder := range []string{
		"../../../../bin/tools/cuda-headers/nvidia/cu13/include", "/usr/local/cuda/include",
	} {
		if _, err := os.Stat(filepath.Join(folder, "cuda.h")); err == nil {
			return folder
		}
	}
	return ""
}

// TestRefused: what cannot be built is an error of the user's.
func TestRefused(t *testing.T) {
	k := kernels(t)["wgmma"]
	k.Problem.K = 321 // rows that no tensor map describes
	_, err := k.Files()
	must.That(t, err != nil && strings.Contains(err.Error(), "tensor_map"), "%v", err)
}
