package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
)

// build builds the library and the command line once for the tests that compare them, and returns the folder. Without
// a C compiler it skips the test.
func build(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short")
	}
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

// answer is the command line's answer for a configuration.
type answer struct {
	Config struct {
		BlockM    int `json:"block_m"`
		BlockN    int `json:"block_n"`
		BlockK    int `json:"block_k"`
		GroupM    int `json:"group_m"`
		NumWarps  int `json:"num_warps"`
		NumStages int `json:"num_stages"`
		SplitK    int `json:"split_k"`
	} `json:"config"`
	Predicted struct {
		Cycles   float64    `json:"cycles"`
		Seconds  float64    `json:"seconds"`
		Bound    string     `json:"bound"`
		Interval [2]float64 `json:"interval_seconds"`
	} `json:"predicted"`
	Mapping struct {
		XCDs  int `json:"xcds"`
		Chunk int `json:"chunk"`
	} `json:"mapping"`
	Loss  *float64 `json:"expected_regret"`
	Worth int      `json:"worth_measuring"`
}

// line is an answer as ask.c prints a pick.
func (a *answer) line() string {
	c, p := &a.Config, &a.Predicted
	bound := slices.IndexFunc([]arch.Bound{0, 1, 2, 3, 4, 5, 6, 7, 8}, func(b arch.Bound) bool {
		return b.String() == p.Bound
	})
	return fmt.Sprint(c.BlockM, c.BlockN, c.BlockK, c.GroupM, c.NumWarps, c.NumStages, c.SplitK,
		a.Mapping.XCDs, a.Mapping.Chunk, bound,
		p.Cycles, p.Seconds, p.Interval[0], p.Interval[1])
}

// decimals converts C's hexadecimal floating-point numbers to Go's form of the same bits.
func decimals(t *testing.T, line string) string {
	t.Helper()
	fields := strings.Fields(line)
	for i, f := range fields {
		if strings.HasPrefix(f, "0x") {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				t.Fatal(err)
			}
			fields[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(fields, " ")
}

// TestLibrary builds the library once and uses it from C and from Python.
func TestLibrary(t *testing.T) {
	folder := build(t)
	t.Run("misuse", func(t *testing.T) {
		cases, err := strconv.Atoi(strings.TrimSpace(string(run(t, exec.Command(filepath.Join(folder, "misuse"))))))
		if err != nil || cases < 200 {
			t.Errorf("%d cases, %v", cases, err)
		}
	})
	t.Run("fork", func(t *testing.T) { run(t, exec.Command(filepath.Join(folder, "fork"))) })
	t.Run("launch", func(t *testing.T) { launches(t, folder) })
	sameAsCommandLine(t, folder)
	pythonBinding(t, folder)
}

// sameAsCommandLine checks that C and the command line give the same bits for every architecture and kernel family.
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
	problems = append(problems, padded)
	grouped := gemm.New(1, 4096, 2048)
	groups, err := gemm.NewGroups(120, 33, 0, 512)
	if err != nil {
		t.Fatal(err)
	}
	grouped.SetGroups(groups)
	all, err := providers()
	if err != nil {
		t.Fatal(err)
	}
	for _, provider := range all {
		for _, a := range provider.Manifest().Archs {
			for _, kernel := range a.Kernels {
				t.Run(a.ID+" "+kernel, func(t *testing.T) {
					opened, err := provider.Open(t.Context(), arch.OpenRequest{Arch: a.ID, Kernel: kernel})
					if err != nil {
						t.Fatal(err)
					}
					asked := slices.DeleteFunc(slices.Clone(problems), func(p gemm.Problem) bool {
						// It lacks bf16, or no tensor map describes the rows.
						ragged := (p.M|p.N|p.K)%8 != 0
						return opened.Describe().SupportsTypes(kernel, &p) != nil || kernel == "wgmma" && ragged
					})
					if len(asked) == 0 { // it lacks fp16, too
						p := gemm.New(4096, 4096, 4096)
						p.DType, p.Out = gemm.FP32, 0
						asked = append(asked, p)
					}
					if opened.Describe().SupportsTypes(kernel, &grouped) == nil {
						asked = append(asked, grouped)
					}
					file, input := writeProblems(t, filepath.Join(folder, "problems.csv"), asked)
					sameAnswers(t, folder, file, a.ID, kernel, input, len(asked))
				})
			}
		}
	}
}

// writeProblems writes problems for the command line to a file. It returns its name, and the problems for the program
// ask.
func writeProblems(t *testing.T, file string, problems []gemm.Problem) (name, input string) {
	t.Helper()
	var text, lines strings.Builder
	rows := [][]string{slices.Concat(gemm.Columns, gemm.MoreColumns)}
	bit := map[bool]int{true: 1}
	for _, p := range problems {
		rows = append(rows, append(p.Cells(), p.MoreCells()...))
		fmt.Fprintln(&lines, p.M, p.N, p.K, p.Batch, bit[p.TransA()], bit[p.TransB()], int(p.DType), int(p.Out),
			p.LDA, p.LDB, p.LDC, p.AlignA, p.AlignB, p.AlignC, p.Groups.Len(), strings.Trim(fmt.Sprint(p.Groups.List()), "[]"))
	}
	err := csv.NewWriter(&text).WriteAll(rows)
	if err := errors.Join(err, os.WriteFile(file, []byte(text.String()), 0o600)); err != nil {
		t.Fatal(err)
	}
	return file, lines.String()
}

// sameAnswers compares C and the command line for one device and kernel family.
func sameAnswers(t *testing.T, folder, file, id, kernel, input string, problems int) {
	t.Helper()
	const top = 3
	cli := func(args ...string) (answers []answer) {
		args = append(args, "--in-process", "--arch", id, "--kernel", kernel, "--problems", file, "--json")
		c := exec.Command(filepath.Join(folder, "origami"), args...)
		decoder := json.NewDecoder(bytes.NewReader(run(t, c)))
		for decoder.More() {
			var one answer
			if err := decoder.Decode(&one); err != nil {
				t.Fatal(err)
			}
			answers = append(answers, one)
		}
		return answers
	}
	var want []string
	ranked := cli("rank", "--top", strconv.Itoa(top))
	for i, pick := range cli("select", "--regret") {
		want = append(want, pick.line())
		for _, one := range ranked[i*top : (i+1)*top] {
			want = append(want, one.line())
		}
		regret := "0 0 0"
		if pick.Loss != nil {
			regret = fmt.Sprint(1, *pick.Loss, pick.Worth)
		}
		want = append(want, regret)
	}
	request := fmt.Sprintf(`{"arch":%q,"kernel":%q}`, id, kernel)
	ask := exec.Command(filepath.Join(folder, "ask"), request, strconv.Itoa(top))
	ask.Stdin = strings.NewReader(input)
	got := strings.Split(strings.TrimSpace(string(run(t, ask))), "\n")
	if len(got) != len(want) || len(want) != problems*(top+2) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i := range want {
		if line := decimals(t, got[i]); line != want[i] {
			t.Errorf("problem %d: %s, the command line has %s", i/(top+2), line, want[i])
		}
	}
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
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
