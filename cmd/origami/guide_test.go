package main

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
	must.That(t, w.run("gofmt -l .") == "", "the guide's Go is not formatted")
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
