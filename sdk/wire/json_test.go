package wire

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// The answers in docs/plugin-protocol.md are taken, and have every key that must be there.
func TestAnswersOfTheDocumentation(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/plugin-protocol.md"))(t)
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, 2)
	var answers, questions map[string]json.RawMessage
	must.Need(t, len(blocks) == 2, "no answers and questions")
	must.Do(t, json.Unmarshal(blocks[0][1], &answers))
	must.Do(t, json.Unmarshal(blocks[1][1], &questions))
	block := blocks[0]
	for call, err := range map[string]error{
		"Compile":     ignore(read[compileQuestion](questions["Compile"])),
		"Check":       ignore(read[kernelQuestion](questions["Check"])),
		"Measure":     ignore(read[measureQuestion](questions["Measure"])),
		"Environment": ignore(read[environmentQuestion](questions["Environment"])),
	} {
		must.That(t, err == nil && len(questions) == 4, "asked in %s: %v", call, err)
	}
	for call, taken := range map[string]func([]byte) error{
		"Info":        func(text []byte) error { return ignore(read[Info](text)) },
		"Manifest":    func(text []byte) error { return ignore(read(text, checkManifest)) },
		"Open":        func(text []byte) error { return ignore(read(text, (*opening).check)) },
		"Devices":     func(text []byte) error { return ignore(read[[]exec.Device](text)) },
		"Compile":     func(text []byte) error { return ignore(read(text, (*compiled).check)) },
		"Check":       func(text []byte) error { return ignore(read[exec.Numerics](text)) },
		"Measure":     func(text []byte) error { return ignore(read(text, several[exec.Sample](1))) },
		"Environment": func(text []byte) error { return ignore(read[exec.Environment](text)) },
		"describe":    func(text []byte) error { return ignore(ParseDescribe(text)) },
	} {
		err := taken(answers[call])
		must.That(t, err == nil, "%s: %v", call, err)
		delete(answers, call)
	}
	must.That(t, len(answers) <= 0, "not tested: %v", answers)
	o, _ := read[opening](json.RawMessage(regexp.MustCompile(`(?s)"Open": (.*?),\n"Devices"`).FindSubmatch(block[1])[1]))
	must.That(t, o.Description.Params[0].Tier != 0 && o.Description.Clock == 1.5e9 && o.Levels[0].Bandwidth.Peak == 512,
		"got %+v", o)
}

func ignore[T any](_ T, err error) error { return err }

// What is wrong is said with its place.
func TestFaultsOfJSON(t *testing.T) {
	for text, says := range map[string]string{
		`{"name":"m","archs":[{"id":"a"},{"id":"b","devices":[{"ID":"c"}]}]}`: `archs[1].devices[0]: no such key: "ID"`,
		`{"name":"m","archs":[{"vendor":"a"}]}`:                               "archs[0].id: it is missing",
		`{"name":"m","options":[{"key":"a","key":"b"}]}`:                      "options[0].key: it is there twice",
		`{"name":"m","calibrates":1}`:                                         `calibrates: it is "1"`,
		`{"name":"m","archs":null}`:                                           `archs: it is no list: "null}"`,
		`{"name":"m","version":null}`:                                         `version: it is no text: "null}"`,
		`{"name":"m","archs":[{"id":"a"} {"id":"b"}]}`:                        `archs: it is no comma: "{\"id\":\"b\"}"`,
		`["m"]`: `it is no object: "[\"m\"]"`,
		"":      `it is no object: ""`,
	} {
		_, err := read[arch.Manifest]([]byte(text))
		must.That(t, err != nil && err.Error() == says, "%s\ngot  %v\nwant %s", text, err, says)
	}
	for _, text := range []string{`{"":"a"}`, `{"a":"b","a":"c"}`} {
		x, err := read[map[string]string]([]byte(text))
		must.That(t, err != nil, "%s passes as %v", text, x)
	}
	for _, number := range []string{"01", "+1", ".5", "5.", "1e", "0x1", "1_0", "NaN", "Infinity", "-", "--1", "1e400",
		"1e101", "1e-101", "-1", `"1"`, "true", "null", "[1]", ""} {
		x, err := read[arch.Range]([]byte(`{"low":` + number + `,"high":2}`))
		must.That(t, err != nil, "%q passes as %v", number, x)
	}
	for number, want := range map[string]float64{"0": 0, "1": 1, "1.5": 1.5, "1e-3": 1e-3, "2E0": 2, "1.25e+0": 1.25} {
		x, err := read[arch.Range]([]byte(`{"low":` + number + `,"high":2}`))
		must.That(t, err == nil && x.Low == want, "%q is %v, %v", number, x, err)
	}
}

// JSON that becomes large is refused while it is read.
func TestCostlyJSON(t *testing.T) {
	for first, again := range map[string]string{
		`{"aliases":[""`: `,""`, `{"terms":[{"name":"a","kind":"step"}`: `,{"name":"a","kind":"step"}`,
		`{"constants":[{"name":"a"}`: `,{"name":"a"}`,
	} {
		text := first + strings.Repeat(again, (MaxShortAnswer-100)/len(again)) + "]}"
		_, err := read[arch.Description]([]byte(text))
		must.That(t, IsOversize(err), "%s: %v", first, err)
	}
}

// Every type that travels has a plan, whose keys differ.
func TestKeysDiffer(t *testing.T) {
	var visit func(p *plan)
	visit = func(p *plan) {
		keys := map[string]bool{}
		for _, f := range p.fields {
			keys[f.key] = true
		}
		must.That(t, len(keys) == len(p.fields) && len(p.fields) <= 64, "%d keys of %d fields", len(keys), len(p.fields))
		for _, f := range p.fields {
			visit(f.plan)
		}
		if p.elem != nil {
			visit(p.elem)
		}
	}
	for _, v := range []any{opening{}, arch.Manifest{}, arch.OpenRequest{}, Description{}, measured{}, numbers{},
		[]calibrate.Probe{}, exec.Environment{}, exec.Resources{}} {
		visit(planOf(reflect.TypeOf(v)))
	}
}

// What is taken is JSON, and is the same when it is written and read again.
func FuzzJSON(f *testing.F) {
	a := must.Get(fake.Provider{}.Open(f.Context(), arch.OpenRequest{Arch: "fake"}))(f)
	f.Add(marshal(&opening{*a.Describe(), a.Hierarchy().Levels()}))
	for _, seed := range []string{`{"description":{"arch":"\u0041","clock_hz":-1.5E+3}}`, ` [ ] `,
		`{"levels":[{"name":"a"},]}`, `{"\u001b":1}`,
		`{"description":{"options":[{"key":"k","value":"\ud800"}]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := read[opening](text)
		if err != nil {
			must.That(t, !strings.ContainsAny(err.Error(), "\n\x1b"), "%q", err)
			return
		}
		var same any
		must.Need(t, json.Unmarshal(text, &same) == nil, "%s is taken and no JSON", text)
		again, err := read[opening](marshal(&o))
		must.Need(t, err == nil && reflect.DeepEqual(o, again), "%s\nis %+v\nthen %+v, %v", text, o, again, err)
	})
}
