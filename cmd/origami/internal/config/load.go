package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// Load returns the settings in force. flags are those of the command that runs; getenv is os.Getenv.
//
// Each source is laid over the one below and checked at once, so that an error names the source.
func Load(flags *pflag.FlagSet, getenv func(string) string) (Settings, error) {
	v := &layers{values: map[string]any{"log_level": "warn", "timeout": "30s", "dtype": "fp16"},
		sources: map[string]string{}}
	dir := v.configDir(getenv)
	if dir != "" {
		v.values["lock_file"] = filepath.Join(dir, "plugins.lock")
	}
	for _, read := range []func() error{
		func() error { return readFile(v, flags, dir, getenv) }, func() error { return readEnvironment(v, getenv) },
		func() error { return readFlags(v, flags) },
	} {
		if err := read(); err != nil {
			return Settings{}, err
		}
	}
	settings, failure := check(v)
	if failure != nil {
		return Settings{}, failure
	}
	settings.Sources, settings.Warnings = v.sources, v.warnings
	return settings, nil
}

// layers are the settings of the sources that were read, and which of them each comes from, by key.
type layers struct {
	values   map[string]any
	sources  map[string]string
	warnings []string
}

// warn adds a warning.
func (v *layers) warn(format string, args ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, args...))
}

// lay checks a value and replaces the value of a weaker source with it. A key without a value replaces nothing.
func (v *layers) lay(key string, value any, source string) *diag.Error {
	if value != nil {
		v.values[key] = value
	}
	v.sources[key] = source
	if _, err := check(v); err != nil {
		return err.At("%s", source)
	}
	return nil
}

// drop takes a value of the sources below away.
func (v *layers) drop(key string) {
	delete(v.values, key)
	delete(v.sources, key)
}

// readEnvironment lays the environment variables over v. A device belongs to the architecture beside it: a source that
// names an architecture drops the device of a lower source.
func readEnvironment(v *layers, getenv func(string) string) error {
	if getenv("ORIGAMI_ARCH") != "" {
		v.drop("device")
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
			if err := v.lay(s.Key, value, "environment variable "+name); err != nil {
				return err
			}
			if s.Old != "" && name == envOf(s.Old) {
				v.warn("the environment variable %s is now %s", name, envOf(s.Key))
			}
			break
		}
	}
	return nil
}

// readFlags lays the flags of the command line over v.
func readFlags(v *layers, flags *pflag.FlagSet) error {
	if changed(flags, "arch") != nil {
		v.drop("device")
	}
	for _, s := range All() {
		f := changed(flags, s.Flag)
		if old := changed(flags, s.Old); old != nil {
			if f != nil {
				return diag.Inputf("--%s is the old name of --%s", s.Old, s.Flag).Do("leave it out")
			}
			f = old
			v.warn("the flag --%s is now --%s", s.Old, s.Flag)
		}
		if f == nil {
			continue
		}
		var value any = f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = list.GetSlice()
		}
		if err := v.lay(s.Key, value, "--"+s.Flag); err != nil {
			return err
		}
	}
	if f := changed(flags, "json"); f != nil && f.Value.String() == "true" {
		if changed(flags, "format") != nil && v.values["format"] != JSON {
			return diag.Inputf("--json and --format %s contradict each other", v.values["format"]).
				Do("leave one of them out")
		}
		v.values["format"], v.sources["format"] = JSON, "--json"
	}
	return nil
}

// changed returns the flag of that name if the command has it and the command line sets it.
func changed(flags *pflag.FlagSet, name string) *pflag.Flag {
	if f := flags.Lookup(name); name != "" && f != nil && f.Changed {
		return f
	}
	return nil
}

// readFile reads the settings file into v: the one that --settings or ORIGAMI_SETTINGS names, else the one in the
// user's configuration folder dir if there is one. Unknown keys are refused.
func readFile(v *layers, flags *pflag.FlagSet, dir string, getenv func(string) string) error {
	file, named := getenv("ORIGAMI_SETTINGS"), true
	if f := changed(flags, "settings"); f != nil {
		file = f.Value.String()
	}
	if file == "" {
		if dir == "" {
			return nil
		}
		file, named = filepath.Join(dir, "settings.yaml"), false
	}
	data, others, err := readText(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return nil
	case limit.Exceeded(err) != nil:
		return limit.Exceeded(err)
	case err != nil:
		return diag.Inputf("the settings file cannot be read: %v", diag.WithoutPath(err)).At("%s", file).
			Do("check --settings and ORIGAMI_SETTINGS")
	}
	if others != nil && !named {
		v.warn("%s: %v", file, others)
	}
	return parse(v, file, data)
}

// parse reads the text of a settings file into v.
func parse(v *layers, file string, data []byte) error {
	read := map[string]any{}
	if err := yaml.Unmarshal(data, &read); err != nil {
		return diag.Inputf("not a settings file: %v", err).
			At("%s", file).Do("write one YAML mapping; `origami help environment` lists the keys")
	}
	values := map[string]any{}
	lines := keyLines(data)
	at := func(key string) string {
		if line := lines[key]; line > 0 {
			return fmt.Sprintf("%s:%d", file, line)
		}
		return file
	}
	for _, key := range slices.Sorted(maps.Keys(read)) {
		lower := strings.ToLower(key)
		if _, again := values[lower]; again {
			return diag.Inputf("%s is set twice, once as %q", lower, key).At("%s", at(lower)).Do("leave one of them out")
		}
		values[lower] = read[key]
	}
	var known []string
	now := map[string]string{} // old keys
	for _, s := range All() {
		known = append(known, s.Key)
		if s.Old != "" {
			now[s.Old] = s.Key
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name, old := now[key]
		if _, mapping := values[key].(map[string]any); mapping && (old || slices.Contains(known, key)) {
			return diag.Inputf("the setting %s is a mapping", key).At("%s", at(key)).Do("give its value alone")
		}
		if slices.Contains(known, key) {
			continue
		}
		if old {
			if _, both := values[name]; both {
				return diag.Inputf("%s is the old name of %s", key, name).At("%s", at(key)).Do("leave it out")
			}
			values[name], lines[name] = values[key], lines[key]
			delete(values, key)
			v.warn("%s: the key %s is now %s", file, key, name)
			continue
		}
		err := diag.Inputf("unknown setting %q", key).At("%s", at(key))
		if near := diag.Nearest(key, known, 1); len(near) > 0 {
			return err.Do("did you mean %s? the settings: %s", near[0], strings.Join(known, ", "))
		}
		return err.Do("the settings: %s", strings.Join(known, ", "))
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := v.lay(key, values[key], at(key)); err != nil {
			return err
		}
	}
	return nil
}

// keyLines returns the line of each key of a YAML mapping, by its name in small letters.
func keyLines(data []byte) map[string]int {
	lines := map[string]int{}
	var document yaml.Node
	if yaml.Unmarshal(data, &document) != nil || len(document.Content) == 0 {
		return lines
	}
	for i, node := range document.Content[0].Content {
		if key := strings.ToLower(node.Value); i%2 == 0 && lines[key] == 0 {
			lines[key] = node.Line
		}
	}
	return lines
}

func readText(file string) (text []byte, others, err error) {
	if file == os.DevNull {
		return nil, nil, nil // a common way to say: no settings
	}
	f, info, err := openfile.Regular(file)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	text, err = limit.ReadAll(f, file, limit.Settings, "give the settings file")
	return text, openfile.CheckOwner(file, info), err
}

// check decodes the settings and refuses values that no command could use. The error does not say where the value is.
func check(v *layers) (Settings, *diag.Error) {
	const help = "`origami help environment` lists the settings"
	var s Settings
	switch timeout := v.values["timeout"].(type) {
	case int, float64:
		return s, diag.Inputf("the timeout %v has no unit", timeout).Do("write a duration such as 30s")
	case string:
		if _, err := time.ParseDuration(timeout); err != nil {
			return s, diag.Inputf("the timeout %q is not a duration", timeout).Do("write one such as 30s")
		}
	}
	for _, key := range []string{"in_process", "wide"} {
		if text, ok := v.values[key].(string); ok {
			if _, err := strconv.ParseBool(text); err != nil {
				return s, diag.Inputf("%s %q is neither true nor false", key, text).Do("write true or false")
			}
		}
	}
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: &s, WeaklyTypedInput: true, ErrorUnused: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(mapstructure.StringToTimeDurationHookFunc(),
			mapstructure.StringToSliceHookFunc(",")),
	})
	if err == nil {
		err = decoder.Decode(v.values)
	}
	if err != nil {
		// mapstructure lists its findings on separate lines below a heading.
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		return s, diag.Inputf("a setting has the wrong type: %s", strings.TrimSpace(lines[len(lines)-1])).Do(help)
	}
	for _, c := range []struct {
		name, value string
		known       []string
	}{
		{"format", s.Format, slices.Concat(Formats, PasteFormats)}, {"log level", s.LogLevel, LogLevels},
		{"rung", s.Rung, Rungs()},
	} {
		if c.value != "" && !slices.Contains(c.known, c.value) {
			return s, diag.Inputf("unknown %s %q", c.name, c.value).Do("use one of %s", strings.Join(c.known, ", "))
		}
	}
	if s.Timeout <= 0 {
		return s, diag.Inputf("the timeout %s is not positive", s.Timeout).Do("write a duration such as 30s")
	}
	return s, nil
}

// configDir is the user's configuration folder for origami, empty if there is none. A relative path is ignored: it
// would make whoever wrote a folder that the user works in decide about settings, and about the plugins that run.
func (v *layers) configDir(getenv func(string) string) string {
	for _, place := range []struct{ name, below string }{{"XDG_CONFIG_HOME", ""}, {"HOME", ".config"}} {
		switch path := getenv(place.name); {
		case path == "":
		case filepath.IsAbs(path):
			return filepath.Join(path, place.below, "origami")
		default:
			v.warn("%s is the relative path %q, so no settings and no trusted plugins are looked for there", place.name, path)
		}
	}
	return ""
}
