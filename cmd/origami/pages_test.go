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

// TestPluginAuthorsGuide follows docs/plugin-authors.md: it runs the sh blocks, writes the blocks that name a file,
// and compares the output of the commands in console blocks, in which … stands for any number of lines.
func TestPluginAuthorsGuide(t *testing.T) {
	t.Parallel()
	const guide = "../../docs/plugin-authors.md"
	text := must.Get(os.ReadFile(guide))(t)
	w := newWalk(t)
	home := w.dir
	w.dir = checkoutRoot(t)

	lines := strings.SplitAfter(string(text), "\n")
	ran := 0
	for i := 0; i < len(lines); i++ {
		info, opens := strings.CutPrefix(strings.TrimSpace(lines[i]), "```")
		if !opens {
			continue
		}
		var body []string
		for i++; i < len(lines) && lines[i] != "```\n"; i++ {
			body = append(body, lines[i])
		}
		words := strings.Fields(info)
		switch {
		case len(words) == 1 && words[0] == "sh":
			for _, line := range body {
				ran++
				if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "cd "); ok {
					w.dir = strings.Replace(dir, "~", home, 1)
					continue
				}
				start := time.Now()
				w.run(line)
				t.Logf("%6.2f s  %s", time.Since(start).Seconds(), strings.TrimSpace(line))
			}
		case len(words) == 1 && words[0] == "console":
			command, ok := strings.CutPrefix(body[0], "$ ")
			if !ok {
				t.Fatalf("%s: a console block begins with %q", guide, body[0])
			}
			ran++
			got := strings.SplitAfter(w.run(command), "\n")
			got = got[:len(got)-1] // the rest after the last line end
			if !matches(got, body[1:]) {
				t.Errorf("%s prints\n%s\nand not\n%s", strings.TrimSpace(command), strings.Join(got, ""),
					strings.Join(body[1:], ""))
			}
		case len(words) >= 2:
			file, content := filepath.Join(w.dir, words[1]), strings.Join(body, "")
			if len(words) == 3 && words[2] == "append" {
				before := must.Get(os.ReadFile(file))(t)
				content = string(before) + content
			}
			must.Do(t, os.WriteFile(file, []byte(content), 0o644))
		default:
			t.Fatalf("%s: a block of kind %q would not be tested", guide, info)
		}
	}
	must.That(t, ran >= 10, "only %d commands were found", ran)
	must.That(t, w.run("go fmt ./...") == "", "the guide's Go is not formatted")
}

// matches compares lines with a pattern in which a line … stands for any number of lines.
func matches(got, pattern []string) bool {
	if len(pattern) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(pattern[0]) == "…" {
		for skip := range len(got) + 1 {
			if matches(got[skip:], pattern[1:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && strings.TrimRight(got[0], " \n") == strings.TrimRight(pattern[0], " \n") &&
		matches(got[1:], pattern[1:])
}
