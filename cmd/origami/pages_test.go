package main

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/must"
)

// console is a block of commands with what they print on a terminal.
var console = regexp.MustCompile("(?s)```console\n(.*?)```")

// The README and the pages for readers show what the commands print, so that what a reader types prints the same. A
// command `cat FILE` shows a file that the next ones read. With -update, the pages get what is printed now. With -v, it
// says how long a reader waits.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/for/*.md")
	must.Need(t, err == nil && len(pages) >= 4, "%v %v", pages, err)
	path := filepath.Dir(binary(t)) + string(filepath.ListSeparator) + os.Getenv("PATH")
	for _, page := range append(pages, "../../docs/serving.md", "../../README.md") {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			text := must.Get(os.ReadFile(page))(t)
			folder, shown, began := t.TempDir(), 0, time.Now()
			var first time.Duration
			now := console.ReplaceAllStringFunc(string(text), func(block string) string {
				var out strings.Builder
				out.WriteString("```console\n")
				for _, part := range strings.Split("\n"+strings.TrimSuffix(strings.TrimPrefix(block, "```console\n"), "```"),
					"\n$ ")[1:] {
					line, want, _ := strings.Cut(part, "\n")
					shown++
					out.WriteString("$ " + line + "\n" + printed(t, folder, path, line, want))
					if first == 0 && !strings.HasPrefix(line, "cat ") {
						first = time.Since(began)
					}
				}
				return out.String() + "```"
			})
			must.Need(t, shown != 0, "it shows no command")
			t.Logf("the first answer after %v, all after %v", first, time.Since(began))
			if now != string(text) {
				if *update {
					err = os.WriteFile(page, []byte(now), 0o644)
				} else {
					t.Errorf("%s shows something else than is printed (go test -run Pages -update writes it):\n%s", page, now)
				}
			}
			must.Do(t, err)
		})
	}
}

// printed is what a command line prints, with a line feed at its end.
func printed(t *testing.T, folder, path, line, shown string) string {
	t.Helper()
	if name, ok := strings.CutPrefix(line, "cat "); ok {
		name = strings.Trim(name, "'")
		text := strings.TrimSuffix(shown, "\n") + "\n"
		must.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		return text
	}
	// The README runs the command from the sources. The binary is built from them.
	cmd := osexec.Command("sh", "-c", strings.Replace(line, "go run ./cmd/origami", "origami", 1))
	cmd.Dir = folder
	// A new user has no settings, no trusted plugins and no cache.
	cmd.Env = append(os.Environ(), "PATH="+path, "HOME="+folder, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=")
	out, err := cmd.CombinedOutput()
	must.That(t, err == nil, "%s: %v\n%s", line, err, out)
	return string(out)
}
