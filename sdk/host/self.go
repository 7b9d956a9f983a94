package host

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
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
	ours, known := debug.ReadBuildInfo()
	theirs, err := buildinfo.ReadFile(path)
	if err != nil || !known || theirs.String() != ours.String() {
		return ""
	}
	return path
}
