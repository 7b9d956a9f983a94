package host

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/origami-gemm/origami/core/limit"
)

// binary is the open, hashed file of a plugin. Where the system allows it, this very file is run, even if its path
// has been replaced in the meantime (see execute).
type binary struct {
	*os.File
	sum []byte
}

// openBinary opens and hashes a plugin's file.
func openBinary(path string) (*binary, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe could wait for ever
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, limit.Reader(f, path, limit.Program, "name a plugin's binary")); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &binary{f, hash.Sum(nil)}, nil
}

// hasHash reports whether the file has this hash.
func (b *binary) hasHash(sum []byte) bool { return bytes.Equal(b.sum, sum) }

// isScript reports whether an interpreter runs the file. The interpreter opens it by its path.
func (b *binary) isScript() bool {
	var start [2]byte
	n, _ := b.ReadAt(start[:], 0)
	return string(start[:n]) == "#!"
}

// execute makes cmd run the open file instead of the file that is then at its path. It needs Linux and a program that
// is not a script; otherwise cmd does not change.
func (b *binary) execute(cmd *exec.Cmd) {
	if _, err := os.Stat("/proc/self/fd"); runtime.GOOS != "linux" || err != nil || b.isScript() {
		return
	}
	// The first extra file is descriptor 3 of the child, already when it executes the program.
	cmd.ExtraFiles, cmd.Path = []*os.File{b.File}, "/proc/self/fd/3"
}

// writableByAll returns the file, or a folder above it, if every user may write to it, and "" otherwise. In a folder
// with the sticky bit, such as /tmp, only the owner of a file may replace it.
func writableByAll(path string) (file, folder string) {
	if runtime.GOOS == "windows" { // permissions are not these bits there
		return "", ""
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", ""
	}
	const othersWrite = 0o002
	if info, err := os.Stat(target); err == nil && info.Mode().Perm()&othersWrite != 0 {
		return target, ""
	}
	for child, dir := target, filepath.Dir(target); dir != child; child, dir = dir, filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&othersWrite != 0 &&
			info.Mode()&fs.ModeSticky == 0 {
			return "", dir
		}
	}
	return "", ""
}

// guard refuses a file that every user may write to, and warns about a file that every user may replace.
func (h *Host) guard(path string) error {
	file, folder := writableByAll(path)
	if file != "" {
		return errors.New(writableFile(file))
	}
	if folder != "" {
		h.options.Logger.Warn("every user may replace "+path, "fix", "chmod o-w "+folder)
	}
	return nil
}

func writableFile(file string) string {
	return fmt.Sprintf("every user may write to it; check its content, then `chmod o-w %s`", file)
}
