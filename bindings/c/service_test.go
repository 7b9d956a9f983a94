package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// asked returns the JSON of an answer, and the error without one.
func asked(t *testing.T, request string) (string, error) {
	t.Helper()
	v, err := answer(t.Context(), []byte(request))
	if err != nil {
		return "", err
	}
	text := must.Get(ask.Encode(v))(t)
	return strings.TrimSpace(string(text)), nil
}

func TestDescribe(t *testing.T) {
	for request, want := range map[string]string{
		`"arch":"sm90"`:                "sm90@h100 pipelined triton",
		`"arch":"sm90@h200"`:           "sm90@h200 pipelined triton",
		`"arch":"h200","kernel":"mma"`: "sm90@h200 pipelined mma",
		`"arch":"sm90","device":"h200-sxm","model":"reference"`:        "sm90@h200 tritonblas triton",
		`"arch":"h200","kernel":"library","options":{"timing":"cold"}`: "sm90@h200 library library",
		`"arch":"v100"`:                                                "sm70@v100 library library",
		`"arch":"mi300x","kernel":"library"`:                           "gfx942@mi300x library library",
		`"arch":"gfx942"`:                                              "gfx942@mi300x tensile tensile",
		`"arch":"gfx942","kernel":"triton"`:                            "gfx942@mi300x triton triton",
		`"arch":"gfx942","model":"amd-origami"`:                        "gfx942@mi300x amd-origami triton",
		`"arch":"sm90","live":{"name":"NVIDIA H200"}`:                  "sm90@h200 pipelined triton",
		`"arch":"sm89","overrides":{"clock":{"value":1,"unit":"GHz"}}`: "sm89@rtx4090 pipelined triton",
		`"arch":"h200","kernel":"cublas"`:                              "sm90@h200 library library",
		`"arch":["hopper"]`:                                            "sm90@h100 pipelined triton",
	} {
		text, err := asked(t, `{"ask":"describe",`+request+`}`)
		var d described
		if err == nil {
			err = json.Unmarshal([]byte(text), &d)
		}
		got := d.Arch + "@" + d.Device + " " + d.Model + " " + d.Kernel
		must.That(t, err == nil && got == want, "%s opens %s, want %s (%v)", request, got, want, err)
		must.That(t, !strings.Contains(request, "clock") || d.Clock == 1e9, "the overridden clock is %v", d.Clock)
	}
}

func TestRefused(t *testing.T) {
	for request, want := range map[string]string{
		``:                                "not understood",
		`{"arch":"sm90"} {}`:              "data follows",
		`{"arch":"sm90","arch":"sm80"}`:   `the key "arch" is there twice`,
		`{"ask":"describe","colour":"x"}`: `there is no key "colour"`,
		`{"ask":"describe","arch":"sm90","space":{"block_m":[64],"block_m":[32]}}`: `there twice`,
		`{"ask":"describe","arch":"sm91"}`:                                         "did you mean sm90",
		`{"ask":"describe","arch":"sm90","device":"h900"}`:                         "did you mean h100, h200",
		`{"ask":"describe","arch":"sm90","model":"oracle"}`:                        "use one of pipelined",
		`{"ask":"describe","arch":"sm90","kernel":"cutlass"}`:                      "use one of triton, triton_persistent",
		`{"ask":"describe","arch":"sm90","rung":"oracular"}`:                       "and oracular was asked for",
		`{"ask":"describe","arch":"sm90","options":{"a":"b"}}`:                     `no option "a"`,
		`{"ask":"describe","arch":"sm90","space":{"colour":["red"]}}`:              `unknown axis "colour"`,
		`{"ask":"describe","arch":"sm90","overrides":{"x":1}}`:                     `no parameter "x"`,
		`{"ask":"describe","arch":"sm90","device":"h200","live":{"name":"H"}}`:     "leave one of them out",
		`{"ask":"describe","arch":"sm130","live":{"name":"NVIDIA Future"}}`:        "which no plugin models",
		`{"ask":"select","arch":"h200,h100","m":1,"n":1,"k":1}`:                    "2 architectures are given",
		`{"ask":"explain","arch":"h200","m":"1:8","n":1,"k":1}`:                    "more than one size",
		`{"ask":"kernel","arch":"h200","m":64,"n":64,"k":64}`:                      "triton",
	} {
		if text, err := asked(t, request); diag.KindOf(err) != diag.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %s", request, text, err, want)
		}
	}
}

// Files about the kernels raise the model to their rung, as on the command line.
func TestKernelFiles(t *testing.T) {
	const (
		timed = `bm,bn,bk,stages,warps,trans_b,ctas,one_2048,one_6144,chip_2048,chip_6144,full_2048,full_6144\n` +
			`128,256,64,3,8,0,1,20,60,22,66,22,66\n`
		built = `target,bm,bn,bk,stages,warps,gm,even_k,n_regs,n_spills,shared,status,trans_a,trans_b\n` +
			`90,128,256,64,3,8,8,1,255,900,147456,ok,0,0\n`
	)
	for key, text := range map[string]string{"compiled": built, "characterization": timed} {
		got, err := asked(t, `{"ask":"select","brief":true,"arch":"sm90","m":4096,"n":4096,"k":4096,"`+key+`":"`+text+`",`+
			`"space":{"block_m":[128],"block_n":[256],"block_k":[64],"num_stages":[3],"num_warps":[8]}}`)
		if err != nil || strings.Contains(got, `"rung":"spec"`) || !strings.Contains(got, `"block_m":128,"block_n":256`) {
			t.Errorf("%s: %s, %v", key, got, err)
		}
	}
}

// Compiled kernels have times, and one of those that fit is picked.
func TestPin(t *testing.T) {
	const kernel = `{"programs": 512, "warps": 8, "registers": 128, "instructions": 1000, "path": 5000, ` +
		`"shared_bytes": %s}`
	one, large := strings.Replace(kernel, "%s", "1024", 1), strings.Replace(kernel, "%s", "1e6", 1)
	got, err := asked(t, `{"ask": "pin", "arch": "sm90", "device": "h200", "kernels": [`+large+", "+one+`]}`)
	must.That(t, err == nil && (strings.Contains(got, `"pick": 1`) || strings.Contains(got, `"pick":1`)),
		"%s, %v", got, err)
	must.That(t, !strings.Contains(got, `"terms"`), "terms in a brief answer")
	_, err = asked(t, `{"ask": "pin", "arch": "sm90", "kernels": [{}]}`)
	must.That(t, err != nil, "an empty kernel has a time")
}

// A list has an answer or a failure for each of its problems, which take the question's keys.
func TestProblems(t *testing.T) {
	text, err := asked(t, `{"ask":"select","arch":"h200","brief":true,"dtype":"bf16","trans_b":true,"n":4096,"k":4096,`+
		`"problems":[{"m":16},{"m":0},{"m":4096,"n":128}]}`)
	must.Do(t, err)
	var list []struct {
		ask.Answer
		Error *ask.Error `json:"error"`
	}
	err = json.Unmarshal([]byte(text), &list)
	must.Need(t, err == nil && len(list) == 3, "%s: %v", text, err)
	if list[0].Problem.M != 16 || list[0].Problem.DType != "bf16" || list[2].Problem.N != 128 || !list[2].Problem.TransB {
		t.Errorf("%+v, %+v", list[0].Problem, list[2].Problem)
	}
	e := list[1].Error
	must.That(t, e != nil && strings.Contains(e.Where+e.What, "problem 1"), "%+v", e)
}

func TestCandidatesAndBands(t *testing.T) {
	text, err := asked(t, `{"ask":"rank","arch":"h200","m":4096,"n":4096,"k":4096,"candidates":[`+
		`{"block_m":128,"block_n":128,"block_k":32,"num_warps":4,"num_stages":3}]}`)
	must.That(t, err == nil && strings.HasPrefix(text, `[{`) && strings.Count(text, `"rank":`) == 1,
		"%.200s, %v", text, err)
	for _, m := range []string{`"1:8192"`, `[1,16,64]`} {
		text, err = asked(t, `{"ask":"select","arch":"h200","kernel":"wgmma","dtype":"bf16","trans_b":true,"m":`+m+
			`,"n":4096,"k":4096,"own":true}`)
		must.That(t, err == nil && strings.Contains(text, `"bands":[{"m_low":1`) && !strings.Contains(text, `"library"`),
			"%.300s, %v", text, err)
	}
}

// Concurrent calls give the same answers as single ones.
func TestConcurrentCallers(t *testing.T) {
	const request = `{"ask":"select","brief":true,"arch":"sm90","m":%,"n":512,"k":512}`
	var group sync.WaitGroup
	var first sync.Map
	for range 4 {
		group.Go(func() {
			for _, m := range []string{"64", "65", "66", "4096"} {
				text, err := asked(t, strings.Replace(request, "%", m, 1))
				known, loaded := first.LoadOrStore(m, text)
				must.That(t, err == nil && (!loaded || known == text), "%s: %s, %v; before %v", m, text, err, known)
			}
		})
	}
	group.Wait()
}

// Whatever the text of a request, the result is an answer or a one-line error.
func FuzzAsk(f *testing.F) {
	for _, s := range []string{
		`{"ask":"describe","arch":"sm90"}`, `{"ask":"select","arch":"gfx942","options":{"occ":"2"},"m":1,"n":1,"k":1}`,
		`{"ask":"select","arch":"sm89","overrides":{"clock":{"value":1,"unit":"GHz"}},"space":{"block_m":[64]},"m":8}`,
		`{"ask":"rank","arch":"sm90","candidates":"bm,bn\n1,2","compiled":"bm"}`, ``, `null`, `{"problems":[{}]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<9 {
			return // long axes make large spaces, which are slow
		}
		_, err := answer(t.Context(), []byte(text))
		must.Need(t, err == nil || !strings.ContainsAny(diag.Line(err), "\r\n"), "%q", err)
	})
}

// What `origami here` measured counts in every answer about the GPU, by its driver's name and by the device's.
func TestMeasuredHere(t *testing.T) {
	settings := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", settings)
	folder := filepath.Join(settings, "origami", "devices")
	must.Do(t, os.MkdirAll(folder, 0o700))
	var slow []string // three times the A100's
	for i := range 12 {
		slow = append(slow, fmt.Sprintf("{kernel: library, m: %d, n: 2048, k: 4096, batch: 1, trans_a: false, "+
			"trans_b: false, dtype: fp16, seconds: %g, timing: events}", 512+128*i, 3e-7*float64(512+128*i)))
	}
	file := fmt.Sprintf(`arch: sm80
device: a10x
name: NVIDIA A10X
vendor: NVIDIA
here: true
derived: {%s}
times: [%s]
`, numbers(t), strings.Join(slow, ", "))
	must.Do(t, os.WriteFile(filepath.Join(folder, "nvidia-a10x.yaml"), []byte(file), 0o600))
	for _, device := range []string{`"arch":"sm80","live":{"name":"NVIDIA A10X"}`, `"arch":"a10x"`} {
		text := must.Get(asked(t, `{"ask":"select","kernel":"library","m":1024,"n":2048,"k":4096,`+device+`}`))(t)
		var a struct {
			Evidence  string
			Predicted struct {
				Seconds  float64
				Interval [2]float64 `json:"interval_seconds"`
			}
		}
		must.Do(t, json.Unmarshal([]byte(text), &a))
		if a.Evidence != "checked" || math.Abs(a.Predicted.Seconds/3e-4-1) > 0.2 || !(a.Predicted.Interval[1] > 0) {
			t.Errorf("%s: %+v", device, a)
		}
	}
}

// numbers are the hardware numbers of the A100 without microbenchmarks, as a device file writes them.
func numbers(t *testing.T) string {
	t.Helper()
	text := must.Get(configs.FS.ReadFile("sm80-a100-sxm4-80gb.yaml"))(t)
	sheet := must.Get(hw.DecodeSheet("a100", text))(t)
	var words []string
	for name, n := range sheet.Derived {
		words = append(words, fmt.Sprintf("%s: {value: %v, unit: %q, source: a100, method: assumed, date: 2026-11-28}", name,
			n.Value, n.Unit))
	}
	return strings.Join(words, ", ")
}

// A process that uses the library for every kind of problem holds what it needs for a few: some 100 MB.
func TestKindsShareTheirRoom(t *testing.T) {
	const mostHeap = 120e6
	answered := 0
	for _, arch := range []string{"gfx942", "h200"} {
		for _, in := range gemm.DTypes() {
			for _, out := range append([]gemm.DType{in}, gemm.OutputTypes()...) {
				for kind := range 4 {
					request := fmt.Sprintf(`{"ask":"select","arch":%q,"m":512,"n":512,"k":512,"dtype":%q,"out_dtype":%q,`+
						`"trans_a":%t,"trans_b":%t}`, arch, in, out, kind&1 > 0, kind&2 > 0)
					must.Need(t, json.Valid([]byte(request)), "%v", request)
					if _, err := answer(t.Context(), []byte(request)); err == nil {
						answered++
					}
				}
			}
		}
	}
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d kinds were answered, and the heap has %d MB", answered, m.HeapAlloc>>20)
	must.That(t, answered >= 100 && m.HeapAlloc <= mostHeap,
		"%d kinds were answered, and the heap has %d MB", answered, m.HeapAlloc>>20)
}

// Lists of candidates that a process gives share that room too, with their texts.
func TestListsShareTheirRoom(t *testing.T) {
	const mostHeap = 150e6
	blanks := strings.Repeat(" ", 8<<20)
	for i := range 40 {
		request := fmt.Sprintf(`{"ask":"select","arch":"sm89","m":512,"n":512,"k":512,"candidates":[%s`+
			`{"block_m":64,"block_n":64,"block_k":32,"num_warps":4,"num_stages":3,"group_m":%d}]}`, blanks, i+1)
		must.Get(answer(t.Context(), []byte(request)))(t)
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("the heap has %d MB", m.HeapAlloc>>20)
	must.That(t, m.HeapAlloc <= mostHeap, "the heap has %d MB", m.HeapAlloc>>20)
}
