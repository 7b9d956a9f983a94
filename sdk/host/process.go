package host

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// process is a child process with its standard streams. It replaces that of go-plugin for three reasons: go-plugin
// gives the user's standard input to the plugin, a malformed log line of a plugin makes its parser panic in the host,
// and it cannot end a plugin that does not answer any more.
type process struct {
	cmd    *exec.Cmd
	stdout *os.File
	stderr *tail

	exited chan struct{} // closed when the process has ended and its stderr has been read

	mu     sync.Mutex
	ended  bool
	killed bool // by us, before it ended
	drain  time.Duration
	state  string // how it ended, once exited is closed
}

// drainTime is the time for which the streams of an ended process are still read if a descendant holds them open.
const drainTime = 500 * time.Millisecond

// start starts a program, or the open file if one is given, in a new process group. A Ctrl-C at the terminal thus
// reaches only the host, which then ends the plugin.
func start(path string, file *binary, args, env []string, stderr *tail) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), stderr: stderr, exited: make(chan struct{}), drain: drainTime}
	if file != nil {
		file.execute(p.cmd)
	}
	p.cmd.Env = env

	var ours, theirs []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			ours = append(ours, r, w) // until the start, this process closes all of them
		}
		return r, w, err
	}
	// Nothing is written to the child's standard input. It closes whenever and however this process ends, and the
	// child then ends too.
	stdinR, stdinW, err1 := pipe()
	stdoutR, stdoutW, err2 := pipe()
	stderrR, stderrW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll(ours)
		return nil, err
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdinR, stdoutW, stderrW
	p.stdout = stdoutR
	theirs = []*os.File{stdinR, stdoutW, stderrW}

	if err := startTied(p.cmd, p.exited); err != nil {
		closeAll(ours)
		return nil, err
	}
	closeAll(theirs)
	living.Store(p, nil)

	drained := make(chan struct{})
	go func() {
		defer close(drained)
		stderr.readFrom(stderrR)
	}()
	go func() {
		err := reap(p.cmd, &p.mu)
		p.ended = true
		p.state = p.cmd.ProcessState.String()
		if p.killed {
			p.state = "killed by origami"
		} else if p.cmd.ProcessState == nil {
			p.state = err.Error()
		}
		late := time.Now().Add(p.drain)
		p.mu.Unlock()
		living.Delete(p)
		_, _ = stdoutR.SetReadDeadline(late), stderrR.SetReadDeadline(late)
		<-drained
		closeAll([]*os.File{stderrR, stdinW})
		close(p.exited)
	}()
	return p, nil
}

// kill ends the process and its descendants at once. It does not wait.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.killed = true
		killGroup(p.cmd)
	}
}

// abandon is kill where nobody will read what the process has left to say.
func (p *process) abandon() {
	p.mu.Lock()
	p.drain = 0
	p.mu.Unlock()
	p.kill()
}

// release waits for the process to end and frees the rest. All reads of stdout must have finished.
func (p *process) release() {
	<-p.exited
	_ = p.stdout.Close()
}

// exitedWithin waits for the process to end.
func (p *process) exitedWithin(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(d):
		return false
	}
}

// tail forwards the log of a plugin to the host's logger. For error texts it keeps the last lines that are not
// routine log lines.
type tail struct {
	logger hclog.Logger

	mu    sync.Mutex
	lines []string
	cause string // the first line of a Go crash report; the report is longer than lines
}

const (
	tailLines  = 20
	tailLength = 512      // bytes kept of a line
	lineLength = 64 << 10 // bytes read of a line
)

func (t *tail) readFrom(r io.Reader) {
	for b := bufio.NewReaderSize(r, lineLength); ; {
		line, more, err := b.ReadLine()
		if err != nil {
			return
		}
		t.add(string(line))
		for more && err == nil { // the rest of an overlong line
			_, more, err = b.ReadLine()
		}
	}
}

func (t *tail) add(line string) {
	line = strings.TrimRight(line, "\r\n")
	var entry map[string]any
	if strings.HasPrefix(line, "{") {
		_ = json.Unmarshal([]byte(line), &entry)
	}
	if message, ok := entry["@message"].(string); ok {
		name, _ := entry["@level"].(string)
		level := hclog.LevelFromString(name)
		t.log(level, message, entry)
		if level < hclog.Warn {
			return
		}
		line = message
	} else {
		t.logger.Debug(line)
	}
	if line = strings.TrimSpace(line); line == "" {
		return
	}
	line = strings.ToValidUTF8(line[:min(len(line), tailLength)], "")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == "" && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")) {
		t.cause = line
	}
	t.lines = append(t.lines, line)
	t.lines = t.lines[max(0, len(t.lines)-tailLines):]
}

// log repeats a log line of the plugin without the fields that the host's logger adds.
func (t *tail) log(level hclog.Level, message string, entry map[string]any) {
	if level == hclog.NoLevel {
		level = hclog.Info
	}
	var keys []string
	for key := range entry {
		if !strings.HasPrefix(key, "@") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var args []any
	for _, key := range keys {
		args = append(args, key, entry[key])
	}
	t.logger.Log(level, message, args...)
}

// last returns the kept lines and the most informative one.
func (t *tail) last() (lines []string, cause string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines, cause = slices.Clone(t.lines), t.cause
	if cause == "" && len(lines) > 0 {
		cause = lines[len(lines)-1]
	}
	return lines, cause
}

// Write takes the output of a plugin after the handshake, which arrives through gRPC.
func (t *tail) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		t.add(line)
	}
	return len(text), nil
}
