// Package config gathers the user's settings: a flag wins over an environment variable, that over the settings file,
// that over the default. Numbers of devices are not settings; they never pass through here.
package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/timing"
)

// Settings are the user's choices that outlive one command line. The names in the tags are the keys of the settings
// file.
type Settings struct {
	Arch                 []string      `mapstructure:"arch"`
	Device               string        `mapstructure:"device"`
	Model                string        `mapstructure:"model"`
	Rung                 string        `mapstructure:"rung"`
	Timing               string        `mapstructure:"timing"`
	CompiledFile         string        `mapstructure:"compiled"`
	CharacterizationFile string        `mapstructure:"characterization"`
	Kernel               string        `mapstructure:"kernel"`
	DType                string        `mapstructure:"dtype"`
	Format               string        `mapstructure:"format"`
	HWParams             string        `mapstructure:"hw_params"`
	DeviceFile           string        `mapstructure:"device_file"`
	Wide                 bool          `mapstructure:"wide"`
	LogLevel             string        `mapstructure:"log_level"`
	InProcess            bool          `mapstructure:"in_process"`
	Timeout              time.Duration `mapstructure:"timeout"`
	Plugins              []string      `mapstructure:"plugins"`
	PluginPath           []string      `mapstructure:"plugin_path"`
	LockFile             string        `mapstructure:"lock_file"`

	// Sources say where each setting in force comes from, by key. What is not there is the default.
	Sources map[string]string `mapstructure:"-"`
	// Warnings are what the user should know about where the settings come from.
	Warnings []string `mapstructure:"-"`
}

// Value returns the setting of a key as text, empty if it is not set. Lists have commas.
func (s *Settings) Value(key string) string {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("mapstructure") != key {
			continue
		}
		if list, ok := v.Field(i).Interface().([]string); ok {
			return strings.Join(list, ",")
		}
		return fmt.Sprint(v.Field(i).Interface())
	}
	return ""
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
	compiled := setting("compiled", "compiled",
		"file of what the compiler reports about each kernel, for the rungs from compiled on")
	compiled.Old = "kernels"
	return []Setting{
		setting("arch", "arch", "architectures, comma-separated in the environment"),
		setting("device", "device", "device of the one architecture that names none"),
		setting("model", "model", "model; the best one otherwise"),
		setting("rung", "rung", "how much the model may know; the highest rung otherwise"),
		setting("timing", "timing", "what predicted times are of; model otherwise"),
		compiled,
		setting("characterization", "characterization", "file of the timing pass behind the rung characterized"),
		setting("kernel", "kernel", "kernel family; the architecture's first otherwise"),
		setting("dtype", "dtype", "element type"),
		setting("format", "format", "output format: table, json, csv or tsv; select and rank: also triton, inductor, cuda"),
		setting("wide", "wide", "show all columns of a table, however narrow the terminal is"),
		setting("hw_params", "hw-params", "JSON file of hardware numbers that win over all others",
			"TRITONBLAS_HW_PARAMS"),
		setting("device_file", "device-file", "YAML file of a device, as calibrate writes it"),
		setting("log_level", "log-level", "what of the log is shown: trace, debug, info, warn, error or off"),
		setting("in_process", "in-process", "answer with the built-in models inside this process"),
		setting("timeout", "timeout", "how long a plugin may take to start, and for one answer"),
		setting("plugins", "plugin", "plugin binaries to use, comma-separated in the environment"),
		setting("plugin_path", "",
			"directories that are searched for trusted plugins, comma-separated in the environment"),
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

// The formats in which configurations are pasted into a program, of the commands that PastesKey marks.
const (
	Triton   = "triton"
	Inductor = "inductor"
	CUDA     = "cuda"

	PastesKey = "pastes"
)

// What --format and --log-level take.
var (
	Formats      = []string{Table, JSON, CSV, TSV}
	PasteFormats = []string{Triton, Inductor, CUDA}
	LogLevels    = []string{"trace", "debug", "info", "warn", "error", "off"}
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
	flags.StringArray("arch", nil,
		"architecture, as `ID`, ID@DEVICE or DEVICE, with options and other hardware numbers behind a colon, as in "+
			"mi300x:release=early,clock=1.5GHz; several with commas, or repeat it")
	flags.String("device", "",
		"device of the architecture, by `ID`, or auto for the GPU in this machine (auto:1 for the second); its first "+
			"device otherwise")
	flags.String("model", "", "`NAME` of the model; the architecture's best otherwise")
	flags.String("rung", "",
		"how much the model may know, as `RUNG`: "+strings.Join(Rungs(), ", ")+"; the highest one otherwise")
	flags.String("timing", "",
		"what predicted times are of, as `TIMING`: "+strings.Join(timing.Names(), ", ")+" (default model)")
	flags.String("compiled", "",
		"`FILE` (also .gz) of what the compiler reports about each kernel, instead of the model's file")
	flags.String("characterization", "",
		"`FILE` (also .gz) of a timing pass over the kernels, instead of the model's file")
	flags.StringArray("option", nil, "setting that only one plugin knows, as `KEY=VALUE`; repeatable")
	flags.String("hw-params", "", "JSON `FILE` of hardware numbers that win over all others")
	flags.String("device-file", "",
		"YAML `FILE` of a device, as calibrate writes it; without --arch and --device it is that device")
	flags.String("format", "", "output `FORMAT`: table, json, csv or tsv; from select and rank also "+
		"triton, inductor or cuda, to paste (default table)")
	flags.Bool("json", false, "short for --format json")
	flags.Bool("wide", false, "show all columns of a table, however narrow the terminal is")
	flags.String("log-level", "", "show log messages of plugins from `LEVEL` on: trace, debug (also the opened models), "+
		"info, warn, error or off")
	flags.Bool("in-process", false, "answer with the built-in models inside this process, without plugins")
	flags.StringArray("plugin", nil, "use the plugin binary at `PATH`; repeatable")
	flags.Duration("timeout", 0,
		"how long a plugin may take to start, and for one answer, as a `DURATION` (default 30s)")
	flags.String("settings", "", "read settings from `FILE` (default "+defaultFileHelp+")")
	for _, s := range All() {
		if s.Old != "" {
			flags.String(s.Old, "", "old name of --"+s.Flag)
			_ = flags.MarkHidden(s.Old) // it exists: the line above added it
		}
	}
}

// ChoosesModel reports whether a flag of every command says which model answers; the others say how to answer.
func ChoosesModel(flag string) bool {
	switch flag {
	case "arch", "device", "model", "rung", "timing", "compiled", "characterization", "option", "hw-params", "device-file":
		return true
	}
	return false
}

const defaultFileHelp = "origami/settings.yaml in the user's configuration folder"

// Help is the text of `origami help environment`.
func Help() string {
	var b strings.Builder
	b.WriteString("A flag wins over an environment variable, that over the settings file, that over the default. The " +
		"settings file is\n" +
		"YAML; --settings or ORIGAMI_SETTINGS name it, otherwise it is " + defaultFileHelp +
		".\nUnknown keys in it are " +
		"errors.\n\n")
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
	b.WriteString("\nNO_COLOR, if set, and TERM=dumb turn colour off. COLUMNS, if exported, is the width of tables. " +
		"Where LC_ALL,\nLC_CTYPE or LANG names a locale without UTF-8, texts have ASCII letters only.\n")
	return b.String()
}
