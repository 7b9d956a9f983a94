//go:build !js

package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/here"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// Load returns the settings in force. flags belong to the command that runs. A page in a browser has no sources.
func Load(flags *pflag.FlagSet) (Settings, error) {
	var s Settings
	if err := checkVariables(os.Environ()); err != nil {
		return s, err
	}
	if short, _ := flags.GetBool("json"); short { // false where the command has no such flag
		if format := flags.Lookup("format"); format.Changed && format.Value.String() != JSON {
			return s, diag.Inputf("--json and --format %s contradict each other", format.Value).
				Do("leave one of them out")
		}
		_ = flags.Set("format", JSON) // it takes any text
	}
	l := layers{viper.New(), flags, "", nil}
	l.SetDefault("log_level", "warn")
	l.SetDefault("timeout", "30s")
	l.SetDefault("dtype", "fp16")
	dir := s.folder()
	if dir != "" {
		l.SetDefault("lock_file", filepath.Join(dir, "plugins.lock"))
	}
	if err := l.readFile(&s, dir); err != nil {
		return s, err
	}
	s.source = func(setting Setting) string { _, where := l.source(setting); return where }
	strength := map[string]int{}
	for _, setting := range s.All() {
		_ = l.BindEnv(append([]string{setting.Key}, setting.Env()...)...) // it has a key
		if f := flags.Lookup(setting.Flag); f != nil {
			_ = l.BindPFlag(setting.Key, f) // it is not nil
			if list, ok := f.Value.(pflag.SliceValue); ok && f.Changed {
				l.Set(setting.Key, list.GetSlice()) // viper reads it back from CSV, which changes line ends
			}
		}
		var where string
		strength[setting.Key], where = l.source(setting)
		if err := setting.set(l.Viper); err != nil {
			return s, err.At("%s", where)
		}
	}
	if strength["arch"] > strength["device"] {
		s.Device = "" // a device belongs to the architecture beside it
	}
	return s, nil
}

// set sets the setting to the value that counts. The error does not say where the value is.
func (s *Setting) set(v *viper.Viper) *diag.Error {
	value := v.Get(s.Key)
	bad, takes := v.UnmarshalKey(s.Key, s.to) != nil, "a text"
	switch s.to.(type) {
	case *time.Duration: // viper takes a number without a unit for nanoseconds
		d, err := time.ParseDuration(fmt.Sprint(value))
		bad, takes = err != nil || d <= 0, "a positive duration with its unit, as in 30s"
	case *bool:
		takes = "true or false"
	case *[]string:
		takes = "a list of texts"
	}
	if _, mapping := value.(map[string]any); mapping || bad {
		return diag.Inputf("%s cannot be %q", s.Key, fmt.Sprint(value)).Do("write %s", takes)
	}
	if text := s.Value(); s.Values != nil && text != "" && !slices.Contains(s.Values, text) {
		return diag.Inputf("unknown %s %q", strings.ReplaceAll(s.Key, "_", " "), text).
			Do("use one of %s", strings.Join(s.Values, ", "))
	}
	return nil
}

// layers are the sources of settings. viper says which value counts; what it does not say is asked of the sources.
type layers struct {
	*viper.Viper
	flags *pflag.FlagSet
	file  string         // the settings file
	lines map[string]int // the line of each key in it
}

// source says which source sets a setting, and how strong it is.
func (l *layers) source(s Setting) (strength int, where string) {
	if l.flags.Changed(s.Flag) {
		return 3, s.Dashed()
	}
	for _, name := range s.Env() {
		if os.Getenv(name) != "" {
			return 2, "environment variable " + name
		}
	}
	if line := l.lines[s.Key]; line > 0 {
		return 1, fmt.Sprintf("%s:%d", l.file, line)
	}
	return 0, byDefault
}

// readFile reads the settings file that --settings or ORIGAMI_SETTINGS name, else the file in the user's
// configuration folder dir if there is one.
func (l *layers) readFile(s *Settings, dir string) error {
	file, _ := l.flags.GetString("settings") // empty where the command has no such flag
	file = cmp.Or(file, os.Getenv("ORIGAMI_SETTINGS"))
	named := file != ""
	if !named && dir != "" {
		file = filepath.Join(dir, "settings.yaml")
	}
	if file == "" || file == os.DevNull { // a common way to say: no settings
		return nil
	}
	f, info, err := openfile.Regular(file)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	var text []byte
	if err == nil {
		defer func() { _ = f.Close() }()
		text, err = limit.ReadAll(f, file, limit.Settings, "give the settings file")
	}
	switch {
	case limit.Exceeded(err) != nil:
		return limit.Exceeded(err)
	case err != nil:
		return diag.Inputf("the settings file cannot be read: %v", diag.WithoutPath(err)).At("%s", file).
			Do("check --settings and ORIGAMI_SETTINGS")
	}
	if others := openfile.CheckOwner(file, info); others != nil && !named {
		s.warn("%s: %v", file, others)
	}
	l.file = file
	return l.parse(text)
}

// parse reads the text of the settings file. A key may have capitals, and no key may be unknown. No setting is a
// mapping, whose keys viper would write in small letters; values keep their letters.
func (l *layers) parse(text []byte) error {
	var document yaml.Node
	l.SetConfigType("yaml")
	if err := errors.Join(l.ReadConfig(bytes.NewReader(text)), yaml.Unmarshal(text, &document)); err != nil {
		return diag.Inputf("not a settings file: %v", err).At("%s", l.file).
			Do("write one YAML mapping; `origami help environment` lists the keys")
	}
	l.lines = map[string]int{}
	if len(document.Content) == 0 {
		return nil
	}
	known := keys()
	for i, node := range document.Content[0].Content {
		if i%2 == 1 {
			continue
		}
		key := strings.ToLower(node.Value)
		if node.Kind != yaml.ScalarNode || !slices.Contains(known, key) {
			err := diag.Inputf("unknown setting %q", node.Value).At("%s:%d", l.file, node.Line)
			if near := diag.Nearest(key, known, 1); len(near) > 0 {
				err = err.Do("did you mean %s?", near[0])
			}
			return err.Also("the settings: %s", strings.Join(known, ", "))
		}
		if line := l.lines[key]; line > 0 {
			return diag.Inputf("%s is set twice, once as %q", key, node.Value).At("%s:%d", l.file, line).
				Do("leave one of them out")
		}
		l.lines[key] = node.Line
	}
	return nil
}

func keys() (names []string) {
	for _, s := range new(Settings).All() {
		names = append(names, s.Key)
	}
	return names
}

// others are the variables behind ORIGAMI_ that are no settings: of plugins, of the C library and of Python, of the
// project's tests and releases, and those that Kubernetes sets for a service of that name.
var others = regexp.MustCompile(`^(SETTINGS|PLUGIN(_WATCH|_LOG_LEVEL)?|LIB|INDUCTOR|TORCH_KERNEL|` +
	`(TEST|REQUIRE)_.*|PTXAS|AMD_LOGIC|SITE|AXE|SHOTS|ROWS|MERGE|UNREAD|WHEELS|INDEX|VERSION|` +
	`(.*_)?(SERVICE_(HOST|PORT.*)|PORT(_.*)?))$`)

// checkVariables refuses an unknown variable that begins like origami's: it is misspelt.
func checkVariables(environment []string) error {
	var known []string
	for _, key := range keys() {
		known = append(known, strings.ToUpper(key))
	}
	slices.Sort(environment) // of several, the same one is said every time
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		name, ours := strings.CutPrefix(name, "ORIGAMI_")
		if !ours || value == "" || slices.Contains(known, name) || others.MatchString(name) {
			continue
		}
		err := diag.Inputf("unknown environment variable %q", "ORIGAMI_"+name)
		if near := diag.Nearest(name, known, 1); len(near) > 0 {
			return err.Do("did you mean ORIGAMI_%s? `origami help environment` lists all", near[0])
		}
		return err.Do("unset it; `origami help environment` lists the variables")
	}
	return nil
}

// folder is the user's configuration folder for origami, empty if there is none.
func (s *Settings) folder() string {
	folder, refused := here.Folder()
	for _, name := range refused {
		s.warn("%s is the relative path %q, so no settings and no trusted plugins are looked for there", name,
			os.Getenv(name))
	}
	return folder
}

// warn adds a warning.
func (s *Settings) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}
