// Package compat holds the host to plugins, and plugins to hosts, that were built from older revisions.
package compat_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/sdk/host"
	"github.com/origami-gemm/origami/sdk/wire"
)

// releases are the API versions whose sources are kept in testdata, oldest first. A revision speaks all up to its own.
var releases = []string{"1.0.0", wire.API11, wire.API12}

// Each host drives each plugin, across every pair of revisions, and what arrives is what the plugin's own revision
// computes in process. docs/plugin-protocol.md has the table that this proves.
func TestOldAndNewWorkTogether(t *testing.T) {
	peers := map[string]string{"now": build(t, repository(t), "./sdk/compat/testdata/peer", "example")}
	for _, release := range releases {
		peers[release] = build(t, unpack(t, release), "./sdk/compat/testdata/peer", "example")
	}
	machine := predictions(t, output(t, peers["now"], "here"))
	for plugin, path := range peers {
		lock := trust(t, path)
		want := output(t, path, "here")
		if got := predictions(t, want); !reflect.DeepEqual(got, machine) {
			t.Errorf("the example of %s is another machine: %v\nnow %v", plugin, got, machine)
		}
		for of, program := range peers {
			if got := output(t, program, "host", path, lock); got != want {
				t.Errorf("host %s, plugin %s: got\n%s\nwant\n%s", of, plugin, got, want)
			}
		}
		if plugin != "now" {
			t.Run("what it cannot know/"+plugin, func(t *testing.T) { checkRefusals(t, path, lock, plugin) })
		}
	}
}

// predictions returns what the example says of problems, but for its terms, which may be told otherwise in another
// revision.
func predictions(t *testing.T, answers string) []map[string]any {
	t.Helper()
	var a struct{ Problems []map[string]any }
	if err := json.Unmarshal([]byte(answers), &a); err != nil {
		t.Fatalf("%v: %s", err, answers)
	}
	for _, p := range a.Problems {
		if list, ok := p["Ranked"].([]any); !ok || len(list) == 0 {
			t.Fatalf("nothing is ranked: %v", p)
		}
		delete(p, "Terms")
	}
	return a.Problems
}

// trust writes a lock file for one plugin in the form that every host reads: the first ones know no paths.
func trust(t *testing.T, path string) (lock string) {
	t.Helper()
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lock = filepath.Join(t.TempDir(), "lock")
	text := fmt.Sprintf(`{"plugins":{%q:{"sha256":"%x"}}}`, strings.TrimPrefix(filepath.Base(path), host.Prefix),
		sha256.Sum256(program))
	if err := os.WriteFile(lock, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return lock
}

// checkRefusals asks a plugin of a release for what later ones have.
func checkRefusals(t *testing.T, path, lock, release string) {
	h := host.New(host.Options{Plugins: []string{path}, LockFile: lock})
	defer func() { _ = h.Close() }()
	speaks := releases[:slices.Index(releases, release)+1]
	plugins, err := h.Plugins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p := plugins[0]; p.State != host.OK || !slices.Equal(p.APIVersions, speaks) {
		t.Fatalf("got %+v, want a usable plugin that speaks API %v", p, speaks)
	}
	for _, r := range []arch.OpenRequest{
		{Live: &arch.LiveDevice{Name: "GPU", Attributes: map[string]float64{"units": 8}}},
		{Rung: arch.RungSpec},
		{Compiled: []byte("bm,bn\n")},
		{Characterization: []byte("bm,bn\n")},
	} {
		r.Arch = "example"
		_, err := h.Open(t.Context(), r)
		var fault *host.PluginError
		refused := errors.As(err, &fault) && fault.Fault == host.FaultVersion && strings.Contains(err.Error(),
			"it speaks API "+strings.Join(speaks, ", ")+",")
		if knows := slices.Contains(speaks, wire.API11); refused == knows {
			t.Errorf("%+v of a plugin of API %s: got %v", r, release, err)
		}
	}
	m, err := h.Find(t.Context(), "example")
	if err != nil || m.Manifest.Calibrates || m.Manifest.Ladder || len(m.Arch.Fitted) > 0 {
		t.Errorf("a plugin of API %s has optional interfaces: %+v, %v", release, m.Manifest, err)
	}
	a, err := h.Open(t.Context(), arch.OpenRequest{Arch: "example"})
	if err != nil {
		t.Fatalf("after the refusals: %v", err)
	}
	for _, c := range a.Describe().Constants {
		if c.Fits() {
			t.Errorf("a plugin of API %s can be fitted: %+v", release, c)
		}
	}
	// Named axes and what problems have since API 1.3.0 are refused in every call. What has neither is still answered.
	plain, padded := gemm.New(64, 64, 64), gemm.New(64, 64, 64)
	padded.LDA = 128
	axes := []arch.AxisValues{{Name: "cluster", Values: []string{"2x1"}}}
	for name, call := range calls(t, a) {
		err := call(plain, withAxis(t, tiled), axes)
		if knows := slices.Contains(speaks, wire.API12); !knows && !refuses(err, speaks, namedAxes) {
			t.Errorf("%s with a named axis of a plugin of API %s: %v", name, release, err)
		}
		if err := call(padded, tiled, nil); !refuses(err, speaks, storage) {
			t.Errorf("%s with a leading dimension of a plugin of API %s: %v", name, release, err)
		}
		if err := call(plain, tiled, nil); err != nil {
			t.Errorf("%s with neither: %v", name, err)
		}
	}
}

// calls are the calls of an architecture with a problem, and with a configuration or the axes of a space.
func calls(t *testing.T, a arch.Architecture) map[string]func(gemm.Problem, gemm.Config, []arch.AxisValues) error {
	return map[string]func(gemm.Problem, gemm.Config, []arch.AxisValues) error{
		"Candidates": func(p gemm.Problem, _ gemm.Config, axes []arch.AxisValues) error {
			_, err := a.Candidates(t.Context(), p, arch.Space{Axes: axes})
			return err
		},
		"Rank": func(p gemm.Problem, _ gemm.Config, axes []arch.AxisValues) error {
			_, err := selector.Rank(t.Context(), a, selector.Request{Problems: []gemm.Problem{p}, Space: arch.Space{Axes: axes}})
			return err
		},
		"Estimate": func(p gemm.Problem, c gemm.Config, _ []arch.AxisValues) error {
			return a.Estimate(t.Context(), make([]arch.Estimate, 1), p, []gemm.Config{c})
		},
		"Terms": func(p gemm.Problem, c gemm.Config, _ []arch.AxisValues) error {
			return a.Terms(t.Context(), make([]float64, len(a.Describe().Terms)), p, []gemm.Config{c})
		},
		"Mapping": func(p gemm.Problem, c gemm.Config, _ []arch.AxisValues) error {
			_, err := a.Mapping(t.Context(), p, c)
			return err
		},
	}
}

var tiled = gemm.Config{BlockM: 64, BlockN: 64, BlockK: 32, NumWarps: 1, NumStages: 1, SplitK: 1, Kernel: "tiled"}

// withAxis is a configuration with a named axis.
func withAxis(t *testing.T, c gemm.Config) gemm.Config {
	t.Helper()
	axes, err := gemm.NewAxes(gemm.AxisValue{Name: "cluster", Value: "2x1"})
	if err != nil {
		t.Fatal(err)
	}
	c.Axes = axes
	return c
}

// What older plugins do not know, as the host names it.
const (
	namedAxes = "no named axes of configurations"
	storage   = "neither output types nor leading dimensions nor alignments nor groups nor nests"
)

// refuses says whether the host has refused to send something to a plugin that speaks these API versions.
func refuses(err error, speaks []string, what string) bool {
	var fault *host.PluginError
	return errors.As(err, &fault) && fault.Fault == host.FaultVersion &&
		strings.Contains(err.Error(), "it speaks API "+strings.Join(speaks,
			", ")+", which knows "+what)
}

// An executor of API 1.1.0, the first that has them, under the present host.
func TestOldExecutor(t *testing.T) {
	path := build(t, unpack(t, wire.API11), "./sdk/compat/testdata/executor", "fake")
	h := host.New(host.Options{Plugins: []string{path}, LockFile: trust(t, path)})
	defer func() { _ = h.Close() }()
	remote, err := h.Executor(t.Context(), "fake")
	if err != nil {
		t.Fatal(err)
	}
	local, err := fake.ExecutorProvider{}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "Devices", func(x exec.Executor) (any, error) { return x.Devices(t.Context()) }, local, remote)
	same(t, "Environment", func(x exec.Executor) (any, error) { return x.Environment(t.Context(), 1) }, local, remote)
	c := gemm.Config{BlockM: 128, BlockN: 64, BlockK: 32, NumWarps: 4, NumStages: 3, SplitK: 1, Kernel: "one"}
	if _, err := remote.Compile(t.Context(), 0, gemm.New(64, 128, 256), withAxis(t, c)); !refuses(err,
		[]string{wire.API11}, namedAxes) {
		t.Errorf("compiling a kernel with a named axis: %v", err)
	}
	wide := gemm.New(64, 128, 256)
	wide.Out = gemm.FP32
	if _, err := remote.Compile(t.Context(), 0, wide, c); !refuses(err, []string{wire.API11}, storage) {
		t.Errorf("compiling a kernel with another output type: %v", err)
	}
	for size := range 8 {
		same(t, "Compile, Check and Measure", func(x exec.Executor) (any, error) {
			k, err := x.Compile(t.Context(), 0, gemm.New(64+size, 128, 256), c)
			if err != nil {
				return nil, err
			}
			defer func() { _ = k.Close() }()
			numerics, err := k.Check(t.Context())
			if err != nil {
				return nil, err
			}
			var samples []exec.Sample
			err = k.Measure(t.Context(), exec.MeasureOptions{Warmup: 2, Input: "normal"}, func(s exec.Sample) bool {
				samples = append(samples, s)
				return len(samples) < 20
			})
			return []any{k.Resources(), numerics, samples}, err
		}, local, remote)
	}
}

func same(t *testing.T, what string, ask func(exec.Executor) (any, error), local, remote exec.Executor) {
	t.Helper()
	want, err := ask(local)
	got, remoteErr := ask(remote)
	if err != nil || remoteErr != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %v\nwant %+v, %v", what, got, remoteErr, want, err)
	}
}

// repository returns the root of the source tree.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// oldProvider stands for testdata/peer/provider.go in API 1.0.0, where the example was a type.
const oldProvider = `package main

import "github.com/origami-gemm/origami/core/arch"
import "github.com/origami-gemm/origami/sdk/example"

func provider() (arch.Provider, error) { return example.Provider{}, nil }
`

// unpack lays out the sources of a release, with the programs of testdata.
func unpack(t *testing.T, release string) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(filepath.Join("testdata", "api-"+release+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	in, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, r io.Reader) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		text, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for files := tar.NewReader(in); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			put(header.Name, files)
		}
	}
	for _, source := range []string{"peer/main.go", "peer/provider.go"} {
		source = filepath.Join("testdata", filepath.FromSlash(source))
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		put("sdk/compat/"+filepath.ToSlash(source), bytes.NewReader(text))
	}
	put("sdk/compat/testdata/executor/main.go", strings.NewReader(oldExecutor))
	if release == "1.0.0" {
		put("sdk/compat/testdata/peer/provider.go", strings.NewReader(oldProvider))
	}
	return dir
}

// oldExecutor is an executor plugin of the revision that it is built in. Its measurements are made up.
const oldExecutor = `package main

import (
	"github.com/origami-gemm/origami/sdk/internal/fake"
	"github.com/origami-gemm/origami/sdk/serve"
)

func main() { serve.MainExecutor(fake.ExecutorProvider{}) }
`

// build builds a program as a plugin of that name and returns its path. Dependencies are those of the repository, so
// that what the tests have compiled is what it needs, and all that it needs.
func build(t *testing.T, tree, program, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds older revisions")
	}
	if _, err := osexec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	path := filepath.Join(t.TempDir(), host.Prefix+name)
	cmd := osexec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-modfile="+filepath.Join(repository(t),
		"go.mod"), "-o", path, program)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s in %s: %v\n%s", program, tree, err, out)
	}
	return path
}

func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := osexec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, errs.String())
	}
	return oneNotation(out.String())
}

// long is a configuration as revisions up to 1.2.0 write it: 32x64x16,warps=4,stages=2,split=1.
var long = regexp.MustCompile(`\b\d+x\d+x\d+(,[a-z_]+=[^,"\s\]]+)+`)

// oneNotation writes configurations as today.
func oneNotation(text string) string {
	return long.ReplaceAllStringFunc(text, func(config string) string {
		parts := strings.Split(config, ",")
		for i, part := range parts {
			for _, f := range gemm.Fields() {
				if value, is := strings.CutPrefix(part, f.Key+"="); is && f.Key != "" {
					parts[i] = string(f.Letter) + value
				}
			}
		}
		return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "k1" }), " ")
	})
}
