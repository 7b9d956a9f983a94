package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func load(t *testing.T, file string, env map[string]string, args ...string) (Settings, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Register(flags)
	flags.String("dtype", "", "")
	flags.String("kernel", "", "")
	must.Do(t, flags.Parse(args))
	home := t.TempDir()
	if file != "" {
		dir := filepath.Join(home, "origami")
		must.Do(t, os.Mkdir(dir, 0o755))
		must.Do(t, os.WriteFile(filepath.Join(dir, "settings.yaml"), []byte(file), 0o600))
	}
	t.Setenv("XDG_CONFIG_HOME", home)
	for name, value := range env {
		t.Setenv(name, value)
	}
	return Load(flags)
}

// Every source against the one below it, for settings of every type.
func TestPrecedence(t *testing.T) {
	type env map[string]string
	for _, tc := range []struct {
		name string
		file string
		env  env
		args []string
		key  string
		want string
	}{
		{"default", "", nil, nil, "dtype", "fp16"},
		{"default duration", "", nil, nil, "timeout", "30s"},
		{"file over default", "dtype: bf16", nil, nil, "dtype", "bf16"},
		{"environment over file", "dtype: bf16", env{"ORIGAMI_DTYPE": "fp8"}, nil, "dtype", "fp8"},
		{"flag over environment", "dtype: bf16", env{"ORIGAMI_DTYPE": "fp8"}, []string{"--dtype", "int8"}, "dtype", "int8"},
		{"empty environment does not count", "dtype: bf16", env{"ORIGAMI_DTYPE": ""}, nil, "dtype", "bf16"},
		{"unset flag does not beat environment", "", env{"ORIGAMI_IN_PROCESS": "true"}, nil, "in_process", "true"},
		{"flag turns off what the file turns on", "in_process: true", nil, []string{"--in-process=false"},
			"in_process", "false"},
		{"file duration", "timeout: 5s", nil, nil, "timeout", "5s"},
		{"flag duration", "timeout: 5s", nil, []string{"--timeout", "1m"}, "timeout", "1m0s"},
		{"file list", "arch: [sm89, gfx942]", nil, nil, "arch", "sm89 gfx942"},
		{"environment list", "arch: [sm89]", env{"ORIGAMI_ARCH": "sm90@h200,gfx942"}, nil, "arch", "sm90@h200 gfx942"},
		{"flag list", "arch: [sm89]", env{"ORIGAMI_ARCH": "sm90"}, []string{"--arch", "a", "--arch", "b,c"}, "arch", "a b,c"},
		{"the file's case is kept", "arch: [SM_89a]", nil, nil, "arch", "SM_89a"},
		{"a device beside its architecture", "arch: [sm90]\ndevice: h200", nil, nil, "arch@device", "sm90@h200"},
		{"an architecture leaves a lower device behind", "arch: [sm90]\ndevice: h200", nil, []string{"--arch", "sm89"},
			"arch@device", "sm89@"},
		{"so does one of the environment", "arch: [sm90]\ndevice: h200", env{"ORIGAMI_ARCH": "sm89"}, nil,
			"arch@device", "sm89@"},
		{"a device alone is for the architecture below", "arch: [sm90]", nil, []string{"--device", "h200"},
			"arch@device", "sm90@h200"},
		{"both names of hw_params", "", env{"TRITONBLAS_HW_PARAMS": "b.json"}, nil, "hw_params", "b.json"},
		{"ours first", "", env{"ORIGAMI_HW_PARAMS": "a.json", "TRITONBLAS_HW_PARAMS": "b.json"}, nil, "hw_params", "a.json"},
		{"flag hw_params", "", env{"ORIGAMI_HW_PARAMS": "a.json"}, []string{"--hw-params", "c.json"}, "hw_params", "c.json"},
		{"--json is --format json", "format: csv", nil, []string{"--json"}, "format", "json"},
		{"--json=false is nothing", "format: csv", nil, []string{"--json=false"}, "format", "csv"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := must.Get(load(t, tc.file, tc.env, tc.args...))(t)
			got := valueOf(&s, tc.key)
			switch tc.key {
			case "arch":
				got = strings.Join(s.Arch, " ")
			case "arch@device":
				got = s.Arch[0] + "@" + s.Device
			}
			must.That(t, got == tc.want, "got %v, want %v", got, tc.want)
		})
	}
}

// Every key can be set from a file and from the environment: a key without a variable would be dead.
func TestEverySettingHasAField(t *testing.T) {
	for _, s := range new(Settings).All() {
		value := map[string]string{"in_process": "true", "wide": "true", "timeout": "9s", "format": "csv",
			"log_level": "info", "rung": "spec"}[s.Key]
		if value == "" {
			value = "x"
		}
		t.Run(s.Key, func(t *testing.T) {
			got, err := load(t, "\n"+s.Key+": "+value, nil)
			if err != nil || valueOf(&got, s.Key) != value || !strings.HasSuffix(got.Source(s.Key), "settings.yaml:2") {
				t.Errorf("in a file: %q from %s, %v", valueOf(&got, s.Key), got.Source(s.Key), err)
			}
			for _, name := range s.Env() {
				got, err := load(t, "", map[string]string{name: value})
				if err != nil || valueOf(&got, s.Key) != value || got.Source(s.Key) != "environment variable "+name {
					t.Errorf("%s: %q from %s, %v", name, valueOf(&got, s.Key), got.Source(s.Key), err)
				}
				t.Setenv(name, "")
			}
		})
	}
}

func valueOf(s *Settings, key string) string {
	for _, x := range s.All() {
		if x.Key == key {
			return x.Value()
		}
	}
	return ""
}

func TestMistakes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		file  string
		env   map[string]string
		args  []string
		wants []string
	}{
		{"misspelled key", "dtyp: bf16", nil, nil, []string{"settings.yaml", `"dtyp"`, "did you mean dtype?"}},
		{"nested key", "arch:\n  sm89: 1", nil, nil,
			[]string{"settings.yaml", "settings.yaml:1: arch cannot be", "write a list of texts"}},
		{"not YAML", "a: [", nil, nil, []string{"settings.yaml", "not a settings file"}},
		{"unknown and empty", "colour: {}", nil, nil, []string{"settings.yaml", `unknown setting "colour"; the settings:`}},
		{"a mapping", "arch: {}", nil, nil,
			[]string{"settings.yaml", "settings.yaml:1: arch cannot be", "write a list of texts"}},
		{"a key twice", "arch: sm89\narch: sm90", nil, nil, []string{"settings.yaml", "not a settings file", "arch"}},
		{"a key twice, in capitals", "arch: sm89\nArch: sm90", nil, nil, []string{"settings.yaml:1", "arch is set twice"}},
		{"a list for a text", "device: [a, b]", nil, nil, []string{"settings.yaml:1", "device cannot be", "write a text"}},
		{"a misspelt variable", "", map[string]string{"ORIGAMI_DTYP": "bf16"}, nil,
			[]string{`"ORIGAMI_DTYP"`, "did you mean ORIGAMI_DTYPE?"}},
		{"a variable like no other", "", map[string]string{"ORIGAMI_XYZZYXYZZY": "1"}, nil,
			[]string{`"ORIGAMI_XYZZYXYZZY"`, "unset it"}},
		{"not a mapping", "- a", nil, nil, []string{"settings.yaml", "not a settings file"}},
		{"wrong type in the file", "timeout: soon", nil, nil, []string{"settings.yaml", "timeout"}},
		{"wrong type in the environment", "", map[string]string{"ORIGAMI_TIMEOUT": "soon"}, nil,
			[]string{"ORIGAMI_TIMEOUT", "timeout"}},
		{"time without a unit", "timeout: 10", nil, nil, []string{"settings.yaml",
			`timeout cannot be "10"`, "30s"}},
		{"a word for a truth value", "", map[string]string{"ORIGAMI_IN_PROCESS": "maybe"}, nil,
			[]string{"ORIGAMI_IN_PROCESS", "write true or false"}},
		{"unknown format", "", map[string]string{"ORIGAMI_FORMAT": "xml"}, nil,
			[]string{"environment variable ORIGAMI_FORMAT", `"xml"`, "table, json, csv"}},
		{"unknown format of a flag", "", nil, []string{"--format", "xml"}, []string{"--format: ", `"xml"`}},
		{"unknown log level", "log_level: loud", nil, nil, []string{"settings.yaml", `"loud"`}},
		{"two formats", "", nil, []string{"--json", "--format", "csv"}, []string{"--json and --format csv"}},
		{"no time", "", nil, []string{"--timeout", "0s"}, []string{"--timeout"}},
		{"named file that is not there", "", nil, []string{"--settings", "/no/such/file"},
			[]string{"/no/such/file", "no such file"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, tc.file, tc.env, tc.args...)
			var d *diag.Error
			must.Need(t, errors.As(err, &d) && d.Kind == diag.Input, "got %v, want an input error", err)
			text := err.Error()
			for _, want := range tc.wants {
				must.That(t, strings.Contains(text, want), "%q lacks %q", text, want)
			}
			must.That(t, !strings.Contains(text, "\n") && d.Fix != "", "%q is not one line that says what to do", text)
		})
	}
}

// A settings file that others may write to names plugins in the name of the user.
func TestSettingsOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are not these bits")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "settings.yaml")
	must.Do(t, os.WriteFile(file, []byte("dtype: fp8\n"), 0o600))
	for mode, want := range map[fs.FileMode]int{0o600: 0, 0o644: 0, 0o666: 1} {
		must.Do(t, os.Chmod(file, mode))
		t.Setenv("ORIGAMI_SETTINGS", "")
		var s Settings
		l := layers{viper.New(), pflag.NewFlagSet("", pflag.ContinueOnError), "", nil}
		err := l.readFile(&s, dir)
		said := strings.Contains(strings.Join(s.Warnings, ""), "every user may write")
		must.That(t, err == nil && len(s.Warnings) == want && said == (want > 0), "%v: %q, %v", mode, s.Warnings, err)
	}
}

func TestSettingsFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	must.Do(t, os.WriteFile(file, []byte("dtype: fp8\n"), 0o600))
	for name, try := range map[string]func() (Settings, error){
		"flag": func() (Settings, error) { return load(t, "dtype: bf16", nil, "--settings", file) },
		"environment": func() (Settings, error) {
			return load(t, "dtype: bf16",
				map[string]string{"ORIGAMI_SETTINGS": file})
		},
	} {
		s, err := try()
		must.That(t, err == nil && s.DType == "fp8", "%s: got %q, %v", name, s.DType, err)
	}
}

// Any text is either settings or an error of one line.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{
		"arch: [sm89, sm90]\ntimeout: 5s\nlog_level: debug\n", "plugins: a,b\nplugin_path: [/opt]\nlock_file: x\n",
		"Arch: x\narch: y\n", "timeout: [1]\n", "arch: {a: b}\n", "",
		"- a\n", "a: &x [*x]\n", "? [a]\n: b\n", "arch: !!binary x\n", "timeout: 1e400\n", "\xff", "arch.sub: 1\n",
		"---\narch: a\n---\narch: b\n", "null: 1\n", "1: 2\n", "<<: {arch: a}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l := layers{viper.New(), pflag.NewFlagSet("", pflag.ContinueOnError), "settings.yaml", nil}
		err := l.parse(text)
		if err != nil {
			must.Need(t, diag.KindOf(err) == diag.Input && !strings.ContainsAny(err.Error(), "\r\n"), "%q: %q", text, err)
			return
		}
		for key := range l.AllSettings() {
			must.Need(t, slices.Contains(keys(), key), "%q passes with %s", text, key)
		}
	})
}
