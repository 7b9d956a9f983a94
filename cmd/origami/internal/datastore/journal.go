package datastore

import (
	"fmt"
	"os"

	"github.com/gofrs/flock"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// Journal is a file of lines that a measurement appends to.
type Journal struct {
	file *os.File
	lock *flock.Flock
	// size is the length of the complete lines.
	size int64
}

// OpenJournal opens a journal, or begins it, and keeps other processes from writing to it.
func OpenJournal(name string) (*Journal, error) {
	l, err := lockFile(name, name)
	if err != nil {
		return nil, err
	}
	j, err := openJournal(name, l)
	if err != nil {
		_ = l.Unlock() // the error says more
	}
	return j, err
}

// openJournal opens a journal under a lock, which its end releases.
func openJournal(name string, l *flock.Flock) (*Journal, error) {
	file, info, err := openfile.Append(name, 0o644)
	if err != nil {
		return nil, unwritable(name, err)
	}
	return &Journal{file, l, info.Size()}, nil
}

// lockFile locks a file against other writers of a place. The system releases the lock when the process ends, so it
// cannot go stale.
func lockFile(name, place string) (*flock.Flock, error) {
	l := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDONLY|openfile.Own))
	got, err := l.TryLock()
	if err != nil {
		return nil, unwritable(name, err)
	}
	if !got {
		return nil, diag.Inputf("another process is writing measurements to it").At("%s", place).
			Do("wait for it, or give another name with --records")
	}
	info, err := l.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = diag.Inputf("%v, and it is locked while measurements are written", openfile.ErrNotRegular).At("%s", name).
			Do("remove it, or give another name with --records")
	}
	if err != nil {
		_ = l.Close() // the error says more
		return nil, err
	}
	return l, nil
}

// Size is the length of the complete lines.
func (j *Journal) Size() int64 { return j.size }

// Cut drops what is behind a size.
func (j *Journal) Cut(size int64) error {
	if err := j.file.Truncate(size); err != nil {
		return unwritable(j.file.Name(), err)
	}
	j.size = size
	return nil
}

// Write writes lines in one system call. Once it returns, they survive the end of this process. A write that fails, as
// on a full disk, leaves the file as it was.
func (j *Journal) Write(lines []byte) error {
	if _, err := j.file.Write(lines); err != nil {
		_ = j.file.Truncate(j.size) // if that fails too, the reader drops the torn line
		return unwritable(j.file.Name(), err)
	}
	j.size += int64(len(lines))
	return nil
}

// Sync makes what was written survive a power cut. It takes milliseconds, longer than many measurements, so call it at
// the end of a problem: measuring a problem again costs less than waiting after each line.
func (j *Journal) Sync() error {
	if err := j.file.Sync(); err != nil {
		return unwritable(j.file.Name(), err)
	}
	return nil
}

// Close syncs and unlocks.
func (j *Journal) Close() error {
	err := j.Sync()
	if closed := j.file.Close(); err == nil && closed != nil {
		err = unwritable(j.file.Name(), closed)
	}
	if unlocked := j.lock.Unlock(); err == nil {
		err = unlocked
	}
	return err
}

func unwritable(path string, err error) error {
	err = diag.WithoutPath(err)
	return &diag.Error{What: fmt.Sprintf("measurements cannot be written: %v", err), Where: path,
		Fix: "make room, or give another name with --records", Err: err}
}
