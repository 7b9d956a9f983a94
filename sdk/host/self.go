package host

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// self returns the path of this program, empty if it cannot be told.
func self() string {
	if path, err := os.Executable(); err == nil {
		return path
	}
	// Linux tells through /proc, which a chroot may lack.
	return calledAs(os.Args[0])
}

// calledAs returns the path of the program that a shell runs under a name, if it is this one: a caller may give a
// program any name.
func calledAs(name string) string {
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return ""
	}
	// A program contains its own build information, without the line of the Go version. Package debug/buildinfo would
	// find it too, and brings the readers of five formats of programs with it.
	info, known := debug.ReadBuildInfo()
	if !known {
		return ""
	}
	_, ours, _ := strings.Cut(info.String(), "\n")
	if program, err := os.ReadFile(path); err != nil || !bytes.Contains(program, []byte(ours)) {
		return ""
	}
	return path
}
