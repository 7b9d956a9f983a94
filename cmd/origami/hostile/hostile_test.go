//go:build linux

// Package hostile tests what input may cost. It gives the command, as a process of its own, the files and plugins that
// somebody would make to cost a machine the most.
package hostile

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"
)

// The command may need mostMemory for any input under the limits of docs/threat-model.md, and so may each of its
// plugins. It prints at most mostErrors and ends in time.
const (
	mostMemory = 300e6
	mostErrors = 256 << 10
	mostTime   = 2 * time.Minute
)

// input is what somebody made to cost the machine memory or time.
type input struct {
	name string
	// args are the words of the command. Files are made in its working directory before. Those with the suffix .gz are
	// compressed. stdin is one of them, or a path.
	args  string
	files map[string]func(io.Writer)
	stdin string
	// env is one more variable, as NAME=value.
	env string
	// questions are asked of a server, all at once. It is then ended.
	questions []question
	// lie is what the plugin does that the command uses.
	lie *lie
	// codes are the right exit codes.
	codes []int
	// resumes: the same command with an honest plugin succeeds afterwards.
	resumes bool
	// slow inputs are given with ORIGAMI_TEST_ALL=1 only.
	slow bool
}

// measured is what a command needed.
type measured struct {
	Peak    int64 // bytes, of the process that needed the most
	Seconds float64
	CPU     float64 // seconds, with the plugins
	Code    int
	Killed  string // why it was killed, empty if it ended by itself
}

// No input under the documented limits costs more than a bounded memory, time and number of messages. -v prints what
// each of them costs. One input in four is given, as neighbours try one limit in several ways, and all with
// ORIGAMI_TEST_ALL=1, each night.
func TestInputs(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector needs memory itself")
	}
	bin := build(t)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "input\tbytes\tpeak MB\tseconds\texit\tstderr")
	for i, h := range slices.Concat(inputsOf(t), remote, pages, answers, streams, executors) {
		t.Run(h.name, func(t *testing.T) {
			if (h.slow || i%4 != 0) && os.Getenv("ORIGAMI_TEST_ALL") != "1" {
				t.Skip("ORIGAMI_TEST_ALL=1 gives it")
			}
			dir := shortTempDir(t)
			size := h.makeFiles(t, dir)
			write(t, filepath.Join(dir, lieFile), text(h.name))
			m, stderr := h.run(t, bin, dir)
			fmt.Fprintf(w, "%s\t%d\t%.0f\t%.1f\t%d\t%d\n", h.name, size, float64(m.Peak)/1e6, m.Seconds, m.Code,
				len(stderr))
			shown := stderr[:min(len(stderr), 500)]
			switch {
			case m.Killed != "":
				t.Errorf("it was killed: %s; peak %.0f MB after %.1f s: %s", m.Killed, float64(m.Peak)/1e6, m.Seconds, shown)
			case float64(m.Peak) > mostMemory:
				t.Errorf("it needs %.0f MB: %s", float64(m.Peak)/1e6, shown)
			}
			must.That(t, m.Killed != "" || slices.Contains(h.codes, m.Code),
				"exit code %d, and not one of %v: %s", m.Code, h.codes, shown)
			must.That(t, len(stderr) <= mostErrors, "it prints %d bytes of messages", len(stderr))
			must.That(t, !strings.Contains(stderr, "goroutine ") && !strings.Contains(stderr, `"kind":"internal"`),
				"it fails in itself: %s", shown)
			if h.resumes {
				write(t, filepath.Join(dir, lieFile), text("none"))
				if m, stderr := h.run(t, bin, dir); m.Code != 0 || m.Killed != "" {
					t.Errorf("with an honest plugin: exit code %d %s: %.500s", m.Code, m.Killed, stderr)
				}
			}
		})
	}
	_ = w.Flush()
	t.Log("\n" + table.String())
}

// run runs a command in a folder and returns its needs and messages.
func (h *input) run(t *testing.T, bin, dir string) (m measured, stderr string) {
	t.Helper()
	report := filepath.Join(dir, "measured.json")
	cmd := osexec.Command(filepath.Join(bin, "measure"), append([]string{report, filepath.Join(bin, "origami")},
		strings.Fields(h.args)...)...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"),
		"ORIGAMI_LOCK_FILE=" + filepath.Join(bin, "lock.json")}
	if h.env != "" {
		cmd.Env = append(cmd.Env, h.env)
	}
	if h.stdin != "" {
		path := h.stdin
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		in := must.Get(os.Open(path))(t)
		defer in.Close()
		cmd.Stdin = in
	}
	out := must.Get(os.Create(filepath.Join(dir, "stderr")))(t)
	defer out.Close()
	cmd.Stderr = out
	must.Do(t, cmd.Start())
	if len(h.questions) > 0 {
		askAll(t, out.Name(), h.questions)
		err := cmd.Process.Signal(syscall.SIGTERM)
		must.That(t, err == nil, "%v", err)
	}
	must.Do(t, cmd.Wait())
	text := must.Get(os.ReadFile(report))(t)
	must.Do(t, json.Unmarshal(text, &m))
	messages := make([]byte, 2*mostErrors)
	n, err := out.ReadAt(messages, 0)
	must.Need(t, err == nil || errors.Is(err, io.EOF), "%v", err)
	return m, string(messages[:n])
}

// makeFiles makes the files of an input and returns their size.
func (h *input) makeFiles(t *testing.T, dir string) (size int64) {
	t.Helper()
	for name, content := range h.files {
		write(t, filepath.Join(dir, name), content)
	}
	must.Do(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, failed := d.Info()
			if err = failed; err == nil {
				size += info.Size()
			}
		}
		return err
	}))
	return size
}

// write makes a file without holding it in memory: a process inherits the peak of the process that starts it.
func write(t *testing.T, path string, content func(io.Writer)) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	must.Do(t, err)
	if strings.HasSuffix(path, ".gz") {
		z, _ := gzip.NewWriterLevel(file, gzip.BestSpeed)
		content(z)
		err = z.Close()
	} else {
		content(file)
	}
	must.Do(t, errors.Join(err, file.Close()))
}

// repeated writes a text, then another one so often that it has at least size bytes, then the last one.
func repeated(first, again string, size int, last string) func(io.Writer) {
	return func(w io.Writer) {
		_, _ = io.WriteString(w, first)
		block := strings.Repeat(again, 1+(64<<10)/len(again))
		for n := size / len(again) * len(again); n > 0; {
			part, _ := io.WriteString(w, block[:min(n, len(block))])
			n -= max(part, 1)
		}
		_, _ = io.WriteString(w, last)
	}
}

func text(s string) func(io.Writer) { return func(w io.Writer) { _, _ = io.WriteString(w, s) } }

// shortTempDir returns a folder whose path leaves room for the names of sockets.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hostile") //nolint:usetesting // t.TempDir is too long
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
