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

// binary is the open file of a plugin that has been hashed. What is run is this file, whatever its path has become
// meanwhile, as far as the system can do that (see execute).
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
		return nil, fmt.Errorf("%s is no regular file", path)
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

// is reports whether the file has that hash.
func (b *binary) is(sum []byte) bool { return bytes.Equal(b.sum, sum) }

// isScript reports whether an interpreter runs the file, which opens it by its path.
func (b *binary) isScript() bool {
	var start [2]byte
	n, _ := b.ReadAt(start[:], 0)
	return string(start[:n]) == "#!"
}

// execute makes cmd run the file that b has open rather than what lies at its path by then. That takes Linux and a
// program that is no script; otherwise cmd stays as it is.
func (b *binary) execute(cmd *exec.Cmd) {
	if _, err := os.Stat("/proc/self/fd"); runtime.GOOS != "linux" || err != nil || b.isScript() {
		return
	}
	// The child has the first of the extra files as descriptor 3, at the moment that counts too.
	cmd.ExtraFiles, cmd.Path = []*os.File{b.File}, "/proc/self/fd/3"
}

// openToAll returns the file, or a folder above it, if every user may write to it, and "" otherwise.
// Folders with the sticky bit, such as /tmp, keep what is in them to its owners.
func openToAll(path string) (file, folder string) {
	if runtime.GOOS == "windows" { // its permissions are not these bits
		return "", ""
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", ""
	}
	const othersWrite = 0o002
	if info, err := os.Stat(real); err == nil && info.Mode().Perm()&othersWrite != 0 {
		return real, ""
	}
	for child, dir := real, filepath.Dir(real); dir != child; child, dir = dir, filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&othersWrite != 0 && info.Mode()&fs.ModeSticky == 0 {
			return "", dir
		}
	}
	return "", ""
}

// guard refuses a file that every user may write to, and warns about a file that every user may replace.
func (h *Host) guard(path string) error {
	file, folder := openToAll(path)
	if file != "" {
		return errors.New(everybodyWrites(file))
	}
	if folder != "" {
		h.options.Logger.Warn("everybody may put another file in the place of "+path, "fix", "chmod o-w "+folder)
	}
	return nil
}

func everybodyWrites(file string) string {
	return fmt.Sprintf("everybody may write to it; `chmod o-w %s` if it is as it should be", file)
}
