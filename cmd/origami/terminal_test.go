//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/must"
	"golang.org/x/sys/unix"
)

// terminal is a terminal of 80 columns: what is typed is written to the keyboard, which reads the screen.
type terminal struct{ keyboard, tty *os.File }

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be opened: %v", err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	var number int
	control(t, keyboard, func(fd int) (err error) {
		if number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); err != nil {
			return err
		}
		return errors.Join(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
			unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 80}))
	})
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be opened: %v", err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	return &terminal{keyboard, tty}
}

// control calls f with the descriptor of a file, whose reads keep their deadlines.
func control(t *testing.T, file *os.File, f func(fd int) error) {
	t.Helper()
	c, err := file.SyscallConn()
	if err == nil {
		var failed error
		err = errors.Join(c.Control(func(fd uintptr) { failed = f(int(fd)) }), failed)
	}
	must.Do(t, err)
}

func (term *terminal) settings(t *testing.T) (s *unix.Termios) {
	t.Helper()
	control(t, term.keyboard, func(fd int) (err error) {
		s, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	})
	return s
}

// start starts a command whose standard error is the terminal, and so is its standard output if that is nil. It is
// killed after a time in which the slowest machine ends it, so that no read of the screen waits for ever.
func (term *terminal) start(t *testing.T, cmd *osexec.Cmd, env ...string) {
	t.Helper()
	cmd.Stderr = term.tty
	if cmd.Stdout == nil {
		cmd.Stdout = term.tty
	}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name != "NO_COLOR" && name != "COLUMNS" {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0", "TERM=xterm")
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	must.Do(t, cmd.Start())
	_ = term.tty.Close() // so that the screen has an end
	kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { kill.Stop() })
}

// until reads the screen until a text is there, and to its end if the text is empty.
func (term *terminal) until(t *testing.T, text string) string {
	t.Helper()
	must.Do(t, term.keyboard.SetReadDeadline(time.Now().Add(2*time.Minute)))
	var all []byte
	for piece := make([]byte, 1<<12); text == "" || !bytes.Contains(all, []byte(text)); {
		n, err := term.keyboard.Read(piece)
		all = append(all, piece[:n]...)
		switch {
		case err == nil:
		case errors.Is(err, syscall.EIO) && text == "": // the last process has closed it
			return string(all)
		default:
			t.Fatalf("%v before %q: %q", err, text, all)
		}
	}
	return string(all)
}

// TestColours: a terminal shows in colour what came out best, what limits a kernel, and errors. Nothing else has an
// escape sequence.
func TestColours(t *testing.T) {
	const rank = "--arch sm89 rank -m 64 -n 64 -k 64 --top 2"
	const one = "compare -m 4096 -n 4096 -k 4096 --arch "
	const escape, best = "\x1b", "\x1b[1m\x1b[32m"
	problems := filepath.Join(t.TempDir(), "problems.csv")
	must.Do(t, os.WriteFile(problems, []byte("m,n,k,dtype\n4096,4096,4096,\n4096,4096,4096,fp32\n"), 0o600))
	cases := map[string]struct {
		args, env string
		piped     bool   // the standard output is a pipe
		best      int    // how often something came out best
		want      string // a regular expression of what is written
	}{
		"rank": {args: rank, best: 1, want: `(?s) 1  \x1b\[1m\x1b\[32m\d+x\d+x\d+ w[^\x1b]*\x1b\[0m .*` +
			`\x1b\[33mlatency\x1b\[0m.* 2  \d+x\d+x\d+ w`},
		"one problem": {args: one + "a100,h200 --kernel library", best: 1,
			want: `fastest +– +\x1b\[1m\x1b\[32mlead \d+\.\d+, over 99 %\x1b\[0m`},
		"one in doubt": {args: one + "a100-pcie-40gb,a100-pcie-80gb --kernel library",
			want: `fastest .*lead \d+\.\d+, \d\d % \?`},
		"many": {args: "compare --arch a100,h200 --kernel library --problems " + problems, best: 2,
			want: `(?s)fp16 .*\x1b\[1m\x1b\[32mh200, lead [0-9.]+, over 99 %\x1b\[0m.*fp32 .*\x1b\[32mh200, `},
		"error":          {args: "--arch sm89 rank -m 64", want: `^\x1b\[1m\x1b\[31morigami:\x1b\[0m -n and -k are missing`},
		"NO_COLOR":       {args: rank, env: "NO_COLOR=1", want: ` 1  \d+x`},
		"NO_COLOR error": {args: "--arch sm89 rank -m 64", env: "NO_COLOR=1", want: `^origami: -n and -k are missing`},
		"dumb":           {args: rank, env: "TERM=dumb", want: ` 1  \d+x`},
		"CSV":            {args: rank + " --format csv", want: `^arch,device,model,`},
		"piped table":    {args: rank, piped: true, want: `(?s) 1  \d+x.*\nnot shown: .*--wide shows all columns`},
		"piped wide":     {args: rank + " --wide", piped: true, want: ` 1  \d+x[^\n]{90}`},
		"piped compare":  {args: one + "a100,h200", piped: true, want: `fastest +– +lead`},
		"piped CSV":      {args: rank + " --format csv", piped: true, want: `^arch,device,model,`},
	}
	origami := binary(t)
	for name, c := range cases {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			term := newTerminal(t)
			cmd := osexec.Command(origami, append([]string{"--in-process"}, strings.Fields(c.args)...)...)
			var out bytes.Buffer
			if c.piped {
				cmd.Stdout = &out
			}
			term.start(t, cmd, c.env)
			got := term.until(t, "")
			err := cmd.Wait()
			must.That(t, (err != nil) == strings.Contains(name, "error"), "%v", err)
			if c.piped {
				got = out.String()
			}
			must.That(t, regexp.MustCompile(c.want).MatchString(got), "%q does not match %s", got, c.want)
			n := strings.Count(got, best)
			must.That(t, n == c.best, "%d things came out best, want %d: %q", n, c.best, got)
			plain := c.piped || c.env != "" || strings.HasSuffix(c.args, " csv")
			must.That(t, !plain || !strings.Contains(got, escape), "escape sequences in %q", got)
		})
	}
}

// TestInterruptLeavesTheTerminal: Ctrl-C while a bar is shown leaves what was answered and one line on the screen, and
// nothing of the bar.
func TestInterruptLeavesTheTerminal(t *testing.T) {
	term := newTerminal(t)
	before := *term.settings(t)
	problems, typed, err := os.Pipe() // stays open: the command waits for more
	must.Do(t, err)
	t.Cleanup(func() { _ = typed.Close() })
	must.Get(typed.WriteString("m,n,k\n64,64,64\n"))(t)
	cmd := osexec.Command(binary(t), "--in-process", "--arch", "sm89", "select", "--problems", "-")
	cmd.Stdin = problems
	term.start(t, cmd)
	_ = problems.Close()

	screen := term.until(t, ": selecting")
	must.Get(term.keyboard.WriteString("\x03"))(t)
	screen += term.until(t, "")
	var exit *osexec.ExitError
	err = cmd.Wait()
	must.That(t, errors.As(err, &exit) && exit.ExitCode() == 130, "it ended with %v, want exit code 130", err)
	const clearLine, last = "\r\x1b[K", "\x1b[1m\x1b[31morigami:\x1b[0m interrupted\r\n"
	end := screen[strings.LastIndex(screen, clearLine)+len(clearLine):]
	answers, ended := strings.CutSuffix(end, last)
	must.That(t, ended && !strings.Contains(answers, "selecting"),
		"after the bar the screen has %q, want answers and %q; all is %q", end, last, screen)
	if answers != "" && strings.Count(answers, "\r\n64x64x64 fp16 ") != 1 { // a slow machine has none yet
		t.Errorf("the answer is not kept: %q", answers)
	}
	must.That(t, !strings.Contains(screen, "\x1b[?25l"), "the cursor was hidden: %q", screen)
	after := *term.settings(t)
	must.That(t, after == before, "the settings of the terminal are %+v, they were %+v", after, before)
}
