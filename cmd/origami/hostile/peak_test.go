//go:build linux

package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// runMeasured runs a command and writes what it needed to a file: measure FILE COMMAND ARGUMENT… It kills a command
// that needs so much that it would disturb the machine. It is a small process of its own, because the peak of a process
// begins with that of the process that has started it.
func runMeasured() {
	if err := measurePeak(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measurePeak(report string, command []string) error {
	cmd := osexec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		for s := range stop {
			_ = cmd.Process.Signal(s) // that it has ended is seen below
		}
	}()
	ended := make(chan struct{})
	watched := make(chan measured)
	go func() { watched <- watch(cmd.Process.Pid, ended) }()
	_ = cmd.Wait() // the exit code says it
	close(ended)
	m := <-watched
	m.Seconds, m.Code = time.Since(begin).Seconds(), cmd.ProcessState.ExitCode()
	// The largest of the command and of the processes that it has waited for, also if they lived for a moment only
	m.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	m.Peak = max(m.Peak, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss<<10)
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(report, text, 0o600)
}

// watch looks at a process and its children until it has ended.
func watch(pid int, ended <-chan struct{}) (m measured) {
	late := time.After(mostTime)
	for {
		select {
		case <-ended:
			return m
		case <-late:
			m.Killed = fmt.Sprintf("it did not end within %v", mostTime)
		case <-time.After(20 * time.Millisecond):
		}
		for _, p := range append(childrenOf(pid), pid) {
			m.Peak = max(m.Peak, peakOf(p))
		}
		if m.Peak > 1<<30 {
			m.Killed = "it needs more than 1 GiB"
		}
		if m.Killed != "" {
			_ = syscall.Kill(pid, syscall.SIGKILL) // its plugins end with it
			<-ended
			return m
		}
	}
}

// peakOf returns the largest memory of a process so far, in bytes, and 0 if it has ended.
func peakOf(pid int) int64 {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	_, rest, _ := bytes.Cut(text, []byte("\nVmHWM:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10
}

func childrenOf(pid int) (children []int) {
	lists, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range bytes.Fields(text) {
			if child, err := strconv.Atoi(string(word)); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
