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
	commands, with := hostileCommands(), func(words []string, more ...string) []string {
		return append(slices.Clone(words), more...)
	}
	escaped, reported := 0, []string{"bench again", "compare list", "explain"}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		for _, format := range []string{"table", "json", "csv", "terminal"} {
			args, terminal, completes := commands[name], format == "terminal", strings.HasPrefix(name, "complete")
			if !completes && !terminal {
				args = with(args, "--format", format)
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
	for _, name := range reports(t) {
		text := must.Get(os.ReadFile(name))(t)
		bad := unsafe(string(text), false, true)
		must.That(t, bad == "", "%s: %s", name, bad)
		must.That(t, !bytes.Contains(text, []byte("<b>")), "%s has HTML of a data set", name)
	}
}

// hostileCommands ask the hostile host for everything, in files of these names.
func hostileCommands() map[string][]string {
	id := "toy1" + evil
	shape := []string{"-m", "64", "-n", "64", "-k", "64"}
	with := func(words []string, more ...string) []string { return append(slices.Clone(words), more...) }
	return map[string][]string{
		"version": {"version"}, "arch ls": {"arch", "ls"}, "arch show": {"arch", "show", id},
		"arch show fails": {"arch", "show", "toy9" + evil},
		"plugin ls":       {"plugin", "ls"}, "plugin trust": {"plugin", "trust", "./x" + evilPath},
		"plugin distrust": {"plugin", "distrust", "x" + evilPath}, "plugin check": {"plugin", "check", "./x" + evilPath},
		"plugin new": {"plugin", "new", "x" + evil}, "unknown": {"sel\x1bect"}, "flag": {"select", "--\x1bx"},
		"select":           with(shape, "select", "--arch", id),
		"select dtype":     with(shape, "select", "--arch", id, "--dtype", "fp\x1b\u202e"),
		"select size":      {"select", "--arch", id, "-m", "1\x1b\u202e"},
		"select option":    with(shape, "select", "--arch", id, "--option", "x\x1b\u202e=\u009b"),
		"select hw":        with(shape, "select", "--arch", id, "--hw-params", "hw.json"),
		"select settings":  with(shape, "select", "--arch", id, "--settings", "settings.yaml"),
		"select problems":  {"select", "--arch", id, "--problems", "two.csv" + evilPath},
		"select bad":       {"select", "--arch", id, "--problems", "bad.csv" + evilPath},
		"select header":    {"select", "--arch", id, "--problems", "header.csv"},
		"select fails":     {"select", "--arch", id, "--problems", "fails.csv"},
		"select failed":    {"select", "--arch", id, "-m", "64", "-n", "64", "-k", "666"},
		"rank":             with(shape, "rank", "--arch", id),
		"rank rejected":    with(shape, "rank", "--arch", id, "--all", "--include-rejected"),
		"explain":          with(shape, "explain", "--arch", id),
		"explain config":   with(shape, "explain", "--arch", id, "--config", "64x64x128"),
		"explain nonsense": with(shape, "explain", "--arch", id, "--config", "64x\x1b\u202e"),
		"compare":          with(shape, "compare", "--arch", id, "--arch", "toy2"+evil),
		"compare fails":    {"compare", "--arch", id, "--arch", "toy2" + evil, "-m", "64", "-n", "64", "-k", "666"},
		"report": {"report", "--arch", id, "--arch", "toy2" + evil, "--problems", "labels.csv", "-o",
			"report/page.html"},
		"compare list": {"compare", "--arch", id, "--arch", "toy2" + evil, "--problems", "labels.csv"},
		"bench": {"bench", "--arch", id, "--executor", "fake", "--problems", "one.csv",
			"--records", "run" + evilPath},
		"bench again":     {"bench", "--arch", id, "--records", "run" + evilPath},
		"bench nothing":   {"bench", "--arch", id, "--records", "none" + evilPath},
		"eval":            {"eval", "--arch", id, "--times", "run" + evilPath},
		"eval nothing":    {"eval", "--arch", id, "--times", "none" + evilPath},
		"eval intervals":  {"eval", "--arch", id, "--times", "run" + evilPath, "--intervals"},
		"complete arch":   {"__complete", "select", "--arch", ""},
		"complete device": {"__complete", "select", "--device", ""},
		"complete model":  {"__complete", "select", "--model", ""},
		"complete kernel": {"__complete", "select", "--kernel", ""},
		"complete option": {"__complete", "select", "--option", ""},
		"help":            {"help", "x\x1b\u202e"},
	}
}

// reports are the pages.
func reports(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("report/*.html")
	must.Need(t, err == nil && len(found) >= 3, "%v %v", found, err)
	return found
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
