//go:build !race

// Decoding in one goroutine, which the race detector would only slow down tenfold.

package data_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// The shipped data set reads whole, and says what the files say.
func TestH200Triton(t *testing.T) {
	d := readEmbedded(t, data.FS, "h200-triton")
	if len(d.Problems()) != 41 {
		t.Errorf("%d problems", len(d.Problems()))
	}
	if d.Arch != "sm90" || d.Device != "h200" || d.WarmL2 || !slices.Equal(d.Libraries(), []string{"cublas"}) {
		t.Errorf("%+v with libraries %v", d.Conditions, d.Libraries())
	}
	p, c := gemm.New(64, 64, 64), gemm.Config{BlockM: 256, BlockN: 256, BlockK: 16, NumStages: 2, NumWarps: 8, GroupM: 8,
		SplitK: 1, Kernel: "triton"}
	m, ok := d.Find(p, c)
	must.That(t, ok && m.Median == 0.026768e-3 && m.Resources.Registers != 0 && m.Resources.SharedMemory != 0,
		"%s of %s: %+v", c, p, m)
	// 256 × 256 tiles of depth 128 in two stages do not fit the shared memory: they were not measured.
	c.BlockK = 128
	m, ok = d.Find(p, c)
	must.That(t, !ok, "a configuration that cannot be built: %+v", m)
	m, ok = d.FindLibrary(p, "cublas")
	must.That(t, ok && m.Median > 0, "the library: %+v", m)
}

// The sweep of the mma family reads whole: every candidate of every size was built, right, and timed.
func TestH200MMA(t *testing.T) {
	d := readEmbedded(t, data.Large, "h200-mma")
	if len(d.Problems()) != 23 || d.Len() < 23*(821+2) {
		t.Errorf("%d problems, %d measurements", len(d.Problems()), d.Len())
	}
	c := gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, NumStages: 3, NumWarps: 8, GroupM: 16, SplitK: 1,
		Kernel: "mma"}
	m, ok := d.Find(gemm.New(8192, 8192, 8192), c)
	must.That(t, ok && m.Status == dataset.OK && m.Numerics != nil && m.Numerics.OK() && m.Numerics.Checked == 8192*8192 &&
		len(m.Samples) >= 2 && m.Environment != nil && m.Environment.Driver != "", "%s at 8192³: %+v", c, m)
}

// readEmbedded reads a data set that programs have.
func readEmbedded(t *testing.T, all fs.FS, name string) *dataset.Dataset {
	t.Helper()
	files := must.Get(fs.Sub(all, name))(t)
	return read(t, name, files)
}

// The sweeps have every configuration of their list on every problem of their list, and all results were right.
func TestSweeps(t *testing.T) {
	files, err := filepath.Glob("sweeps/*/*/dataset.json")
	must.Need(t, err == nil && len(files) >= 49, "%d sweeps, %v", len(files), err)
	var whole []string // the other sets have several lists, or more configurations at some sizes
	for _, set := range []string{"builtin", "builtin-rows", "bf16-*", "rows", "tail"} {
		found := must.Get(filepath.Glob("h200-wgmma/" + set + "/*/dataset.json"))(t)
		whole = append(whole, found...)
	}
	must.Need(t, len(whole) == 12, "%d sweeps", len(whole))
	files = append(files, whole...)
	for _, file := range files {
		t.Run(strings.TrimPrefix(filepath.Dir(file), "sweeps/"), func(t *testing.T) { checkSweep(t, filepath.Dir(file)) })
	}
}

// checkSweep checks a data set PREFIX-LIST in a folder with LIST.csv and the list of configurations.
func checkSweep(t *testing.T, folder string) {
	t.Helper()
	d := read(t, folder, os.DirFS(folder))
	set := filepath.Dir(folder)
	prefix, list, _ := strings.Cut(filepath.Base(folder), "-")
	kernel, configs := "triton", "configs.csv"
	switch {
	case filepath.Base(set) == "nested":
		kernel = "mma"
	case filepath.Base(set) == "warps":
		kernel, configs = "mma", list+"-configs.csv"
	case prefix != "h200":
		kernel, configs = prefix, prefix+"-configs.csv"
	}
	problems := rows(t, filepath.Join(set, list+".csv"))
	parts := map[string]int{"sweeps/warps/mma-fp16": 187, "sweeps/warps/mma-fp32": 83, "sweeps/warps/mma-drawn": 44,
		"sweeps/odd-live/h200-test": 46, "sweeps/odd-live/h200-second-test": 36}
	want, ok := parts[filepath.ToSlash(folder)] // of their lists, these were measured; see README.md
	if !ok {
		want = rows(t, filepath.Join(set, configs))
	}
	if d.Kernel != kernel || d.WarmL2 || len(d.Problems()) != problems {
		t.Errorf("%+v, %d problems, want %d", d.Conditions, len(d.Problems()), problems)
	}
	for _, p := range d.Problems() {
		right := 0
		for _, m := range d.Sweep(p) {
			fits := m.Status != dataset.NotBuilt // a list is for several alignments, and one kernel does not fit for all
			if m.Library == "" && (!fits || m.Status == dataset.OK && m.Numerics.OK() && m.Resources.Registers > 0) {
				right++
			}
		}
		if right < want { // some have kernels that were made anew for other alignments
			t.Errorf("%s has %d right and timed configurations, want %d", p, right, want)
		}
	}
}

// rows counts the rows of a CSV file below its header.
func rows(t *testing.T, path string) int {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	return strings.Count(string(text), "\n") - 1
}
