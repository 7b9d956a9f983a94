package host

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// process is a child process with its standard streams. A program that serves gets it from a launcher, for go-plugin's
// client; one that describes itself needs no more.
type process struct {
	cmd *exec.Cmd
	log *output
	// stdin and stdout are this side of its standard streams.
	stdin, stdout *os.File

	exited chan struct{} // closed when the process has ended and its streams have been read

	mu     sync.Mutex
	ended  bool
	killed bool // by us, before it ended
	drain  time.Duration
	state  string // how it ended, once exited is closed
}

// drainTime is the time for which the streams of an ended process are still read if a descendant holds them open.
const drainTime = 500 * time.Millisecond

// start starts a program, or the open file if one is given, in a new process group. A Ctrl-C at the terminal thus
// reaches only the host, which then ends the plugin. Its standard input begins with a line, if that is not empty, and
// read reads its standard output.
func start(cmd *exec.Cmd, file *binary, line []byte, log *output, read func(io.Reader)) (*process, error) {
	p := &process{cmd: cmd, log: log, exited: make(chan struct{}), drain: drainTime}
	if file != nil {
		file.execute(cmd)
	}
	var ours []*os.File
	closeAll := func(files ...*os.File) {
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
	// The child's standard input closes whenever and however this process ends, and the child then ends too.
	stdinR, stdinW, err1 := pipe()
	stdoutR, stdoutW, err2 := pipe()
	stderrR, stderrW, err3 := pipe()
	err := errors.Join(err1, err2, err3)
	if err == nil {
		_, err = stdinW.Write(line) // a pipe holds it
	}
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdinR, stdoutW, stderrW
		err = startTied(cmd, p.exited)
	}
	if err != nil {
		closeAll(ours...)
		return nil, err
	}
	closeAll(stdinR, stdoutW, stderrW)
	p.stdin, p.stdout = stdinW, stdoutR
	living.Store(p, nil)

	var drained sync.WaitGroup
	drained.Go(func() { read(stdoutR) })
	drained.Go(func() { log.readFrom(stderrR) })
	go func() {
		err := reap(cmd, &p.mu)
		p.ended = true
		p.state = cmd.ProcessState.String()
		if p.killed {
			p.state = "killed by origami"
		} else if cmd.ProcessState == nil {
			p.state = err.Error()
		}
		late := time.Now().Add(p.drain)
		p.mu.Unlock()
		living.Delete(p)
		_, _ = stdoutR.SetReadDeadline(late), stderrR.SetReadDeadline(late)
		drained.Wait()
		closeAll(stdoutR, stderrR, stdinW)
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

// exitedWithin waits for the process to end.
func (p *process) exitedWithin(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(d):
		return false
	}
}

func (p *process) diedByItself() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended && !p.killed
}
