package plugincmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/format"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/show"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/sdk/example"
	"github.com/origami-gemm/origami/sdk/host"
)

// sdkModule is the module that a plugin builds on. A new plugin is a copy of examplePackage.
const (
	sdkModule      = "github.com/origami-gemm/origami"
	examplePackage = sdkModule + "/sdk/example"
)

// newOptions are the flags of `plugin new`.
type newOptions struct {
	name, dir, sdk string
	python         bool
}

func newCommand(f *session.Factory) *cobra.Command {
	o := &newOptions{}
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write the source of a new plugin",
		Long: "Write a Go module with a plugin for the architecture NAME, which builds and passes its tests, and\n" +
			"models the abstract machine of origami's example until you change it. It builds on the version of\n" +
			"origami that this binary was installed from, or, without a network, on a checkout: --sdk, around\n" +
			"the working directory, or around this binary. With --python, write an executor in Python instead,\n" +
			"for a device that does not exist until you change it.",
		Example: "  origami plugin new mychip\n" +
			"  origami plugin new mybench --python\n" +
			"  origami plugin new mychip --dir ~/src/mychip",
		Args: session.OneArgument("NAME", "the id of the architecture or the executor"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return runNew(cmd.Context(), f, o)
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", "",
		"write to `DIR`, which must be empty or not there (default origami-plugin-NAME)")
	cmd.Flags().StringVar(&o.sdk, "sdk", "", "build on the origami checkout in `DIR`")
	cmd.Flags().BoolVar(&o.python, "python", false, "write an executor in Python")
	return cmd
}

// created is what `plugin new --json` prints.
type created struct {
	Name    string   `json:"name"`              // its name
	Dir     string   `json:"dir"`               // where it is
	Module  string   `json:"module,omitempty"`  // the Go module, if it is one
	SDK     string   `json:"sdk,omitempty"`     // the checkout that it builds on
	Version string   `json:"version,omitempty"` // or the version of the module
	Files   []string `json:"files"`             // what was written
	Next    []string `json:"next"`              // the next commands
}

func runNew(ctx context.Context, f *session.Factory, o *newOptions) error {
	c := created{Name: o.name, Dir: cmp.Or(o.dir, host.Prefix+o.name)}
	if !o.python {
		c.Module = host.Prefix + c.Name
	}
	if err := checkNewName(ctx, f, o.name); err != nil {
		return err
	}
	if entries, err := os.ReadDir(c.Dir); err == nil && len(entries) > 0 {
		return diag.Inputf("the folder is not empty").At("%s",
			c.Dir).Do("name an empty or a new folder with --dir")
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diag.Inputf("it cannot be written to: %v", err).At("%s", c.Dir).Do("name another folder with --dir")
	}
	write := c.inGo
	if o.python {
		write = c.inPython
	}
	files, err := write(o.sdk)
	if err != nil {
		return err
	}
	for name := range files {
		c.Files = append(c.Files, name)
	}
	slices.Sort(c.Files)
	for _, name := range c.Files {
		target := filepath.Join(c.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(files[name], []byte("#!")) {
			mode = 0o755
		}
		if err := os.WriteFile(target, files[name], mode); err != nil {
			return err
		}
	}
	c.Next = append([]string{"cd " + quotedWord(c.Dir)}, c.Next...)
	if f.Format() == show.JSON {
		return show.JSONLine(f.Streams, c)
	}
	f.Streams.Printf("plugin %s is in %s, on the origami %s; next:\n", c.Name, c.Dir, cmp.Or(c.Version, c.SDK))
	for _, step := range c.Next {
		f.Streams.Printf("  %s\n", step)
	}
	return nil
}

// inGo returns the files of an architecture in Go, and enters what they build on and the next commands.
func (c *created) inGo(sdk string) (map[string][]byte, error) {
	files, err := c.source()
	if err != nil {
		return nil, err
	}
	if c.Version = installedVersion(); c.Version != "" && sdk == "" {
		files["go.mod"] = fmt.Appendf(nil, "module %s\n\ngo %s\n\nrequire %s %s\n", c.Module,
			strings.TrimPrefix(goVersion(), "go"), sdkModule, c.Version)
		c.Next = append(c.Next, "go mod tidy")
	} else {
		c.Version = ""
		if c.SDK, err = findSDK(sdk); err != nil {
			return nil, err
		}
		if files["go.mod"], files["go.sum"], err = requirements(c.Module, c.SDK); err != nil {
			return nil, err
		}
	}
	binary := host.Prefix + c.Name
	c.Next = append(c.Next, "go build ./cmd/"+binary, "go test ./...", "origami plugin trust ./"+binary,
		"origami --arch "+c.Name+" select -m 4096 -n 4096 -k 4096")
	return files, nil
}

// inPython returns the file of an executor in Python, and enters what it builds on and the next commands.
func (c *created) inPython(sdk string) (map[string][]byte, error) {
	var err error
	if c.SDK, err = findSDK(sdk); err != nil {
		return nil, err
	}
	binary := host.Prefix + c.Name
	c.Next = []string{"python3 -m pip install --target lib " + quotedWord(filepath.Join(c.SDK, "sdk", "python")),
		"origami plugin check ./" + binary, "origami plugin trust ./" + binary,
		"origami --arch sm90@h200 tune -m 512 -n 512 -k 512 --max-measurements 8 --executor " + c.Name}
	return map[string][]byte{binary: []byte(strings.ReplaceAll(example.Executor, "example", c.Name))}, nil
}

// quotedWord quotes a path for a shell.
func quotedWord(p string) string {
	word, _ := printable.ShellWords(printable.Line(p))
	return word
}

var pluginID = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)

// checkNewName refuses a name that is not an id or already has a meaning.
func checkNewName(ctx context.Context, f *session.Factory, name string) error {
	if !pluginID.MatchString(name) {
		return diag.Inputf("%q is no id", name).At("NAME").
			Do("begin with a small letter; small letters and digits follow, in words joined by - or _, as in gfx1100")
	}
	plugins, err := f.Plugins(ctx)
	if err != nil {
		return err
	}
	manifests, err := f.Manifests(ctx)
	if err != nil {
		return err
	}
	var builtin []arch.Manifest
	for _, p := range plugins {
		if !p.Builtin {
			continue
		}
		if p.Name == name {
			return diag.Inputf("the built-in plugin %s has that name", name).At("NAME").
				Do("use another name, or add a device file to it: configs/README.md says how")
		}
		for _, m := range manifests {
			if m.Name == p.Name {
				builtin = append(builtin, m)
			}
		}
	}
	if m, err := arch.Find(builtin, name); err == nil {
		return diag.Inputf("the built-in plugin %s has %s, which comes first", m.Manifest.Name, m.ID()).At("NAME").
			Do("use another name, or add a device file to it: configs/README.md says how")
	}
	return nil
}

// packageName makes a Go package name from an id, different from the imports of the source.
func packageName(id string) string {
	name := strings.NewReplacer("-", "", "_", "").Replace(id)
	imported := []string{"main", "context", "embed", "fmt", "fnv", "math", "os", "rand", "slices", "testing", "time",
		"arch", "diag", "exec", "fit", "gemm", "hw", "unit", "catalog", "conformance", "declare", "serve"}
	if token.IsKeyword(name) || slices.Contains(imported, name) {
		name += "plugin"
	}
	return name
}

// source is the example's source under the new name.
func (c *created) source() (map[string][]byte, error) {
	pkg := packageName(c.Name)
	imported := pkg + ` "` + c.Module + `"`
	// At each place the first match counts.
	rename := strings.NewReplacer(
		`"`+examplePackage+`"`, imported,
		host.Prefix+"example", host.Prefix+c.Name,
		"ackage example", "ackage "+pkg, // also package example_test
		"example.Provider", pkg+".Provider",
		"example.Simulator", pkg+".Simulator",
		"example", c.Name,
	)
	files := map[string][]byte{}
	err := fs.WalkDir(example.Source, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := example.Source.ReadFile(name)
		if err != nil {
			return err
		}
		text = []byte(rename.Replace(string(text)))
		if path.Ext(name) == ".go" {
			if text, err = format.Source(text); err != nil { // the order of imports depends on the name
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		files[rename.Replace(name)] = text
		return nil
	})
	return files, err
}

// installedVersion is the version of the module that this binary was installed from. It is empty if the binary was
// built in a checkout.
func installedVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path == sdkModule && info.Main.Sum != "" {
		return info.Main.Version
	}
	return ""
}

// goVersion is the version of the Go toolchain that built this binary.
func goVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		version, _, _ := strings.Cut(info.GoVersion, " ")
		return version
	}
	return ""
}

// findSDK returns the folder of the origami checkout to build on: the named one, or that around the working directory
// or around this binary.
func findSDK(named string) (string, error) {
	if named != "" {
		if root := checkout(named); root != "" {
			return root, nil
		}
		return "", diag.Inputf("it is no checkout of %s", sdkModule).At("--sdk %s", named).
			Do("name the folder that has its go.mod")
	}
	var around []string
	if dir, err := os.Getwd(); err == nil {
		around = append(around, dir)
	}
	if self, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(self); err == nil {
			self = resolved
		}
		around = append(around, filepath.Dir(self))
	}
	for _, dir := range around {
		if root := checkout(dir); root != "" {
			return root, nil
		}
	}
	return "", diag.Inputf("the source of origami, which a plugin builds on, is neither around the working directory " +
		"nor around this binary").
		At("plugin new").Do("name a checkout of it with --sdk DIR")
}

// checkout returns the folder with origami's go.mod at or above dir, empty if there is none.
func checkout(dir string) string {
	dir, err := filepath.Abs(dir)
	for err == nil {
		text, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
		if first, _, _ := bytes.Cut(text, []byte("\n")); strings.TrimSpace(string(first)) == "module "+sdkModule {
			return dir
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// requirements writes go.mod and go.sum of a module on a checkout of origami, with the requirements of origami. If
// origami builds, the plugin builds too, without a network.
func requirements(module, sdk string) (mod, sum []byte, err error) {
	mod, err1 := os.ReadFile(filepath.Join(sdk, "go.mod"))
	sum, err2 := os.ReadFile(filepath.Join(sdk, "go.sum"))
	mod = bytes.Replace(mod, []byte("module "+sdkModule), []byte("module "+module), 1)
	return fmt.Appendf(mod, "\nrequire %s v0.0.0\n\nreplace %s => %s\n", sdkModule, sdkModule, quoted(sdk)), sum,
		errors.Join(err1, err2)
}

// quoted quotes a path for go.mod.
func quoted(p string) string {
	if strings.ContainsAny(p, " \t'`\"()[]{},") {
		return fmt.Sprintf("%q", p)
	}
	return p
}
