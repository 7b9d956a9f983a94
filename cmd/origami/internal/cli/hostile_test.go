package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/plugincmd"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/exectest"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// Text that does something to a terminal, to the order of letters, to a table or to a page.
const (
	evil     = "\x1b]0;EVIL\a\x1b[1m\x1b[2J\x7f\u009b31m\u202eEVIL\u2066\u200f\u2028\u2029\u0085\r\nEVIL\tEVIL|<b>EVIL</b>"
	evilPath = "\x1b]0;EVIL\a\u202eEVIL\nEVIL\tEVIL\xff"
)

// poison returns a deep copy of a value with evil behind every string in it, except in formulas, which would not be
// parsed.
func poison[T any](v T) T {
	var walk func(v reflect.Value) reflect.Value
	walk = func(v reflect.Value) reflect.Value {
		out := reflect.New(v.Type()).Elem()
		switch v.Kind() {
		case reflect.String:
			if v.Len() > 0 {
				out.SetString(v.String() + evil)
			}
		case reflect.Pointer:
			if !v.IsNil() {
				out.Set(walk(v.Elem()).Addr())
			}
		case reflect.Slice:
			if !v.IsNil() {
				out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			}
			for i := range v.Len() {
				out.Index(i).Set(walk(v.Index(i)))
			}
		case reflect.Struct:
			out.Set(v)
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() && f.Name != "Formula" {
					out.Field(i).Set(walk(v.Field(i)))
				}
			}
		default:
			out.Set(v)
		}
		return out
	}
	return walk(reflect.ValueOf(&v).Elem()).Interface().(T)
}

func clean(s string) string { return strings.ReplaceAll(s, evil, "") }

// hostile is a provider every string of which is evil.
type hostile struct{ fakearch.Toy }

func (h hostile) Manifest() arch.Manifest { return poison(h.Toy.Manifest()) }

func (h hostile) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	r.Arch, r.Device, r.Model = clean(r.Arch), clean(r.Device), clean(r.Model)
	a, err := h.Toy.Open(ctx, r)
	return hostileArch{a}, err
}

type hostileArch struct{ arch.Architecture }

func (h hostileArch) Describe() *arch.Description {
	d := poison(h.Architecture.Describe())
	d.Uncertainty = []arch.Uncertainty{{Kernel: d.Kernels[0], Level: 0.9, Sigma: 0.1, PlanSigma: 0.1, Source: evil,
		Ranges: []arch.ErrorRange{{Low: 0.8, High: 1.2}}}}
	p := gemm.New(64, 64, 64)
	d.Uncertainty[0].Checked.Add(&p, 1)
	d.Uncertainty[0].Checked.DataSet = evil
	d.Fitted = []arch.Fitted{{DataSet: evil}}
	d.Unused = []string{d.Params[0].Name}
	return d
}

func (h hostileArch) Hierarchy() arch.MemoryHierarchy { return evilLevels{h.Architecture.Hierarchy()} }

type evilLevels struct{ arch.MemoryHierarchy }

func (l evilLevels) Levels() []arch.Level { return poison(l.MemoryHierarchy.Levels()) }

func (h hostileArch) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	if p.K == 666 {
		return nil, diag.Inputf("what%s", evil).At("where%s", evil).Do("fix%s", evil)
	}
	s.Kernel = clean(s.Kernel)
	list, err := h.Architecture.Candidates(ctx, p, s)
	for i := range list.Configs {
		list.Configs[i].Kernel += evil
	}
	for i := range list.Rejected {
		list.Rejected[i] = poison(list.Rejected[i])
	}
	return list, err
}

func cleaned(configs []gemm.Config) []gemm.Config {
	configs = slices.Clone(configs)
	for i := range configs {
		configs[i].Kernel = clean(configs[i].Kernel)
	}
	return configs
}

func (h hostileArch) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, c []gemm.Config) error {
	err := h.Architecture.Estimate(ctx, dst, p, cleaned(c))
	for i := range dst {
		dst[i] = poison(dst[i])
	}
	return err
}

func (h hostileArch) Terms(ctx context.Context, dst []float64, p gemm.Problem, c []gemm.Config) error {
	return h.Architecture.Terms(ctx, dst, p, cleaned(c))
}

// hostileHost has the hostile provider, plugins with evil paths and reasons, and an evil executor.
type hostileHost struct{ session.InProcess }

func (h hostileHost) Plugins(context.Context) ([]host.PluginInfo, error) { return h.Known(), nil }

// LockError is about a path with evil in it.
func (h hostileHost) LockError() error {
	return diag.Inputf("not a lock file%s", evil).At("/opt/%s", evilPath)
}

func (h hostileHost) Known() []host.PluginInfo {
	return append(h.InProcess.Known(), poison([]host.PluginInfo{
		{Name: "fake", Version: "1", Path: "/opt/origami-plugin-fake" + evilPath, Executor: true, State: host.OK,
			SHA256: "00"},
		{Name: "stranger", Path: "/opt/" + evilPath, State: host.Skipped, Reason: "not in the lock file"},
		{Name: "sick", Path: "/opt/" + evilPath, State: host.Error, Reason: "exited"}})...)
}

func (h hostileHost) Executor(context.Context, string) (exec.Executor, error) {
	x := &exectest.Executor{Noise: 0.005, Seed: 7, Device: exec.Device{Name: "Acme" + evil, Arch: "toy1" + evil,
		Kernels: []string{"plain" + evil}, Libraries: []string{"blas" + evil, "blas-best" + evil}}}
	x.Fate = func(_ gemm.Problem, c gemm.Config) exectest.Fate {
		switch [3]int{c.BlockM, c.BlockN, c.BlockK} {
		case [3]int{32, 16, 64}:
			return exectest.Wrong
		case [3]int{16, 16, 64}:
			return exectest.NotBuilt
		}
		return exectest.Fine
	}
	return hostileExecutor{x}, nil
}

type hostileExecutor struct{ *exectest.Executor }

func (x hostileExecutor) Environment(ctx context.Context, device int) (exec.Environment, error) {
	env, err := x.Executor.Environment(ctx, device)
	return poison(env), err
}

func (x hostileExecutor) Compile(ctx context.Context, device int, p gemm.Problem, c gemm.Config) (exec.Kernel, error) {
	if c.BlockM == 64 {
		return nil, diag.Inputf("it does not compile%s", evil)
	}
	return x.Executor.Compile(ctx, device, p, c)
}

// run runs a command line against the hostile host.
func run(terminal bool, args ...string) (stdout, stderr string) {
	var out, errs bytes.Buffer
	streams := iostreams.Plain(strings.NewReader(""), &out, &errs)
	streams.Terminal, streams.Colour = terminal, terminal
	runOn(streams, args...)
	return out.String(), errs.String()
}

func runOn(streams *iostreams.Streams, args ...string) {
	cli.Main(cli.System{
		Args: args, Streams: streams, Getenv: func(string) string { return "" },
		Connect: func(context.Context, config.Settings, func(string)) (session.Host, error) {
			return hostileHost{session.InProcess{Providers: models.Providers{hostile{}}}}, nil
		},
		Plugins: plugincmd.Actions{
			Trust: func(_ context.Context, _ config.Settings, _ string, warn func(string)) (string, error) {
				warn("it cannot be used" + evil)
				return "x" + evilPath, nil
			},
			Distrust: func(_ context.Context, _ config.Settings, name string) (string, error) {
				return "", errors.New("no" + evilPath + name)
			},
			Connect: func(config.Settings, string, func(string)) *host.Host { return host.New(host.Options{}) },
		},
		Protocol: 7,
	})
}

// unsafe returns what is wrong with an output: a character that is not printable, or a line that evil text begins.
func unsafe(text string, colour, tabs bool) string {
	if colour {
		text = strings.NewReplacer("\x1b[1m\x1b[2J", "\x1b", "\x1b[1m", "", "\x1b[0m", "",
			string(iostreams.Green), "", string(iostreams.Yellow), "", string(iostreams.Magenta), "",
			string(iostreams.Cyan), "").Replace(text)
	}
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if !unicode.IsGraphic(r) && r != '\n' && (r != '\t' || !tabs) || r == utf8.RuneError && size == 1 {
			return fmt.Sprintf("%q in %q", r, text[max(0, i-80):min(len(text), i+40)])
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "EVIL") {
			return fmt.Sprintf("the line %q", line)
		}
	}
	return ""
}

// No text of a plugin, a data set, a file or a command line reaches the output as it is, in any command and format.
func TestForeignTextIsPrintable(t *testing.T) {
	commands := hostileCommands(t)
	t.Chdir(t.TempDir())
	must.Do(t, os.Mkdir("report", 0o700))
	for name, text := range map[string]string{
		"two.csv" + evilPath: "m,n,k\n64,64,64\n256,128,512\n", "one.csv": "m,n,k\n64,64,64\n",
		"bad.csv" + evilPath: "m,n,k\n64," + evil + ",64\n64,64\x1b,64\n", "header.csv": "m,n,\"k\u202e\x1b\"\n1,1,1\n",
		"fails.csv":  "m,n,k\n64,64,666\n",
		"labels.csv": "m,n,k,layer\u202e\n64,64,64,EVIL|<b>EVIL\u202e</b>\n256,64,64,EVIL\n",
		"hw.json":    `{"units":9,"` + "x\u202e\u009b" + `":2}`, "config.json": evil,
		"settings.yaml": "arch\u202e: [\n",
	} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	escaped, reported := 0, []string{"bench again", "compare list", "explain"}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		for _, format := range []string{"table", "json", "csv", "terminal"} {
			args, terminal, completes := commands[name], format == "terminal", strings.HasPrefix(name, "complete")
			if !completes && !terminal {
				args = append(slices.Clone(args), "--format", format)
			}
			stdout, stderr := run(terminal, args...)
			bad := unsafe(stdout, terminal, completes)
			must.That(t, bad == "", "%s as %s: %s", name, format, bad)
			bad = unsafe(stderr, false, false)
			must.That(t, bad == "", "%s as %s, stderr: %s", name, format, bad)
			if format == "json" && slices.Contains(reported, name) {
				must.Do(t, os.WriteFile("answer.json", []byte(stdout), 0o600))
				run(false, "report", "answer.json", "-o", filepath.Join("report", strings.ReplaceAll(name, " ", "-")+".html"))
			}
			escaped += strings.Count(stdout+stderr, `\u202e`)
			if format == "json" && !completes {
				for line := range strings.Lines(stdout + stderr) {
					must.That(t, json.Valid([]byte(line)), "%s: no JSON: %s", name, line)
				}
			}
		}
	}
	must.That(t, escaped >= 2000, "evil text was written %d times only", escaped)
	reports := must.Get(filepath.Glob("report/*.html"))(t)
	must.Need(t, len(reports) >= 3, "%v", reports)
	for _, name := range reports {
		text := must.Get(os.ReadFile(name))(t)
		bad := unsafe(string(text), false, true)
		must.That(t, bad == "", "%s: %s", name, bad)
		must.That(t, !bytes.Contains(text, []byte("<b>")), "%s has HTML of a data set", name)
	}
}

// hostileCommands reads testdata/hostile.txt: names, and the words of commands that ask the hostile host for all it
// has, with Go's escapes.
func hostileCommands(t *testing.T) map[string][]string {
	t.Helper()
	commands, text := map[string][]string{}, must.Get(os.ReadFile("testdata/hostile.txt"))(t)
	stands := strings.NewReplacer("$EVIL", evil, "$PATH", evilPath, "$NOTHING", "")
	for line := range strings.Lines(string(text)) {
		name, words, _ := strings.Cut(line, ": ")
		for word := range strings.FieldsSeq(strings.ReplaceAll(words, "$SHAPE", "-m 64 -n 64 -k 64")) {
			word = must.Get(strconv.Unquote(`"` + word + `"`))(t)
			commands[name] = append(commands[name], stands.Replace(word))
		}
	}
	return commands
}

// A parser of the JSON gets the text as it was.
func TestForeignTextInJSON(t *testing.T) {
	stdout, _ := run(false, "arch", "ls", "--json")
	first, _, _ := strings.Cut(stdout, "\n")
	var got struct{ Arch, Name string }
	err := json.Unmarshal([]byte(first), &got)
	must.That(t, err == nil && got.Arch == "toy1"+evil && got.Name == "Acme Small"+evil, "%+q, %v", got, err)
	_, stderr := run(false, "select", "--arch", "toy1"+evil, "-m", "64", "-n", "64", "-k", "666", "--json")
	var failure struct {
		Error struct{ What, Where, Fix string }
	}
	err = json.Unmarshal([]byte(stderr), &failure)
	must.That(t, err == nil && failure.Error.What == "what"+evil &&
		failure.Error.Where == "where"+evil && failure.Error.Fix == "fix"+evil, "%+q, %v", failure, err)
}
