package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// build builds the library and the command line once for the tests that compare them, and returns the folder. Without
// a C compiler it skips the test.
func build(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath(compilerName())
	if err != nil {
		t.Skipf("no C compiler: %v", err)
	}
	folder := t.TempDir()
	library := exec.Command("go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags", "-s -w",
		"-o", filepath.Join(folder, "liborigami.so"), ".")
	library.Env = append(os.Environ(), "CGO_ENABLED=1")
	run(t, library)
	run(t, exec.Command("go", "build", "-trimpath", "-o", filepath.Join(folder, "origami"), "../../cmd/origami"))
	for _, program := range []string{"ask", "misuse", "fork"} {
		run(t, exec.Command(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L", "-I.",
			"-o", filepath.Join(folder, program), "testdata/"+program+".c",
			"-L"+folder, "-lorigami", "-lpthread", "-lm", "-Wl,-rpath,"+folder))
	}
	return folder
}

func compilerName() string {
	if name := os.Getenv("CC"); name != "" {
		return name
	}
	return "gcc"
}

// run runs a command that must succeed, and returns its output.
func run(t *testing.T, c *exec.Cmd) []byte {
	t.Helper()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", c, err, out, stderr.Bytes())
	}
	return out
}

// TestLibrary builds the library once and uses it from C and from Python.
func TestLibrary(t *testing.T) {
	folder := build(t)
	t.Run("misuse", func(t *testing.T) {
		out := strings.TrimSpace(string(run(t, exec.Command(filepath.Join(folder, "misuse")))))
		must.That(t, out == "ok", "%v", out)
	})
	t.Run("fork", func(t *testing.T) { run(t, exec.Command(filepath.Join(folder, "fork"))) })
	t.Run("launch", func(t *testing.T) { launches(t, folder) })
	sameAsCommandLine(t, folder)
	pythonBinding(t, folder)
}

// sameAsCommandLine checks that C and the command line give the same bits, for every architecture and kernel family: a
// third of the pairs, and all with ORIGAMI_TEST_ALL=1.
func sameAsCommandLine(t *testing.T, folder string) {
	t.Helper()
	problems := []gemm.Problem{
		gemm.New(4096, 4096, 4096), gemm.New(1, 1, 1), gemm.New(100, 3000, 777), gemm.New(65536, 16, 128),
		gemm.New(8192, 8192, 8192), gemm.New(16, 14336, 4096),
	}
	for _, p := range problems[:3] {
		for trans := range 3 {
			p.SetTrans(trans&1 == 0, trans&2 == 0)
			p.DType, p.Batch = gemm.BF16, 1+trans
			problems = append(problems, p)
		}
	}
	padded := gemm.New(1000, 3000, 777)
	padded.LDA, padded.LDB, padded.LDC, padded.Out = 784, 3008, 3000, gemm.FP16
	padded.AlignA, padded.AlignB, padded.AlignC = 16, 16, 16
	single, blocks, grouped := gemm.New(4096, 4096, 4096), gemm.New(4096, 4096, 4096), gemm.New(1, 4096, 2048)
	single.DType, single.Out = gemm.FP32, 0
	blocks.DType, blocks.Out = gemm.FP8, gemm.BF16
	blocks.SetTrans(false, true)
	groups := must.Get(gemm.NewGroups(120, 33, 0, 512))(t)
	grouped.SetGroups(groups)
	experts := grouped
	experts.DType, experts.Out = gemm.BF16, gemm.BF16
	experts.SetTrans(false, true)
	problems = append(problems, padded, single, blocks, grouped, experts)
	all := must.Get(providers())(t)
	for _, provider := range all {
		for i, a := range provider.Manifest().Archs {
			for j, kernel := range a.Kernels {
				if (i+j)%3 != 0 && os.Getenv("ORIGAMI_TEST_ALL") != "1" {
					continue
				}
				t.Run(a.ID+" "+kernel, func(t *testing.T) {
					opened := must.Get(provider.Open(t.Context(), arch.OpenRequest{Arch: a.ID, Kernel: kernel}))(t)
					request := selector.Request{Space: arch.Space{Kernel: kernel}, Top: 1}
					asked := slices.DeleteFunc(slices.Clone(problems), func(p gemm.Problem) bool {
						_, err := selector.RankOne(t.Context(), opened, p, request)
						return err != nil // it lacks the type, or no kernel fits
					})
					must.Need(t, len(asked) != 0, "it answers none of the problems")
					sameAnswers(t, folder, a.ID, kernel, asked)
				})
			}
		}
	}
}

// sameAnswers compares C and the command line for one device and kernel family.
func sameAnswers(t *testing.T, folder, id, kernel string, problems []gemm.Problem) {
	t.Helper()
	records := make([]gemm.Record, len(problems))
	for i := range problems {
		records[i] = problems[i].Record()
	}
	list := must.Get(json.Marshal(records))(t)
	file := filepath.Join(folder, "problems.json")
	must.Do(t, os.WriteFile(file, list, 0o600))
	cli := exec.Command(filepath.Join(folder, "origami"), "select", "--regret", "--in-process", "--arch", id, "--kernel",
		kernel, "--problems", file, "--json")
	want := answers(t, run(t, cli))
	program := exec.Command(filepath.Join(folder, "ask"))
	program.Stdin = strings.NewReader(fmt.Sprintf(`{"ask":"select","regret":true,"brief":true,"arch":%q,"kernel":%q,`+
		`"problems":%s}`+"\n", id, kernel, list))
	text, ok := bytes.CutPrefix(run(t, program), []byte("0 "))
	must.Need(t, ok, "%s", text)
	got := answers(t, text)
	must.Need(t, len(got) == len(problems) && len(want) == len(problems),
		"%d answers, the command line has %d, of %d", len(got), len(want), len(problems))
	for i := range want {
		delete(want[i], "ways")
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%s: %v, the command line has %v", problems[i], got[i], want[i])
		}
	}
}

// answers reads answers: a list, or one after the other.
func answers(t *testing.T, text []byte) (all []map[string]any) {
	t.Helper()
	if bytes.HasPrefix(text, []byte("[")) {
		must.Do(t, json.Unmarshal(text, &all))
		return all
	}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var one map[string]any
		must.Do(t, d.Decode(&one))
		all = append(all, one)
	}
	return all
}

// pythonBinding tests the Python binding on the same library, if there is a Python.
func pythonBinding(t *testing.T, folder string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "import sys; sys.exit(sys.version_info < (3, 10))").Run() != nil {
		t.Log("no Python 3.10: its binding is not tested")
		return
	}
	t.Run("python", func(t *testing.T) {
		c := exec.Command(python, "-m", "unittest", "-v", "tests.test_lib", "tests.test_inductor_picks",
			"tests.test_layers", "tests.test_rocm", "tests.test_kept")
		c.Dir = "../python"
		c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "ORIGAMI_REQUIRE_LIB=1",
			"ORIGAMI_LIB="+filepath.Join(folder, "liborigami.so"), "ORIGAMI="+filepath.Join(folder, "origami"))
		out, err := c.CombinedOutput()
		must.That(t, err == nil, "%v\n%s", err, out)
	})
}
