//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// user is somebody who runs origami, with a home of their own.
type user struct {
	*testing.T
	origami, home string
	env           []string // more than the home
}

func newUser(t *testing.T) *user {
	t.Helper()
	return &user{T: t, origami: binary(t), home: t.TempDir()}
}

// command returns an origami that has not started.
func (u *user) command(ctx context.Context, args ...string) *osexec.Cmd {
	cmd := osexec.CommandContext(ctx, u.origami, args...)
	cmd.Dir = u.home
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "XDG_") || strings.HasPrefix(v, "ORIGAMI_")
	})
	cmd.Env = append(append(cmd.Env, "HOME="+u.home, "GORACE=atexit_sleep_ms=0"), u.env...)
	return cmd
}

// tooLong is how long no command of these tests may take, on any machine. What they guard against takes longer or
// never ends.
const tooLong = 15 * time.Second

// run runs origami and returns what it printed, and its exit code.
func (u *user) run(args ...string) (stdout, stderr string, code int) {
	u.Helper()
	ctx, cancel := context.WithTimeout(u.Context(), tooLong)
	defer cancel()
	cmd := u.command(ctx, args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	must.Need(u, ctx.Err() == nil, "origami %v took more than %v: %v, %s", args, tooLong, err, &errs)
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// plugin writes an executable file for a plugin, and returns its path.
func (u *user) plugin(name, script string) string {
	u.Helper()
	path := filepath.Join(u.home, "origami-plugin-"+name)
	must.Do(u, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
	return path
}

// describing is the script of a plugin that calls itself name and has an architecture.
func describing(name, archID string) string {
	return fmt.Sprintf(`echo '{"info":{"name":%q,"version":"0.1.0"},
"protocols":[2],"manifest":{"name":%q,"version":"0.1.0","archs":[
{"id":%q,"vendor":"none","models":["m"],"kernels":["k"],"devices":[{"id":%q,"name":"d"}]}]}}'
`, name, name, archID, archID+"-device")
}

// lockFile is where the user's trusted plugins are.
func (u *user) lockFile() string { return filepath.Join(u.home, ".config", "origami", "plugins.lock") }

// enter enters a plugin in the lock file. Unlike trust it runs nothing.
func (u *user) enter(path string) {
	u.Helper()
	content := must.Get(os.ReadFile(path))(u)
	lock := map[string]map[string]map[string]string{"plugins": {}}
	if text, err := os.ReadFile(u.lockFile()); err == nil {
		must.Do(u, json.Unmarshal(text, &lock))
	}
	lock["plugins"][strings.TrimPrefix(filepath.Base(path), "origami-plugin-")] = map[string]string{
		"path": path, "sha256": fmt.Sprintf("%x", sha256.Sum256(content))}
	text := must.Get(json.Marshal(lock))(u)
	u.write(u.lockFile(), string(text))
}

// write writes a file, and the folders above it.
func (u *user) write(path, text string) {
	u.Helper()
	must.Do(u, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
}

// listedPlugin is a line of plugin ls --json.
type listedPlugin struct {
	Name, Source, State, Path, Reason, SHA256 string
	Archs, Devices                            []string
}

func (u *user) list(args ...string) (plugins []listedPlugin, stderr string) {
	u.Helper()
	stdout, stderr, code := u.run(append([]string{"plugin", "ls", "--json"}, args...)...)
	must.Need(u, code == 0, "exit code %d, %s", code, stderr)
	for line := range strings.Lines(stdout) {
		var p listedPlugin
		must.Do(u, json.Unmarshal([]byte(line), &p))
		plugins = append(plugins, p)
	}
	return plugins, stderr
}

func (u *user) listed(name string, args ...string) listedPlugin {
	u.Helper()
	plugins, _ := u.list(args...)
	i := slices.IndexFunc(plugins, func(p listedPlugin) bool { return p.Name == name })
	must.Need(u, i >= 0, "no plugin %s in %+v", name, plugins)
	return plugins[i]
}

var builtinSelect = []string{"--arch", "sm89", "select", "-m", "64", "-n", "64", "-k", "64"}

// A plugin that hangs in describe costs a second where all plugins are asked, nothing elsewhere, and a signal ends it.
func TestHangingPlugin(t *testing.T) {
	u := newUser(t)
	ran := filepath.Join(u.home, "ran")
	u.enter(u.plugin("quick", describing("quick", "quick")))
	hang := u.plugin("hang", "echo $$ >> "+ran+"\nsleep 1000 &\nexec sleep 1000\n")
	u.enter(hang)

	if stdout, stderr, code := u.run(builtinSelect...); code != 0 || stdout == "" || stderr != "" {
		t.Errorf("a built-in: exit code %d, %q", code, stderr)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a command about a built-in asks the plugins")
	}
	begin := time.Now()
	plugins, _ := u.list()
	p := plugins[len(plugins)-2]
	must.That(t, p.Name == "hang" && p.State == "error" &&
		strings.HasPrefix(p.Reason, "describe did not end within 1s"), "got %+v", p)
	p = plugins[len(plugins)-1]
	must.That(t, p.Name == "quick" && p.State == "ok", "got %+v", p)
	for _, args := range [][]string{{"arch", "ls"}, {"arch", "show", "nosuch"}} {
		if _, stderr, _ := u.run(args...); !strings.Contains(stderr, "plugin hang is left out: describe did not end") {
			t.Errorf("%v: stderr is %q", args, stderr)
		}
	}
	if took := time.Since(begin); took > tooLong {
		t.Errorf("three commands took %v", took)
	}

	// The architecture is called like the plugin, so it is waited for, until a signal.
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		ctx, cancel := context.WithTimeout(t.Context(), tooLong)
		cmd := u.command(ctx, "--arch", "hang", "select", "-m", "64", "-n", "64", "-k", "64")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		_ = os.Remove(ran)
		must.Do(t, cmd.Start())
		var pid []byte
		for !strings.HasSuffix(string(pid), "\n") && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			pid, _ = os.ReadFile(ran)
		}
		begin := time.Now()
		_ = cmd.Process.Signal(signal)
		err := cmd.Wait()
		if took := time.Since(begin); took > 5*time.Second || !strings.HasSuffix(stderr.String(), "interrupted\n") {
			t.Errorf("%v: %v after %v, %q", signal, err, took, &stderr)
		}
		group, _ := strconv.Atoi(strings.TrimSpace(string(pid)))
		must.That(t, endsSoon(group), "%v: the plugin's processes live on", signal)
		cancel()
	}
}

// endsSoon waits until no process is left in a group.
func endsSoon(group int) bool {
	for range 100 {
		if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// Only what the lock file has an entry for is hashed: a large file that nobody trusts would stall every command.
func TestUntrustedFilesAreNotHashed(t *testing.T) {
	u := newUser(t)
	u.enter(u.plugin("other", "exit 1\n"))
	folder := filepath.Join(u.home, "plugins")
	large := filepath.Join(folder, "origami-plugin-large")
	u.write(large, "")
	must.Do(t, errors.Join(os.Truncate(large, 64<<20), os.Chmod(large, 0o700)))
	u.env = []string{"ORIGAMI_PLUGIN_PATH=" + folder}
	p := u.listed("large")
	must.That(t, p.State == "skipped" && strings.Contains(p.Reason, "it is not in the lock file") &&
		p.SHA256 == "", "got %+v", p)
	p = u.listed("other")
	must.That(t, p.SHA256 != "", "got %+v", p)
}

// A lock file that is refused is named, with the reason, by every command that lacks the plugins in it.
func TestRefusedLockFile(t *testing.T) {
	u := newUser(t)
	path := u.plugin("mine", describing("mine", "mine"))
	u.enter(path)
	good := must.Get(os.ReadFile(u.lockFile()))(t)
	entry := string(good[len(`{"plugins":{`) : len(good)-2])
	for name, test := range map[string]struct {
		text, says string
		spoil      func(lock string) error
	}{
		"damaged":          {text: "{", says: "not a lock file: unexpected EOF"},
		"cut off":          {text: string(good[:len(good)-20]), says: "not a lock file"},
		"an unknown key":   {text: `{"plugins":{},"more":1}`, says: `unknown field "more"`},
		"a key in capital": {text: `{"Plugins":{` + entry + `}}`, says: "Plugins"},
		"a key twice":      {text: `{"plugins":{` + entry + "," + entry + `}}`, says: "there twice"},
		"a BOM":            {text: "\uFEFF" + string(good), says: "not a lock file"},
		"too large":        {text: string(good) + strings.Repeat(" ", 2<<20), says: "it is larger than 1 MiB"},
		"writable by all":  {says: "every user may write to it", spoil: func(l string) error { return os.Chmod(l, 0o666) }},
		"a folder":         {says: "not a regular file", spoil: func(l string) error { return remake(l, os.Mkdir) }},
		"a pipe": {says: "not a regular file", spoil: func(l string) error {
			return remake(l, func(l string, _ os.FileMode) error { return syscall.Mkfifo(l, 0o600) })
		}},
		"another user's": {says: "it belongs to user 65534", spoil: func(l string) error { return os.Chown(l, 65534, -1) }},
	} {
		t.Run(name, func(t *testing.T) {
			u := &user{T: t, origami: u.origami, home: u.home}
			if name == "another user's" && os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			must.Do(t, os.RemoveAll(u.lockFile()))
			if test.text == "" {
				test.text = string(good)
			}
			u.write(u.lockFile(), test.text)
			if test.spoil != nil {
				must.Do(t, test.spoil(u.lockFile()))
			}
			plugins, stderr := u.list()
			if !strings.Contains(stderr, u.lockFile()) || !strings.Contains(stderr, strings.ReplaceAll(test.says, `"`, `\"`)) {
				t.Errorf("plugin ls: stderr is %q", stderr)
			}
			p := plugins[0]
			must.That(t, p.Source == "lock file" && p.State == "error" && p.Path == u.lockFile() &&
				strings.Contains(p.Reason, test.says), "plugin ls: got %+v", p)
			for _, args := range [][]string{
				{"arch", "show", "mine"}, {"arch", "ls"}, {"arch", "show", "auto"},
			} {
				_, stderr, _ := u.run(args...)
				must.That(t, strings.Contains(stderr, u.lockFile()+": ") &&
					strings.Contains(stderr, test.says), "%v: stderr is %q", args, stderr)
			}
			// It is not used, and nobody who needs no plugin is bothered.
			_, stderr, code := u.run(builtinSelect...)
			must.That(t, code == 0 && stderr == "", "a built-in: exit code %d, %q", code, stderr)
			stdout, _, _ := u.run("arch", "ls")
			must.That(t, !strings.Contains(stdout, "mine"), "the plugin is used: %s", stdout)
		})
	}
}

func remake(path string, make func(string, os.FileMode) error) error {
	return errors.Join(os.Remove(path), make(path, 0o700))
}

// The folder that a link is in counts as much as the folder of the file that it leads to.
func TestWhoMayReplaceALink(t *testing.T) {
	u := newUser(t)
	open := filepath.Join(u.home, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil { //nolint:gosec // that is the test
		t.Fatal(err)
	}
	binary := u.plugin("mine", describing("mine", "mine"))
	u.enter(binary)
	for _, link := range []struct{ at, to string }{
		{filepath.Join(open, "lock"), u.lockFile()}, {filepath.Join(open, "origami-plugin-mine"), binary},
		{filepath.Join(u.home, "to-open"), open},
	} {
		must.Do(t, os.Symlink(link.to, link.at))
	}
	for what, env := range map[string][]string{
		"lock file": {"ORIGAMI_LOCK_FILE=" + filepath.Join(open, "lock")},
		"plugin":    {"ORIGAMI_PLUGIN_PATH=" + open},
		// A link in a private folder to the open one, in which a second link is.
		"lock file behind two links": {"ORIGAMI_LOCK_FILE=" + filepath.Join(u.home, "to-open", "lock")},
	} {
		u.env = env
		_, stderr, _ := u.run("plugin", "ls")
		must.That(t, strings.Contains(stderr, "every user may replace ") &&
			strings.Contains(stderr, "chmod o-w "+open), "%s: stderr is %q", what, stderr)
	}
	u.env = nil
	p := u.listed("mine")
	must.That(t, p.State == "ok", "without the links: %+v", p)
}

// What belongs to another user does not decide what runs, wherever it is.
func TestOtherUsersFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const nobody = 65534
	u := newUser(t)
	sticky := filepath.Join(u.home, "sticky")
	must.Do(t, errors.Join(os.Mkdir(sticky, 0o700), os.Chmod(sticky, 0o777|os.ModeSticky)))
	ran := filepath.Join(u.home, "ran")
	binary := u.plugin("mine", "touch "+ran+"\n"+describing("mine", "mine"))
	u.enter(binary)
	link := filepath.Join(sticky, "lock")
	must.Do(t, errors.Join(os.Symlink(u.lockFile(), link), os.Lchown(link, nobody, -1)))
	u.env = []string{"ORIGAMI_LOCK_FILE=" + link}
	if _, stderr, _ := u.run("arch", "ls"); !strings.Contains(stderr, "the link "+link+" belongs to user 65534") {
		t.Errorf("another user's link: stderr is %q", stderr)
	}
	u.env = nil
	must.Do(t, os.Chown(binary, nobody, -1))
	if p := u.listed("mine"); p.State != "skipped" || !strings.Contains(p.Reason, "it belongs to user 65534") {
		t.Errorf("another user's binary: got %+v", p)
	}
	_, stderr, code := u.run("plugin", "trust", binary)
	must.That(t, code == 2 && strings.Contains(stderr, "it belongs to user"), "trust: exit code %d, %q", code, stderr)
	_, err := os.Stat(ran)
	must.That(t, err != nil, "another user's file decided what runs")
	// A folder of another user causes a warning.
	must.Do(t, errors.Join(os.Chown(binary, 0, -1), os.Chown(u.home, nobody, -1)))
	if plugins, stderr := u.list(); plugins[len(plugins)-1].State != "ok" ||
		!strings.Contains(stderr, "user 65534 may replace "+binary) {
		t.Errorf("another user's folder: %+v, %q", plugins[len(plugins)-1], stderr)
	}
}
