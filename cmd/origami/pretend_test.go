package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/internal/testing/exectest"
)

// pretender is an executor plugin that pretends to have an RTX 4090. Running one of its tiles loses the device
// context. Compiling another ends the process. A third one replaces the plugin's file and ends the process if the file
// "replace" in the home folder names it.
type pretender struct{}

func (pretender) Manifest() exec.Manifest { return exec.Manifest{Name: "pretend", Version: "0.0.7"} }

func (pretender) Open(context.Context) (exec.Executor, error) {
	if d, ok := pretended(); ok {
		return &exectest.Executor{Device: d, Noise: 0.01, Seed: 3, Time: nearRoof,
			LibraryTime: func(p gemm.Problem) unit.Seconds { return nearRoof(p, gemm.Config{}) }}, nil
	}
	return &exectest.Executor{
		Others: others(),
		Noise:  0.01, Seed: 3,
		Device: exec.Device{Name: "NVIDIA GeForce RTX 4090", Arch: "sm89", Kernels: []string{"triton"},
			Libraries: []string{"cublas", "cublas-best"}},
		Time: func(p gemm.Problem, c gemm.Config) unit.Seconds {
			if p.M != nearM {
				return 0
			}
			return unit.Seconds(1e-4 * (1 + 0.004*float64(c.NumStages)))
		},
		Fate: func(_ gemm.Problem, c gemm.Config) exectest.Fate {
			switch [3]int{c.BlockM, c.BlockN, c.BlockK} {
			case [3]int{32, 32, 64}:
				return exectest.Crash
			case [3]int{64, 32, 64}:
				os.Exit(7)
			case [3]int{64, 64, 64}:
				replace()
			}
			return exectest.Fine
		},
	}, nil
}

// pretended is another device in the place of the RTX 4090, whose kernels are near a roofline: the one that the file
// "gpu" in the home folder describes.
func pretended() (d exec.Device, ok bool) {
	text, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), "gpu"))
	return d, err == nil && json.Unmarshal(text, &d) == nil
}

// nearRoof is the time of a kernel on a device with 600 TFLOP/s and 4 TB/s. Kernels differ by a tenth at most, by the
// lowest digits of their sizes.
func nearRoof(p gemm.Problem, c gemm.Config) unit.Seconds {
	bytes := float64(p.M*p.K+p.K*p.N+p.M*p.N) * float64(p.DType.Bits()) / 8
	own := 1 + float64((p.M+3*p.N+5*p.K)/16%7+c.NumStages)/100
	return unit.Seconds(5e-6 + own*max(p.Flops()/600e12*float64(p.DType.Bits())/16, bytes/4e12))
}

// nearM are the rows of problems at which kernels differ by their stages alone, by 0.4 % each.
const nearM = 4000

// others is how many more GPUs there are: the number in the file "gpus" in the home folder, less one.
func others() int {
	text, err := os.ReadFile(filepath.Join(os.Getenv("HOME"), "gpus"))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return max(0, n-1)
}

// replace puts another file in the place of the plugin's, once, and ends the process.
func replace() {
	order := filepath.Join(os.Getenv("HOME"), "replace")
	path, err := os.ReadFile(order)
	if err != nil || os.Remove(order) != nil {
		return
	}
	plugin := strings.TrimSpace(string(path))
	if os.Rename(plugin, plugin+".good") != nil || os.WriteFile(plugin, []byte("another program"), 0o700) != nil {
		os.Exit(8)
	}
	os.Exit(9)
}
