// Package config gathers the user's settings: a flag wins over an environment variable, that over the settings file,
// that over the default. Numbers of devices are not settings; they never pass through here.
package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/timing"
)

// Settings are the user's choices that outlive one command line. All describes them.
type Settings struct {
	Arch                               []string
	Device, Model, Rung, Timing        string
	CompiledFile, CharacterizationFile string
	Kernel, DType, Format              string
	HWParams, DeviceFile               string
	Wide, InProcess                    bool
	LogLevel                           string
	Timeout                            time.Duration
	Plugins, PluginPath                []string
	LockFile                           string

	// Warnings are what the user should know about where the settings come from.
	Warnings []string

	source func(Setting) string // where a setting comes from; nil if all are defaults
}

// Source says where the setting of a key comes from: a flag, an environment variable, a line of the settings file, or
// the default.
func (s *Settings) Source(key string) string {
	all := s.All()
	setting := all[slices.IndexFunc(all, func(x Setting) bool { return x.Key == key })]
	if s.source == nil || setting.Value() == "" {
		return byDefault
	}
	return s.source(setting)
}

// byDefault is the source of what no source sets.
const byDefault = "default"

// Setting describes one key.
type Setting struct {
	// Key is its name in the settings file, Flag its name on the command line, empty if it has none.
	Key, Flag string
	// Doc explains it, with the name of its value in back quotes.
	Doc string
	// Values are what it takes, nil if that is open.
	Values []string

	kind kind
	to   any // a pointer to the field of Settings
}

type kind int

const (
	plain  kind = iota
	detail      // few need it
	ofVerb      // the commands that have the flag register it
)

// Value returns the setting as text, empty if it is not set. Lists have commas.
func (s *Setting) Value() string {
	if list, ok := s.to.(*[]string); ok {
		return strings.Join(*list, ",")
	}
	return fmt.Sprint(reflect.ValueOf(s.to).Elem())
}

// Dashed is its flag as it is typed, empty if it has none.
func (s *Setting) Dashed() string {
	if s.Flag == "" {
		return ""
	}
	return "--" + s.Flag
}

// Env lists the environment variables that set it; the first non-empty variable counts.
func (s *Setting) Env() []string {
	env := []string{"ORIGAMI_" + strings.ToUpper(s.Key)}
	if s.Key == "hw_params" {
		env = append(env, "TRITONBLAS_HW_PARAMS")
	}
	return env
}

// All lists the settings in the order in which help shows them.
func (s *Settings) All() []Setting {
	return []Setting{
		{"arch", "arch",
			"architecture, as `ID`, ID@DEVICE or DEVICE, with options and other hardware numbers behind a " +
				"colon, as in mi300x:release=early,clock=1.5GHz; several with commas, or repeat it",
			nil, plain, &s.Arch},
		{"device", "device",
			"device of the architecture, by `ID`, or auto for the GPU in this machine (auto:1 for the second); " +
				"its first device otherwise", nil, plain, &s.Device},
		{"model", "model", "`NAME` of the model; the architecture's best otherwise", nil, plain, &s.Model},
		{"rung", "rung",
			"how much the model may know, as `RUNG`: " + strings.Join(Rungs(), ", ") + "; the highest one " +
				"otherwise", Rungs(), detail, &s.Rung},
		{"timing", "timing",
			"what predicted times are of, as `TIMING`: " + strings.Join(timing.Names(), ", ") + " (default model)",
			nil, detail, &s.Timing},
		{"compiled", "compiled",
			"`FILE` (also .gz) of what the compiler reports about each kernel, instead of the model's file; " +
				"origami-plugin-triton table ARCH writes it",
			nil, detail, &s.CompiledFile},
		{"characterization", "characterization",
			"`FILE` (also .gz) of a timing pass over the kernels, instead of the model's file",
			nil, detail, &s.CharacterizationFile},
		{"hw_params", "hw-params",
			"JSON `FILE` of hardware numbers that win over all others", nil, detail, &s.HWParams},
		{"device_file", "device-file",
			"YAML `FILE` of a device, as calibrate writes it; without --arch and --device it is that device",
			nil, detail, &s.DeviceFile},
		{"kernel", "kernel", "kernel family; the architecture's first otherwise", nil, ofVerb, &s.Kernel},
		{"dtype", "dtype", "element type of A and B (default fp16)", nil, ofVerb, &s.DType},
		{"format", "format",
			"output `FORMAT`: table, json or csv; from select and rank also triton or inductor, to paste" +
				" (default table)", slices.Concat(Formats, PasteFormats), plain, &s.Format},
		{"wide", "wide", "show all columns of a table, however narrow the terminal is", nil, plain, &s.Wide},
		{"log_level", "log-level",
			"show log messages of plugins from `LEVEL` on: trace, debug (also the opened models), info, warn, " +
				"error or off", []string{"trace", "debug", "info", "warn", "error", "off"}, plain, &s.LogLevel},
		{"in_process", "in-process",
			"answer with the built-in models inside this process, without plugins", nil, plain, &s.InProcess},
		{"plugins", "plugin", "use the plugin binary at `PATH`; repeatable", nil, plain, &s.Plugins},
		{"timeout", "timeout",
			"how long a plugin may take to start, and for one answer, as a `DURATION` (default 30s)",
			nil, plain, &s.Timeout},
		{"plugin_path", "", "directories that are searched for trusted plugins", nil, plain, &s.PluginPath},
		{"lock_file", "",
			"file of the plugins that are trusted, which are found where it says they are", nil, plain, &s.LockFile},
	}
}

// The formats that --format takes.
const (
	Table = "table"
	JSON  = "json"
	CSV   = "csv"
)

// The formats in which configurations are pasted into a program, of the commands that PastesKey marks.
const (
	Triton   = "triton"
	Inductor = "inductor"

	PastesKey = "pastes"
)

// What --format takes, of every command and of those that PastesKey marks.
var (
	Formats      = []string{Table, JSON, CSV}
	PasteFormats = []string{Triton, Inductor}
)

// Rungs are what --rung takes, low to high.
func Rungs() []string {
	names := make([]string, len(arch.Rungs()))
	for i, r := range arch.Rungs() {
		names[i] = string(r)
	}
	return names
}

// RareKey annotates flags that few people need: help lists them only with --all.
const RareKey = "rare"

// Register adds the flags that every command has.
func Register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	for _, s := range new(Settings).All() {
		if s.Flag == "" || s.kind == ofVerb {
			continue
		}
		switch s.to.(type) {
		case *[]string:
			flags.StringArray(s.Flag, nil, s.Doc)
		case *bool:
			flags.Bool(s.Flag, false, s.Doc)
		case *time.Duration:
			flags.Duration(s.Flag, 0, s.Doc)
		default:
			flags.String(s.Flag, "", s.Doc)
		}
		if s.kind == detail { // the flag exists
			_ = flags.SetAnnotation(s.Flag, RareKey, []string{"yes"})
		}
	}
	flags.StringArray("option", nil, "setting that only one plugin knows, as `KEY=VALUE`; repeatable")
	_ = flags.SetAnnotation("option", RareKey, []string{"yes"})
	flags.Bool("json", false, "short for --format json")
	flags.String("settings", "", "read settings from `FILE` (default "+defaultFile+")")
}

const defaultFile = "origami/settings.yaml in the user's configuration folder"

// Precedence says where settings come from, and Terminal which other variables of the environment count.
const (
	Precedence = "A flag wins over an environment variable, that over the settings file, that over the default. The " +
		"settings file is\nYAML; --settings or ORIGAMI_SETTINGS name it, otherwise it is " + defaultFile +
		".\nLists have commas in a variable. Unknown keys in the file, and unknown variables that begin with " +
		"ORIGAMI_, are errors."
	Terminal = "NO_COLOR, if set, and TERM=dumb turn colour off. COLUMNS, if exported, is the width of tables."
)

// Help is the text of `origami help environment`.
func Help() string {
	var b strings.Builder
	b.WriteString(Precedence + "\n\n")
	fmt.Fprintf(&b, "  %-17s %-19s %s\n      %s\n", "key", "flag", "environment variable", "what")
	for _, s := range new(Settings).All() {
		fmt.Fprintf(&b, "  %-17s %-19s %s\n      %s\n", s.Key, s.Dashed(), strings.Join(s.Env(), ", "),
			strings.ReplaceAll(s.Doc, "`", ""))
	}
	b.WriteString("\n" + Terminal + "\n")
	return b.String()
}
