//go:build linux

package hostile

import (
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// command is one that its help describes.
type command struct {
	words   string
	example []string // that the help gives first, without "origami"
	flags   []parameter
}

var (
	commandLine = regexp.MustCompile(`(?m)^  ([a-z0-9-]+)  +\S`)
	flagLine    = regexp.MustCompile(`^  (?:-(\w), |    )--([a-z0-9-]+)(?: (\S+))?   *(.*)`)
	exampleText = regexp.MustCompile(`(?s)\nExamples:\n  origami (.*?[^\\])\n`)
)

// endless are commands that run until they are ended.
var endless = []string{"serve", "help", "completion"}

// Every command with every flag that its help describes keeps to the budgets of memory and time, whatever comes of it:
// for as many what-ifs as fit a line, for files of 30,000 rows on one line, and for what the flags' descriptions name.
// What to give a flag is drawn from its description, so that a new one is tried as it comes.
func TestCommandsHaveBudgets(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector needs memory itself")
	}
	bin := build(t)
	commands := describe(t, bin, "")
	must.Need(t, len(commands) >= 30, "only %d commands are described", len(commands))
	all := os.Getenv("ORIGAMI_TEST_ALL") == "1"
	const rows = 30000
	files := map[string]func(io.Writer){
		"problems.json": oneLine(`{"m":%d,"n":%d,"k":64}`, rows),
		"configs.json": oneLine(`{"BLOCK_SIZE_M":%d,"BLOCK_SIZE_N":%d,"BLOCK_SIZE_K":32,"num_warps":4,"num_stages":3,`+
			`"GROUP_SIZE_M":1}`, rows),
	}
	r := rand.New(rand.NewPCG(3, 4))
	tried := 0
	for i := range commands {
		c := &commands[i]
		t.Run(c.words, func(t *testing.T) {
			dir := shortTempDir(t)
			for i, args := range c.tries(r, slices.Sorted(maps.Keys(files)), all) {
				h := input{args: strings.Join(args, " "), files: files}
				if i == 0 {
					h.makeFiles(t, dir)
				}
				m, stderr := h.run(t, bin, dir)
				tried++
				shown := stderr[:min(len(stderr), 300)]
				switch {
				case m.Killed != "", float64(m.Peak) > mostMemory, m.CPU > mostQuestionCPU.Seconds():
					t.Errorf("%.300s: %.0f MB, %.1f s of CPU, %s: %s", h.args, float64(m.Peak)/1e6, m.CPU, m.Killed, shown)
				case strings.Contains(stderr, "goroutine "), strings.Contains(stderr, `"kind":"internal"`):
					t.Errorf("%.300s fails in itself: %s", h.args, shown)
				}
			}
		})
	}
	t.Logf("%d command lines of %d commands", tried, len(commands))
}

// oneLine writes rows as JSON on one line.
func oneLine(row string, rows int) func(io.Writer) {
	return func(w io.Writer) {
		separator := "["
		for i := range rows {
			_, _ = io.WriteString(w, separator)
			_, _ = fmt.Fprintf(w, row, 16*(i%256+1), 16*(i/256%256+1))
			separator = ","
		}
		_, _ = io.WriteString(w, "]")
	}
}

// describe returns the commands below words, as their help has them.
func describe(t *testing.T, bin, words string) (list []command) {
	t.Helper()
	cmd := osexec.Command(filepath.Join(bin, "origami"), append(strings.Fields(words), "--help", "--all")...)
	cmd.Env = []string{"HOME=" + bin}
	help, err := cmd.Output()
	must.Need(t, err == nil, "%s --help: %v", words, err)
	usage, flags, _ := strings.Cut(string(help), "\nFlags:\n")
	_, commands, found := strings.Cut(usage, "\nAvailable Commands:\n")
	if words == "" {
		_, commands, found = strings.Cut(usage, "\nAsk a model:\n")
	}
	for _, name := range commandLine.FindAllStringSubmatch(commands, -1) {
		if !slices.Contains(endless, name[1]) {
			list = append(list, describe(t, bin, strings.TrimSpace(words+" "+name[1]))...)
		}
	}
	if found {
		return list
	}
	c := command{words: words, example: strings.Fields(words)}
	if example := exampleText.FindStringSubmatch(usage + "\n"); example != nil {
		c.example = strings.Fields(strings.NewReplacer("\\\n", " ", "'", "").Replace(example[1]))
	}
	for _, line := range strings.Split(flags, "\n") {
		if f := flagLine.FindStringSubmatch(line); f != nil {
			p := parameter{Name: "--" + f[2], Description: f[4]}
			if p.Schema.Type = f[3]; f[3] == "" {
				p.Schema.Type = "boolean"
			}
			c.flags = append(c.flags, p)
		} else if last := len(c.flags) - 1; last >= 0 && strings.HasPrefix(line, "      ") {
			c.flags[last].Description += " " + strings.TrimSpace(line)
		}
	}
	return append(list, c)
}

// tries are command lines of a command: with 30 what-ifs; with all, with each flag as its description
// has it, with each file as one, and with another flag.
func (c *command) tries(r *rand.Rand, files []string, all bool) (list [][]string) {
	with := func(more ...string) { list = append(list, slices.Concat(c.example, more)) }
	for i := range c.flags {
		if f := &c.flags[i]; f.Name == "--arch" {
			list = append(list, append(without(c.example, "--arch"), "--arch", clocks(30)))
		}
	}
	if !all {
		return list
	}
	word := func(f *parameter) []string {
		if f.Schema.Type == "boolean" {
			return []string{f.Name}
		}
		values := f.values()
		return []string{f.Name, strings.TrimRight(values[r.IntN(len(values))], "'\"")}
	}
	for i := range c.flags {
		f := &c.flags[i]
		if f.Schema.Type == "FILE" {
			for _, file := range files {
				with(f.Name, file)
			}
			continue
		}
		with(word(f)...)
		with(append(word(f), word(&c.flags[r.IntN(len(c.flags))])...)...)
	}
	return list
}

// without returns words without a flag and its value.
func without(words []string, flag string) (rest []string) {
	for i := 0; i < len(words); i++ {
		if words[i] == flag {
			i++
			continue
		}
		rest = append(rest, words[i])
	}
	return rest
}
