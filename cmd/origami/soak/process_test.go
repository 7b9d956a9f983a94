//go:build linux

package soak

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processes lists the processes that run in this world, by the home folder in their environment. A process that has
// ended and was not waited for has no environment.
func (w *world) processes() []int {
	entries, _ := os.ReadDir("/proc")
	home := []byte("HOME=" + w.path("home"))
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && (bytes.HasPrefix(environ, home) || bytes.Contains(environ, append([]byte{0}, home...))) {
			found = append(found, pid)
		}
	}
	return found
}

// children lists the plugin processes of a host that run the given program. A process that still has the command line
// of the host is none yet. It shares the host's memory, and Go's os package makes one without blocking signals (to try
// pidfd_open): a signal to that process runs the host's handler and ends the host.
func (w *world) children(host int, program string) []int {
	var found []int
	own := name(host)
	for _, pid := range w.processes() {
		path, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
		if strings.TrimSuffix(path, " (deleted)") == program && parent(pid) == host && name(pid) != own {
			found = append(found, pid)
		}
	}
	return found
}

// parent returns the parent of a process, 0 if it has ended.
func parent(pid int) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, may contain spaces. The state and the parent follow it.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	id, _ := strconv.Atoi(string(fields[1]))
	return id
}

// name is the command line of a process.
func name(pid int) string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ")
}
