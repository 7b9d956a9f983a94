package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"runtime"

	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// binary is the open file of a plugin. It runs only after it was hashed. Where the system allows it, this very file is
// run, even if its path has been replaced in the meantime (see execute).
type binary struct {
	*os.File
	sum []byte
}

// openBinary opens a plugin's file, unless other users decide about it.
func openBinary(path string) (*binary, error) {
	f, info, err := openfile.Regular(path)
	if err != nil {
		return nil, err
	}
	if err := openfile.CheckOwner(path, info); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &binary{File: f}, nil
}

// hash computes the sum. It ends with ctx: the file may be large, or on a slow disk.
func (b *binary) hash(ctx context.Context) error {
	hash := sha256.New()
	file := limit.Reader(&untilDone{ctx, b.File}, b.Name(), limit.Program, "name a plugin's binary")
	if _, err := io.Copy(hash, file); err != nil {
		return err
	}
	b.sum = hash.Sum(nil)
	return nil
}

// untilDone reads until the context is done.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
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
