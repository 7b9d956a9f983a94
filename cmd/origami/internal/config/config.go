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
	"strconv"
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
	CompiledFile         string        `mapstructure:"compiled"`
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

	// Warnings are what the user should know about where the settings come from.
	Warnings []string `mapstructure:"-"`
}

// Setting describes one key.
type Setting struct {
	// Key is its name in the settings file, Env the variables that set it, the first that is not empty counts.
	Key string
	Env []string
	// Flag is its name on the command line, empty if it has none.
	Flag string
	Doc  string
	// Old is an earlier name of the key and the flag, which still works; empty if there is none.
	Old string
}

// envOf is the environment variable of a key.
func envOf(key string) string { return "ORIGAMI_" + strings.ToUpper(key) }

// All lists the settings in the order in which help shows them.
func All() []Setting {
	setting := func(key, flag, doc string, env ...string) Setting {
		return Setting{Key: key, Flag: flag, Doc: doc, Env: append([]string{envOf(key)}, env...)}
	}
	compiled := setting("compiled", "compiled", "file of what the compiler reports about each kernel, for the rungs from compiled on")
	compiled.Old = "kernels"
	return []Setting{
		setting("arch", "arch", "architectures, comma-separated in the environment"),
		setting("device", "device", "device of the one architecture that names none"),
		setting("model", "model", "model; the best one otherwise"),
		setting("rung", "rung", "how much the model may know; all that there is otherwise"),
		compiled,
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

// The formats that --format takes. CSV and TSV hold the same columns and differ in the separator.
const (
	Table = "table"
	JSON  = "json"
	CSV   = "csv"
	TSV   = "tsv"
)

// What --format and --log-level take.
var (
	Formats   = []string{Table, JSON, CSV, TSV}
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
	flags.String("compiled", "", "`FILE` (also .gz) of what the compiler reports about each kernel, instead of the model's file")
	flags.String("characterization", "", "`FILE` (also .gz) of a timing pass over the kernels, instead of the model's file")
	flags.StringArray("option", nil, "setting that only one plugin knows, as `KEY=VALUE`; repeatable")
	flags.String("hw-params", "", "JSON `FILE` of hardware numbers that win over all others")
	flags.String("format", "", "output `FORMAT`: table, json, csv or tsv; a terminal gets table, a pipe tsv")
	flags.Bool("json", false, "short for --format json")
	flags.String("log-level", "", "show log messages from `LEVEL` on: trace, debug, info, warn, error or off")
	flags.Bool("in-process", false, "answer with the built-in models inside this process, without plugins")
	flags.StringArray("plugin", nil, "use the plugin binary at `PATH`; repeatable")
	flags.Duration("timeout", 0, "how long a plugin may take to start, and for one answer, as a `DURATION` (default 30s)")
	flags.String("settings", "", "read settings from `FILE` (default "+defaultFileHelp+")")
	for _, s := range All() {
		if s.Old != "" {
			flags.String(s.Old, "", "old name of --"+s.Flag)
			_ = flags.MarkHidden(s.Old) // it exists: the line above added it
		}
	}
}

const defaultFileHelp = "origami/settings.yaml in the user's configuration folder"

// Load returns the settings in force. flags are those of the command that runs; getenv is os.Getenv.
//
// Each source is laid over the one below and checked at once, so that an error names the source. viper's own binding
// would read the environment and the flags later, and could not say which source is wrong.
func Load(flags *pflag.FlagSet, getenv func(string) string) (Settings, error) {
	v := viper.New()
	v.SetDefault("log_level", "warn")
	v.SetDefault("timeout", "30s")
	v.SetDefault("dtype", "fp16")
	if dir := configDir(getenv); dir != "" {
		v.SetDefault("lock_file", filepath.Join(dir, "plugins.lock"))
	}
	warnings, err := readFile(v, flags, getenv)
	if err != nil {
		return Settings{}, err
	}
	more, err := readEnvironment(v, getenv)
	if err != nil {
		return Settings{}, err
	}
	warnings = append(warnings, more...)
	more, err = readFlags(v, flags)
	if err != nil {
		return Settings{}, err
	}
	settings, failure := check(v)
	if failure != nil {
		return Settings{}, failure
	}
	settings.Warnings = append(warnings, more...)
	return settings, nil
}

// readEnvironment lays the environment variables over v. A device belongs to the architecture beside it: a source that
// names an architecture drops the device of a lower source.
func readEnvironment(v *viper.Viper, getenv func(string) string) (warnings []string, err error) {
	if getenv("ORIGAMI_ARCH") != "" {
		v.Set("device", "")
	}
	for _, s := range All() {
		names := s.Env
		if s.Old != "" {
			names = append(slices.Clone(names), envOf(s.Old))
		}
		for _, name := range names {
			value := getenv(name)
			if value == "" {
				continue
			}
			v.Set(s.Key, value)
			if _, err := check(v); err != nil {
				return nil, err.At("environment variable %s", name)
			}
			if s.Old != "" && name == envOf(s.Old) {
				warnings = append(warnings, fmt.Sprintf("the environment variable %s is now %s", name, envOf(s.Key)))
			}
			break
		}
	}
	return warnings, nil
}

// readFlags lays the flags of the command line over v.
func readFlags(v *viper.Viper, flags *pflag.FlagSet) (warnings []string, err error) {
	if changed(flags, "arch") != nil {
		v.Set("device", "")
	}
	for _, s := range All() {
		f := changed(flags, s.Flag)
		if old := changed(flags, s.Old); old != nil {
			if f != nil {
				return nil, diag.Inputf("--%s is the old name of --%s", s.Old, s.Flag).Do("leave it out")
			}
			f = old
			warnings = append(warnings, fmt.Sprintf("the flag --%s is now --%s", s.Old, s.Flag))
		}
		if f == nil {
			continue
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			v.Set(s.Key, list.GetSlice())
		} else {
			v.Set(s.Key, f.Value.String())
		}
		if _, err := check(v); err != nil {
			return nil, err.At("--%s", s.Flag)
		}
	}
	if f := changed(flags, "json"); f != nil && f.Value.String() == "true" {
		if changed(flags, "format") != nil && v.GetString("format") != JSON {
			return nil, diag.Inputf("--json and --format %s contradict each other", v.GetString("format")).
				Do("leave one of them out")
		}
		v.Set("format", JSON)
	}
	return warnings, nil
}

// changed returns the flag of that name if the command has it and the command line sets it.
func changed(flags *pflag.FlagSet, name string) *pflag.Flag {
	if f := flags.Lookup(name); name != "" && f != nil && f.Changed {
		return f
	}
	return nil
}

// readFile reads the settings file into v: the one that --settings or ORIGAMI_SETTINGS names, else the user's if there
// is one. Unknown keys are refused.
func readFile(v *viper.Viper, flags *pflag.FlagSet, getenv func(string) string) (warnings []string, err error) {
	file, named := getenv("ORIGAMI_SETTINGS"), true
	if f := changed(flags, "settings"); f != nil {
		file = f.Value.String()
	}
	if file == "" {
		dir := configDir(getenv)
		if dir == "" {
			return nil, nil
		}
		file, named = filepath.Join(dir, "settings.yaml"), false
	}
	data, err := readText(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return nil, nil
	case limit.Exceeded(err) != nil:
		return nil, limit.Exceeded(err)
	case err != nil:
		return nil, diag.Inputf("the settings file cannot be read: %v", cause(err)).At("%s", file).
			Do("check --settings and ORIGAMI_SETTINGS")
	}
	return parse(v, file, data)
}

// parse reads the text of a settings file into v.
func parse(v *viper.Viper, file string, data []byte) (warnings []string, err error) {
	read := viper.New()
	read.SetConfigType("yaml")
	if err := read.ReadConfig(bytes.NewReader(data)); err != nil {
		return nil, diag.Inputf("not a settings file: %v", strings.TrimPrefix(err.Error(), "While parsing config: ")).
			At("%s", file).Do("write one YAML mapping; `origami help environment` lists the keys")
	}
	var known []string
	now := map[string]string{} // old keys
	for _, s := range All() {
		known = append(known, s.Key)
		if s.Old != "" {
			now[s.Old] = s.Key
		}
	}
	values := read.AllSettings()
	keys := read.AllKeys()
	slices.Sort(keys)
	for _, key := range keys {
		if slices.Contains(known, key) {
			continue
		}
		if name, ok := now[key]; ok {
			if _, both := values[name]; both {
				return nil, diag.Inputf("%s is the old name of %s", key, name).At("%s", file).Do("leave it out")
			}
			values[name] = values[key]
			delete(values, key)
			warnings = append(warnings, fmt.Sprintf("%s: the key %s is now %s", file, key, name))
			continue
		}
		err := diag.Inputf("unknown setting %q", key).At("%s", file)
		if near := diag.Nearest(key, known, 1); len(near) > 0 {
			return nil, err.Do("did you mean %s? the settings: %s", near[0], strings.Join(known, ", "))
		}
		return nil, err.Do("the settings: %s", strings.Join(known, ", "))
	}
	if err := v.MergeConfigMap(values); err != nil {
		return nil, err
	}
	if _, err := check(v); err != nil {
		return nil, err.At("%s", file)
	}
	return warnings, nil
}

func readText(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return limit.ReadAll(f, file, limit.Text, "give the settings file")
}

// check decodes the settings and refuses values that no command could use. The error does not say where the value is.
func check(v *viper.Viper) (Settings, *diag.Error) {
	const help = "`origami help environment` lists the settings"
	var s Settings
	switch timeout := v.Get("timeout").(type) {
	case int, float64:
		return s, diag.Inputf("the timeout %v has no unit", timeout).Do("write a duration such as 30s")
	case string:
		if _, err := time.ParseDuration(timeout); err != nil {
			return s, diag.Inputf("the timeout %q is not a duration", timeout).Do("write one such as 30s")
		}
	}
	if text, ok := v.Get("in_process").(string); ok {
		if _, err := strconv.ParseBool(text); err != nil {
			return s, diag.Inputf("in_process %q is neither true nor false", text).Do("write true or false")
		}
	}
	if err := v.UnmarshalExact(&s); err != nil {
		// mapstructure lists its findings on lines of their own below a heading.
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		return s, diag.Inputf("a setting has the wrong type: %s", strings.TrimSpace(lines[len(lines)-1])).Do(help)
	}
	for _, c := range []struct {
		name, value string
		known       []string
	}{{"format", s.Format, Formats}, {"log level", s.LogLevel, LogLevels}, {"rung", s.Rung, Rungs()}} {
		if c.value != "" && !slices.Contains(c.known, c.value) {
			return s, diag.Inputf("unknown %s %q", c.name, c.value).Do("use one of %s", strings.Join(c.known, ", "))
		}
	}
	if s.Timeout <= 0 {
		return s, diag.Inputf("the timeout %s is not positive", s.Timeout).Do("write a duration such as 30s")
	}
	return s, nil
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
	rows := [][4]string{{"key", "flag", "environment variable", "what"}}
	for _, s := range All() {
		flag := ""
		if s.Flag != "" {
			flag = "--" + s.Flag
		}
		rows = append(rows, [4]string{s.Key, flag, strings.Join(s.Env, ", "), s.Doc})
	}
	var widths [3]int
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], len(row[i]))
		}
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "  %-*s  %-*s  %-*s  %s\n", widths[0], row[0], widths[1], row[1], widths[2], row[2], row[3])
	}
	b.WriteString("\nNO_COLOR, if set, and TERM=dumb turn colour off.\n")
	return b.String()
}
