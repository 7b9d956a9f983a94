package tensile_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// ranged is range logic of our own making, as nested lists of [threshold, rules or kernel] in the order batch, sum, i
// and j. The thresholds are irregular, so that a level that is looked up by another index answers something else.
func ranged(random *rand.Rand, depth, kernels int) string {
	var rules []string
	most := 0
	for i := range 1 + random.IntN(4) {
		most += 1 + random.IntN(60<<i)
		rules = append(rules, fmt.Sprintf("[%d, %s]", most, inside(random, depth, kernels)))
	}
	rules = append(rules, fmt.Sprintf("[-1, %s]", inside(random, depth, kernels)))
	return "[" + strings.Join(rules, ", ") + "]"
}

func inside(random *rand.Rand, depth, kernels int) string {
	if depth == 1 {
		return fmt.Sprint(random.IntN(kernels))
	}
	return ranged(random, depth-1, kernels)
}

// samples are files of our own making that have what makes AMD's hard to read.
func samples() map[string]string {
	head := func(arch, devices string) string {
		return "- {MinimumRequiredVersion: 4.4.0}\n- some\n- " + arch + "\n- " + devices + "\n"
	}
	const problem = `- {OperationType: GEMM, DataType: 0, UseBeta: true, HighPrecisionAccumulate: false, Batched: true,
  TotalIndices: 4, NumIndicesC: 3, IndexAssignmentsA: [0, 3, 2], IndexAssignmentsB: [1, 3, 2]}
`
	const kernels = `- - &one {MacroTile0: 64, MacroTile1: 64, DepthU: 8, PrefetchGlobalRead: true, WorkGroup: [16, 16, 1],
     AssertStrideAEqual: {0: 1}, Ideals: {'32': 345.0}}
  - *one
  - {<<: *one, MacroTile0: 128, PrefetchGlobalRead: 2, LdcEqualsLdd: true, Scale: 1.0e-07}
- [2, 3, 0, 1]
`
	random := rand.New(rand.NewPCG(3, 4))
	files := map[string]string{}
	for i := range 18 {
		files[fmt.Sprintf("ranges_%02d", i)] = head("gfx900", "[6862, 'Device 687f', Vega]") + problem + kernels +
			"- []\n- " + ranged(random, 4, 3) + "\n"
	}
	files["four_sizes"] = head("gfx906", "[Device 66a7]") + problem + kernels +
		"- [[[64, 32, 1, 128], [2, 100.5]]]\n- null\n"
	files["eight_sizes"] = head("gfx942", "[Device 74a1]") + problem + kernels +
		"- [[[64, 32, 1, 128, 64, 64, 64, 32], [2, 0.0]]]\n- null\n- null\n- null\n- DeviceEfficiency\n- Equality\n"
	files["no_speed_and_empty_tail"] = head("gfx908", "[Device 738c]") + problem + kernels +
		"- [[[64, 32, 1, 128], [0, 0.0]], [[64, 32, 1, 256], [1, 1.0e-06]]]\n- null\n- [null, DeviceEfficiency]\n"
	files["parameter_twice"] = strings.Replace(files["four_sizes"], "LdcEqualsLdd: true",
		"LdcEqualsLdd: false, LdcEqualsLdd: true", 1)
	files["five_sizes_refused"] = head("gfx906", "[Device 66a7]") + problem + kernels +
		"- [[[64, 32, 1, 128, 7], [2, 100.5]]]\n- null\n"
	files["convolution_refused"] = strings.Replace(files["four_sizes"], "GEMM", "ConvolutionForward", 1)
	files["initial_strides_refused"] = strings.Replace(files["four_sizes"], "GEMM", "TensorContraction", 1)
	files["twice_refused"] = strings.Replace(files["four_sizes"], "DataType: 0,", "DataType: 0, DataType: 4,", 1)
	return files
}

var (
	withLine = regexp.MustCompile(`^[^:]+\.yaml:\d+: `)
	order    = []int{logic.B, logic.L, logic.I, logic.J}
)

// checkFile reads one file, looks sizes up as its text says, and reads what is written. It returns whether the file
// was refused, and why.
func checkFile(t *testing.T, name string, text []byte) (ranges bool, refused string) {
	t.Helper()
	l, err := tensile.Read(name, text)
	if err != nil {
		must.That(t, withLine.MatchString(filepath.Base(err.Error())) || strings.Contains(err.Error(), name+":"),
			"refused without a line: %v", err)
		return false, err.Error()
	}
	var parts []any
	if err := yaml.Unmarshal(text, &parts); err != nil { // a mapping, or a key twice
		return false, ""
	}
	rules := rangesOf(parts)
	must.Equal(t, (rules == nil), l.Leaves() == 0, name, l.Leaves(), rules != nil)
	if rules == nil {
		return false, ""
	}
	random := rand.New(rand.NewPCG(1, 2))
	thresholds := map[int][]int{}
	collect(rules, 0, thresholds)
	for range 2000 {
		size := logic.Size{}
		for depth, index := range order {
			// Sizes at the thresholds and beside them, where a wrong comparison shows.
			list := thresholds[depth]
			size[index] = max(1, list[random.IntN(len(list))]+random.IntN(3)-1)
		}
		got, layer := l.LookupOther(size)
		want := transcribed(rules, size, 0)
		if want < 0 && layer == logic.LayerModel {
			continue
		}
		must.Need(t, got == want && layer == logic.LayerRange,
			"%s: %v is answered by kernel %d of %s, and by the file's rules %d", name, size, got, layer, want)
	}
	return true, ""
}

// rangesOf returns the range logic of a list: the part behind the exact sizes.
func rangesOf(parts []any) []any {
	for i, p := range parts {
		if _, ok := p.(map[string]any); ok && i >= 3 && i+4 < len(parts) { // the problem type
			rules, _ := parts[i+4].([]any)
			return rules
		}
	}
	return nil
}

// transcribed looks a size up in nested lists by Tensile's rule, "size <= threshold" with −1 for all that is left. It
// returns −1 if nothing holds.
func transcribed(rules []any, size logic.Size, depth int) int {
	for _, r := range rules {
		pair := r.([]any)
		if most := pair[0].(int); most != -1 && size[order[depth]] > most {
			continue
		}
		if kernel, ok := pair[1].(int); ok {
			return kernel
		}
		return transcribed(pair[1].([]any), size, depth+1)
	}
	return -1
}

func collect(rules []any, depth int, into map[int][]int) {
	for _, r := range rules {
		pair := r.([]any)
		into[depth] = append(into[depth], pair[0].(int))
		if inner, ok := pair[1].([]any); ok {
			collect(inner, depth+1, into)
		}
	}
}

func TestSamplesOfHardFiles(t *testing.T) {
	ranges := 0
	for name, text := range samples() {
		has, refused := checkFile(t, name+".yaml", []byte(text))
		must.Equal(t, (refused != ""), strings.HasSuffix(name, "refused"), name, refused)
		if has {
			ranges++
		}
	}
	must.Equal(t, ranges, 18)
	// The last of two values of a parameter counts, a boolean stays one, and 0 is no speed.
	l := read(t, samples()["parameter_twice"])
	if p := l.Kernels[2].Parameters; p["LdcEqualsLdd"] != true || p["PrefetchGlobalRead"] != 2 || p["MacroTile1"] != 64 ||
		l.Kernels[0].Parameters["PrefetchGlobalRead"] != true {
		t.Error(p, l.Kernels[0].Parameters)
	}
	l = read(t, samples()["no_speed_and_empty_tail"])
	must.That(t, l.Exact[0].Speed == 0 && l.Unit == "" &&
		l.Exact[1].Speed == 1e-6, "%+v", l.Exact)
}

// TestPyYAMLReadsEqual exports logics as lists, and lets Python compare them with the files.
func TestPyYAMLReadsEqual(t *testing.T) {
	if exec.Command("python3", "-c", "import yaml").Run() != nil {
		t.Skip("there is no PyYAML")
	}
	files := samples()
	files["classic"], files["unbatched"] = classic, unbatched
	compareByPython(t, t.TempDir(), files)
}

func compareByPython(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		l, err := tensile.Read(name, []byte(text))
		if err != nil {
			continue // the refused ones
		}
		out := must.Get(l.Classic())(t)
		for suffix, b := range map[string][]byte{".in": []byte(text), ".out": out} {
			must.Do(t, os.WriteFile(filepath.Join(folder, name+suffix), b, 0o600))
		}
	}
	const program = `
import glob, sys, yaml
loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
read = lambda name: yaml.load(open(name), loader)
files = sorted(glob.glob(sys.argv[1] + "/*.in"))
for name in files:
    a, b = read(name), read(name[:-3] + ".out")
    if len(a) == 8: b = b[:3] + b[4:]  # files of 2017 have no devices
    if repr(a) != repr(b) and a != b:
        for x, y in zip(a, b):
            if x != y: print(name, "wants", repr(x)[:300], "gets", repr(y)[:300])
        if len(a) != len(b): print(name, "has", len(a), "parts, and", len(b), "come back")
print(len(files), "files")
`
	out, err := exec.Command("python3", "-c", program, folder).CombinedOutput()
	must.That(t, err == nil && bytes.HasSuffix(out, []byte(" files\n")) && bytes.Count(out, []byte("\n")) == 1,
		"%v\n%s", err, out)
}

// TestAllFilesOfAMD reads every file below the folder that the variable names, such as a checkout of ROCm/Tensile: each
// is read or refused with its line, range logic answers as its text says, and Python reads equal what is exported.
func TestAllFilesOfAMD(t *testing.T) {
	folder := os.Getenv("ORIGAMI_AMD_LOGIC")
	if folder == "" {
		t.Skip("ORIGAMI_AMD_LOGIC names no folder")
	}
	named := regexp.MustCompile(`_C[a-z]+_A[a-z]+_B[a-z]+.*\.yaml$`)
	read, ranges, why := 0, 0, map[string]int{}
	small := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !named.MatchString(path) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		has, refused := checkFile(t, path, text)
		switch {
		case refused != "":
			why[regexp.MustCompile(`^\S+: `).ReplaceAllString(refused, "")]++
		case has:
			ranges++
			read++
		default:
			read++
		}
		if len(text) < 150_000 { // Python takes seconds for larger ones
			small[fmt.Sprintf("%05d_%s", len(small), filepath.Base(path))] = string(text)
		}
		return nil
	})
	must.Do(t, err)
	t.Logf("%d read, %d of them with ranges", read, ranges)
	for _, reason := range slices.Sorted(func(yield func(string) bool) {
		for r := range why {
			if !yield(r) {
				return
			}
		}
	}) {
		t.Logf("%d refused: %s", why[reason], reason)
	}
	if exec.Command("python3", "-c", "import yaml").Run() == nil {
		compareByPython(t, t.TempDir(), small)
	}
}
