//go:build linux

package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	params "github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/core/keep"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// Beside its memory, each question and each row of a file has a budget of time on a CPU. A process that is no longer
// asked needs no more than mostIdle.
const (
	mostQuestionCPU = 20 * time.Second
	mostRowCPU      = time.Millisecond
	mostIdle        = 150e6
)

// parameter is what a server says of a parameter (/openapi.json).
type parameter struct {
	Name, Description string
	Schema            struct{ Type string }
}

// A server answers every endpoint, with every parameter that it describes, for many devices, what-ifs, types and
// layouts, within the budgets. What to give a parameter is drawn from its description, so that a new one is tried as it
// comes. A failure names the question after which the budget was exceeded.
func TestQuestionsHaveBudgets(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector needs memory itself")
	}
	bin := build(t)
	s := serveMeasured(t, bin)
	all := os.Getenv("ORIGAMI_TEST_ALL") == "1"
	paths := s.parameters(t)
	devices := s.devices(t)
	asked := 0
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for _, q := range questionsOf(path, paths[path], devices, all) {
			s.ask(t, q)
			asked++
		}
	}
	if all { // types and layouts of all devices, which nothing is left of from one to the next
		for _, q := range kinds(devices) {
			s.ask(t, q)
			asked++
		}
	}
	t.Logf("%d questions; the host needed %.0f MB and the plugins %v", asked, float64(peakOf(s.pid))/1e6,
		s.plugins(peakOf))
	for begun := time.Now(); ; time.Sleep(time.Second) {
		resident := append(s.plugins(residentOf), float64(residentOf(s.pid))/1e6)
		if slices.Max(resident)*1e6 <= mostIdle {
			t.Logf("%.0f s after the last question: %v MB", time.Since(begun).Seconds(), resident)
			break
		}
		if time.Since(begun) > keep.Rest+40*time.Second {
			t.Errorf("%v after the last question the processes still need %v MB", time.Since(begun), resident)
			break
		}
	}
}

// server is one that is asked.
type server struct {
	pid int
	at  string
}

func serveMeasured(t *testing.T, bin string) *server {
	t.Helper()
	dir := shortTempDir(t)
	messages := must.Get(os.Create(filepath.Join(dir, "stderr")))(t)
	defer messages.Close()
	cmd := osexec.Command(filepath.Join(bin, "origami"), "serve", "--listen", "127.0.0.1:0", "--rate", "100000",
		"--time-limit", "110s")
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = messages
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(messages.Name())
		if found := address.FindSubmatch(text); found != nil {
			return &server{cmd.Process.Pid, "http://" + string(found[1])}
		}
		must.Need(t, err == nil && time.Since(begun) <= mostTime, "it does not listen: %v %s", err, text)
	}
}

func (s *server) get(t *testing.T, path string, into any) (status int) {
	t.Helper()
	r, err := http.Get(s.at + path)
	must.Need(t, err == nil, "%s: %v", path, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	must.Need(t, err == nil, "%s: %v", path, err)
	return r.StatusCode
}

func (s *server) parameters(t *testing.T) map[string][]parameter {
	var described struct {
		Paths map[string]struct {
			Get struct{ Parameters []parameter }
		}
	}
	s.get(t, "/openapi.json", &described)
	paths := map[string][]parameter{}
	for path, of := range described.Paths {
		paths[path] = of.Get.Parameters
	}
	must.Need(t, len(paths) >= 8, "only %d endpoints are described", len(paths))
	return paths
}

// devices are all that there are.
func (s *server) devices(t *testing.T) (names []string) {
	var list []struct{ Arch, Device string }
	s.get(t, "/api/v1/archs", &list)
	for _, a := range list {
		names = append(names, a.Arch+"@"+a.Device)
	}
	must.Need(t, len(names) >= 8, "only %d devices are described: %v", len(names), list)
	return names
}

// ask asks, and looks at what that cost.
func (s *server) ask(t *testing.T, path string) {
	t.Helper()
	before := s.cpu()
	status := s.get(t, path, nil)
	must.That(t, status < http.StatusInternalServerError, "%.300s: %d", path, status)
	if cpu := s.cpu() - before; cpu > mostQuestionCPU {
		t.Errorf("%.300s takes %v of CPU", path, cpu)
	}
	for _, p := range append(childrenOf(s.pid), s.pid) {
		peak := peakOf(p)
		must.Need(t, float64(peak) <= mostMemory, "%.300s: a process needs %.0f MB", path, float64(peak)/1e6)
	}
}

func (s *server) plugins(of func(int) int64) (list []float64) {
	for _, p := range childrenOf(s.pid) {
		list = append(list, float64(of(p)/1e6))
	}
	return list
}

// cpu is what the processes have computed.
func (s *server) cpu() (sum time.Duration) {
	for _, p := range append(childrenOf(s.pid), s.pid) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		for _, i := range []int{11, 12} { // utime and stime behind the name, in hundredths of a second (proc(5))
			if len(fields) > i {
				n, _ := strconv.ParseInt(string(fields[i]), 10, 64)
				sum += time.Duration(n) * 10 * time.Millisecond
			}
		}
	}
	return sum
}

func residentOf(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if fields := strings.Fields(string(text)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}

var (
	listed   = regexp.MustCompile(`[\w.+]+(?:, (?:or )?[\w.+]+)+`)
	exampled = regexp.MustCompile(`(?:as in|or) (\S*[^\s,.;:)])`)
	numbers  = []string{"1", "100", "4096", "16777216", "0", "-1", "9223372036854775808", "NaN", "1e308"}
)

// values are what a parameter may be given, by its description: the words of its lists, its examples, and numbers.
func (p *parameter) values() (values []string) {
	if p.Schema.Type == "boolean" {
		return []string{"true"}
	}
	for _, list := range listed.FindAllString(p.Description, -1) {
		values = append(values, strings.Split(strings.ReplaceAll(list, "or ", ""), ", ")...)
	}
	for _, found := range exampled.FindAllStringSubmatch(p.Description, -1) {
		values = append(values, found[1])
	}
	return append(values, numbers...)
}

// questionsOf are questions of an endpoint: about a device, 30 what-ifs and more architectures than one question may
// have; with all, each parameter with each value, and parameters together with others at random.
func questionsOf(path string, params []parameter, devices []string, all bool) (questions []string) {
	has := func(name string) bool {
		return slices.ContainsFunc(params, func(p parameter) bool { return p.Name == name })
	}
	base := url.Values{}
	for _, name := range []string{"m", "n", "k"} {
		if has(name) {
			base.Set(name, "4096")
		}
	}
	add := func(arch string, more url.Values) {
		q := maps.Clone(base)
		if has("arch") && !more.Has("arch") {
			q.Set("arch", arch)
		}
		maps.Copy(q, more)
		questions = append(questions, path+"?"+q.Encode())
	}
	add("h200", nil)
	add(clocks(30), nil)
	add(clocks(65), nil)
	add(strings.Join(devices[:min(12, len(devices))], ","), nil)
	if !all {
		return questions
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range params {
		for _, value := range params[i].values() {
			add("h200", url.Values{params[i].Name: {value}})
			more := url.Values{params[i].Name: {value}}
			for range 2 {
				other := &params[r.IntN(len(params))]
				of := other.values()
				more.Set(other.Name, of[r.IntN(len(of))])
			}
			add(devices[r.IntN(len(devices))], more)
		}
	}
	return questions
}

// kinds ask for the pick of each device for each of some types, layouts and outputs.
func kinds(devices []string) (questions []string) {
	for _, device := range devices {
		for _, dtype := range []string{"fp16", "bf16", "fp8", "int8", "tf32", "fp32"} {
			for layout := range 8 {
				q := url.Values{"arch": {device}, "m": {"512"}, "n": {"512"}, "k": {"512"}, "dtype": {dtype},
					"trans_a": {strconv.FormatBool(layout&1 > 0)}, "trans_b": {strconv.FormatBool(layout&2 > 0)}}
				if layout&4 > 0 {
					q.Set("out_dtype", "fp32")
				}
				questions = append(questions, "/api/v1/select?"+q.Encode())
			}
		}
	}
	return questions
}

// A file with ten times as many rows takes at most some ten times as long, in every form and as every flag that takes
// a file, whatever comes of it.
func TestRowsAreLinear(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes time itself")
	}
	flags := []string{"problems"}
	for _, q := range []any{&params.Target{}, &params.Search{}} {
		for _, f := range params.Fields(q) {
			if f.File {
				flags = append(flags, f.Flag())
			}
		}
	}
	must.Need(t, len(flags) >= 3, "only %v take files", flags)
	bin := build(t)
	dir := shortTempDir(t)
	type form struct{ first, between, last, row string }
	problems := map[string]form{
		"json": {"[", ",", "]", `{"m":%d,"n":%d,"k":64}`}, "jsonl": {"", "\n", "\n", `{"m":%d,"n":%d,"k":64}`},
		"csv": {"m,n,k\n", "\n", "\n", "%d,%d,64"},
	}
	const config = `{"GROUP_SIZE_M":%d,"BLOCK_SIZE_N":%d,"BLOCK_SIZE_M":64,"BLOCK_SIZE_K":32,"num_warps":4,"num_stages":3}`
	others := map[string]form{
		"json": {"[", ",", "]", config}, "jsonl": {"", "\n", "\n", config},
		"csv": {"group_m,block_n,block_m,block_k,num_warps,num_stages\n", "\n", "\n", "%d,%d,64,32,4,3"},
	}
	for _, flag := range flags {
		forms := others
		if flag == "problems" {
			forms = problems
		}
		for _, form := range slices.Sorted(maps.Keys(forms)) {
			f := forms[form]
			var took [2]time.Duration
			counts := [2]int{1500, 15000}
			for i, count := range counts {
				name := fmt.Sprintf("%s-%d.%s", flag, count, form)
				write(t, filepath.Join(dir, name), func(w io.Writer) {
					_, _ = io.WriteString(w, f.first)
					for row := range count {
						if row > 0 {
							_, _ = io.WriteString(w, f.between)
						}
						_, _ = fmt.Fprintf(w, f.row, row%512+1, 16*(row%16+1))
					}
					_, _ = io.WriteString(w, f.last)
				})
				args := []string{"--in-process", "--arch", "sm89", "--kernel", "library", "select", "--" + flag, name}
				if flag != "problems" {
					args = append(args, "-m", "512", "-n", "512", "-k", "512")
					args[4] = "triton"
				}
				cmd := osexec.Command(filepath.Join(bin, "origami"), args...)
				cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
				_ = cmd.Run() // it may be refused
				took[i] = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			}
			row := (took[1] - took[0]) / time.Duration(counts[1]-counts[0])
			t.Logf("--%s %s: %v and %v, %v a row", flag, form, took[0], took[1], row)
			if row > mostRowCPU || took[1] > 15*took[0]+time.Second {
				t.Errorf("--%s %s: %d rows take %v of CPU, and %d take %v", flag, form, counts[0], took[0], counts[1], took[1])
			}
		}
	}
}
