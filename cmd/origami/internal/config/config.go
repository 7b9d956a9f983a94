// Package config gathers the user's settings: a flag wins over an environment variable, that over the settings file,
// that over the default. It is the only package that imports viper. Numbers of devices are not settings; they never
// pass through here.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
)

// Settings are the user's choices that outlive one command line. The names in the tags are the keys of the settings
// file.
type Settings struct {
	Arch                 []string      `mapstructure:"arch"`
	Device               string        `mapstructure:"device"`
	Model                string        `mapstructure:"model"`
	Rung                 string        `mapstructure:"rung"`
	KernelsFile          string        `mapstructure:"kernels"`
	CharacterizationFile string        `mapstructure:"characterization"`
	Kernel               string        `mapstructure:"kernel"`
	DType                string        `mapstructure:"dtype"`
	Format               string        `mapstructure:"format"`
	HWParams             string        `mapstructure:"hw_params"`
	LogLevel             string        `mapstructure:"log_level"`
	InProcess            bool          `mapstructure:"in_process"`
	Timeout              time.Duration `mapstructure:"timeout"`
	Plugins              []string      `mapstructure:"plugins"`
	PluginPath           []string      `mapstructure:"plugin_path"`
	LockFile             string        `mapstructure:"lock_file"`
}

// Setting describes one key.
type Setting struct {
	// Key is its name in the settings file, Env the variables that set it, the first that is not empty counts.
	Key string
	Env []string
	// Flag is its name on the command line, empty if it has none.
	Flag string
	Doc  string
}

// All lists the settings in the order in which help shows them.
func All() []Setting {
	setting := func(key, flag, doc string, env ...string) Setting {
		return Setting{Key: key, Flag: flag, Doc: doc, Env: append([]string{"ORIGAMI_" + strings.ToUpper(key)}, env...)}
	}
	return []Setting{
		setting("arch", "arch", "architectures, comma-separated in the environment"),
		setting("device", "device", "device of the one architecture that names none"),
		setting("model", "model", "model; the best one otherwise"),
		setting("rung", "rung", "how much the model may know; all that there is otherwise"),
		setting("kernels", "kernels", "file of what the compiler reports of each kernel, for the rungs from compiled on"),
		setting("characterization", "characterization", "file of the timing pass behind the rung characterized"),
		setting("kernel", "kernel", "kernel family; the architecture's first otherwise"),
		setting("dtype", "dtype", "element type"),
		setting("format", "format", "output format: table, json, csv or tsv"),
		setting("hw_params", "hw-params", "JSON file of hardware numbers that win over all others", "TRITONBLAS_HW_PARAMS"),
		setting("log_level", "log-level", "what of the log is shown: trace, debug, info, warn, error or off"),
		setting("in_process", "in-process", "answer with the built-in models inside this process"),
		setting("timeout", "timeout", "how long a plugin may take to start, and for one answer"),
		setting("plugins", "plugin", "plugin binaries to use, comma-separated in the environment"),
		setting("plugin_path", "", "directories that are searched for trusted plugins, comma-separated in the environment"),
		setting("lock_file", "", "file of the plugins that are trusted, which are found where it says they are"),
	}
}

// The formats that --format takes, and the log levels.
var (
	Formats   = []string{"table", "json", "csv", "tsv"}
	LogLevels = []string{"trace", "debug", "info", "warn", "error", "off"}
)

// Rungs are what --rung takes, low to high.
func Rungs() []string {
	names := make([]string, len(arch.Rungs()))
	for i, r := range arch.Rungs() {
		names[i] = string(r)
	}
	return names
}

// Register adds the flags that every command has.
func Register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringArray("arch", nil, "architecture, as `ID` or ID@DEVICE; repeat it to compare")
	flags.String("device", "", "device of the architecture, by `ID`, or auto for the GPU in this machine (auto:1 for the second); its first device otherwise")
	flags.String("model", "", "`NAME` of the model; the architecture's best otherwise")
	flags.String("rung", "", "how much the model may know, as `RUNG`: "+strings.Join(Rungs(), ", ")+"; all that there is otherwise")
	flags.String("kernels", "", "`FILE` (also .gz) of what the compiler reports of each kernel, in place of the model's own")
	flags.String("characterization", "", "`FILE` (also .gz) of a timing pass over the kernels, in place of the model's own")
	flags.StringArray("option", nil, "setting that only one plugin knows, as `KEY=VALUE`; repeatable")
	flags.String("hw-params", "", "JSON `FILE` of hardware numbers that win over all others")
	flags.String("format", "", "output `FORMAT`: table, json, csv or tsv; a terminal gets table, a pipe tsv")
	flags.Bool("json", false, "short for --format json")
	flags.String("log-level", "", "show log messages from `LEVEL` on: trace, debug, info, warn, error or off")
	flags.Bool("in-process", false, "answer with the built-in models inside this process, without plugins")
	flags.StringArray("plugin", nil, "use the plugin binary at `PATH`; repeatable")
	flags.Duration("timeout", 0, "how long a plugin may take to start, and for one answer, as a `DURATION` (default 30s)")
	flags.String("settings", "", "read settings from `FILE` (default "+defaultFileHelp+")")
}

const defaultFileHelp = "origami/settings.yaml in the user's configuration folder"

// Load returns the settings in force. flags are those of the command that runs; getenv is os.Getenv.
func Load(flags *pflag.FlagSet, getenv func(string) string) (Settings, error) {
	v := viper.New()
	if err := readFile(v, flags, getenv); err != nil {
		return Settings{}, err
	}
	v.SetDefault("log_level", "warn")
	v.SetDefault("timeout", "30s")
	v.SetDefault("dtype", "fp16")
	if dir := configDir(getenv); dir != "" {
		v.SetDefault("lock_file", filepath.Join(dir, "plugins.lock"))
	}
	// Each source is laid over the one below; viper's own binding would read the process's environment and flags at some
	// later time, and cannot say which source is at fault.
	// A device belongs to the architecture that stands beside it: one that names an architecture leaves a device of a
	// lower source behind.
	if getenv("ORIGAMI_ARCH") != "" {
		v.Set("device", "")
	}
	for _, s := range All() {
		for _, name := range s.Env {
			if value := getenv(name); value != "" {
				v.Set(s.Key, value)
				if err := decode(v, &Settings{}); err != nil {
					return Settings{}, err.At("environment variable %s", name)
				}
				break
			}
		}
	}
	if f := flags.Lookup("arch"); f != nil && f.Changed {
		v.Set("device", "")
	}
	for _, s := range All() {
		f := flags.Lookup(s.Flag)
		if s.Flag == "" || f == nil || !f.Changed {
			continue
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			v.Set(s.Key, list.GetSlice())
		} else {
			v.Set(s.Key, f.Value.String())
		}
	}
	var settings Settings
	if err := decode(v, &settings); err != nil {
		return Settings{}, err
	}
	return settings, settings.check(flags)
}

// readFile reads the settings file into v: the one that --settings or ORIGAMI_SETTINGS names, else the user's if there
// is one. Unknown keys are refused.
func readFile(v *viper.Viper, flags *pflag.FlagSet, getenv func(string) string) error {
	file, named := getenv("ORIGAMI_SETTINGS"), true
	if f := flags.Lookup("settings"); f != nil && f.Changed {
		file = f.Value.String()
	}
	if file == "" {
		dir := configDir(getenv)
		if dir == "" {
			return nil
		}
		file, named = filepath.Join(dir, "settings.yaml"), false
	}
	data, err := readText(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return nil
	case limit.Exceeded(err) != nil:
		return limit.Exceeded(err)
	case err != nil:
		return diag.Inputf("the settings file cannot be read: %v", cause(err)).At("%s", file).Do("check --settings and ORIGAMI_SETTINGS")
	}
	return parse(v, file, data)
}

// parse reads the text of a settings file into v.
func parse(v *viper.Viper, file string, data []byte) error {
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(data)); err != nil {
		return diag.Inputf("not a settings file: %v", strings.TrimPrefix(err.Error(), "While parsing config: ")).At("%s", file).Do("write one YAML mapping; `origami help environment` lists the keys")
	}
	var known []string
	for _, s := range All() {
		known = append(known, s.Key)
	}
	keys := v.AllKeys()
	slices.Sort(keys)
	for _, key := range keys {
		if slices.Contains(known, key) {
			continue
		}
		err := diag.Inputf("unknown setting %q", key).At("%s", file)
		if near := diag.Nearest(key, known, 1); len(near) > 0 {
			return err.Do("did you mean %s? the settings: %s", near[0], strings.Join(known, ", "))
		}
		return err.Do("the settings: %s", strings.Join(known, ", "))
	}
	if err := decode(v, &Settings{}); err != nil {
		return err.At("%s", file)
	}
	return nil
}

func readText(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return limit.ReadAll(f, file, limit.Text, "give the settings file")
}

func decode(v *viper.Viper, into *Settings) *diag.Error {
	err := v.UnmarshalExact(into)
	if err == nil {
		return nil
	}
	// mapstructure lists its findings on lines of their own below a heading.
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return diag.Inputf("a setting has the wrong type: %s", strings.TrimSpace(lines[len(lines)-1])).Do("`origami help environment` lists the settings")
}

// check refuses values that no command could use.
func (s *Settings) check(flags *pflag.FlagSet) error {
	if f := flags.Lookup("json"); f != nil && f.Changed && f.Value.String() == "true" {
		if g := flags.Lookup("format"); g.Changed && s.Format != "json" {
			return diag.Inputf("--json and --format %s contradict each other", s.Format).Do("leave one of them out")
		}
		s.Format = "json"
	}
	for _, c := range []struct {
		name, value string
		known       []string
	}{{"format", s.Format, Formats}, {"log-level", s.LogLevel, LogLevels}, {"rung", s.Rung, Rungs()}} {
		if c.value != "" && !slices.Contains(c.known, c.value) {
			return diag.Inputf("unknown %s %q", c.name, c.value).At("--%s", c.name).Do("use one of %s", strings.Join(c.known, ", "))
		}
	}
	if s.Timeout <= 0 {
		return diag.Inputf("the timeout %s is not positive", s.Timeout).At("--timeout").Do("write a duration such as 30s")
	}
	return nil
}

// configDir is the user's configuration folder for origami, empty if there is none.
func configDir(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "origami")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".config", "origami")
	}
	return ""
}

// cause drops the operation and the path, which the message has anyway.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Help is the text of `origami help environment`.
func Help() string {
	var b strings.Builder
	b.WriteString("A flag wins over an environment variable, that over the settings file, that over the default. The settings file is\n" +
		"YAML; --settings or ORIGAMI_SETTINGS name it, otherwise it is " + defaultFileHelp + ".\nUnknown keys in it are errors.\n\n")
	fmt.Fprintf(&b, "  %-12s %-14s %-44s %s\n", "key", "flag", "environment variable", "what")
	for _, s := range All() {
		flag := ""
		if s.Flag != "" {
			flag = "--" + s.Flag
		}
		fmt.Fprintf(&b, "  %-12s %-14s %-44s %s\n", s.Key, flag, strings.Join(s.Env, ", "), s.Doc)
	}
	b.WriteString("\nNO_COLOR, if set, and TERM=dumb turn colour off.\n")
	return b.String()
}
