// Package datastore finds shipped data sets and those that a command line names. It also keeps the data set of a
// running measurement in a folder: however the process ends, the measurements are kept, and the same command
// continues.
package datastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/digits"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/sdk/durable"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// locked is the file that the process that writes the folder locks.
const locked = ".lock"

// Store is a folder that measurements are written to.
type Store struct {
	// Data is the data set of the folder when it was opened. The caller adds what it appends.
	Data *dataset.Dataset
	// Torn is the incomplete last line of an interrupted write, which was dropped; nil if there was none.
	Torn *dataset.Truncated

	*Journal
	line []byte
}

// Open opens the folder of a data set to continue it, or begins a data set. It is an error if the measurements in the
// folder were made under other conditions, or if another process writes to it.
func Open(ctx context.Context, folder string, want *dataset.Dataset) (_ *Store, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, unwritable(folder, err)
	}
	s := &Store{}
	l, err := lock(folder)
	if err != nil {
		return nil, err
	}
	defer func() {
		switch {
		case err == nil:
		case s.Journal == nil:
			_ = l.Unlock() // the error says more
		default:
			_ = s.Close()
		}
	}()

	if err := begin(folder, want); err != nil {
		return nil, err
	}
	s.Data, s.Torn, err = dataset.Recover(folder, Files(ctx, folder))
	if err != nil {
		return nil, err
	}
	if what := want.Difference(s.Data.Conditions); what != "" {
		return nil, diag.Inputf("its measurements were made under other conditions: %s", what).At("%s", folder).
			Do("name another folder with --records")
	}
	if s.Journal, err = openJournal(filepath.Join(folder, dataset.Log), l); err != nil {
		return nil, err
	}
	if s.Torn != nil {
		if err := s.Cut(s.Torn.Keep); err != nil {
			return nil, err
		}
	}
	// The names of the new log and of the folder must survive a power cut too. The folder above may be unreadable.
	if err := durable.SyncFolder(folder); err != nil {
		return nil, unwritable(folder, err)
	}
	_ = durable.SyncFolder(filepath.Dir(filepath.Clean(folder)))
	return s, nil
}

// lock locks a folder against other writers, and removes what one left that was killed.
func lock(folder string) (*flock.Flock, error) {
	l, err := lockFile(filepath.Join(folder, locked), folder, 0o600)
	if err != nil {
		return nil, err
	}
	if err := durable.Sweep(folder, dataset.Log, dataset.DescriptionFile, TuneFile, shardFile); err != nil {
		_ = l.Close() // the error says more
		return nil, unwritable(folder, err)
	}
	return l, nil
}

// begin writes the description of a dataset that does not exist yet.
func begin(folder string, want *dataset.Dataset) error {
	file := filepath.Join(folder, dataset.DescriptionFile)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return nil // it exists, or its reader reports why it cannot be read
	}
	text, err := dataset.AppendDescription(nil, want)
	if err != nil {
		return err
	}
	if err := durable.Write(file, 0o644, text); err != nil {
		return unwritable(folder, err)
	}
	return nil
}

// Append writes measurements, a line each.
func (s *Store) Append(measurements ...dataset.Measurement) error {
	if err := s.Data.Full(len(measurements)); err != nil {
		return diag.Within(s.file.Name(), err)
	}
	s.line = s.line[:0]
	for i := range measurements {
		var err error
		if s.line, err = dataset.AppendLine(s.line, s.Data.Conditions, &measurements[i]); err != nil {
			return &diag.Error{What: fmt.Sprintf("a measurement of %s cannot be recorded: %v",
				measurements[i].Problem, err),
				Where: s.file.Name(), Err: err}
		}
	}
	if s.size+int64(len(s.line)) > int64(limit.Records) {
		return diag.Inputf("it would be larger than %v, the most that is read of such a file", limit.Records).
			At("%s", s.file.Name()).Do("give it another name that ends in .jsonl, and go on")
	}
	return s.Write(s.line)
}

// Journal is a file of lines that a measurement appends to.
type Journal struct {
	file *os.File
	lock *flock.Flock
	// size is the length of the complete lines.
	size int64
}

// OpenJournal opens a journal, or begins it, and keeps other processes from writing to it.
func OpenJournal(name string) (*Journal, error) {
	l, err := lockFile(name, name, 0o644)
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

// lockFile locks a file against other writers of a place, and makes it with a mode if there is none. The system
// releases the lock when the process ends, so it cannot go stale.
func lockFile(name, place string, made fs.FileMode) (*flock.Flock, error) {
	l := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDONLY|openfile.Own), flock.SetPermissions(made))
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

// Fits reports whether the matrices of a problem fit into a device's memory, and warns if not: no candidate could run.
// Zero means that the executor does not know the memory.
func Fits(s *iostreams.Streams, p gemm.Problem, memory unit.Bytes) bool {
	var need unit.Bytes
	for o := gemm.A; o <= gemm.C; o++ {
		need += unit.Bytes(p.Matrices(o)) * unit.Bytes(p.Type(o).Size(p.Stride(o)))
	}
	if memory == 0 || need <= memory {
		return true
	}
	s.Warn(fmt.Sprintf("%s is not measured: its matrices take %.4g GB, and the device has %.4g GB", p,
		float64(need)/1e9, float64(memory)/1e9))
	return false
}

// LeftOut says that a measurement has no time, and false if that is no reason to warn: many candidates do not fit.
func LeftOut(m *dataset.Measurement) (string, bool) {
	if m.Status == dataset.OK || m.Status == dataset.NotBuilt {
		return "", false
	}
	return fmt.Sprintf("%s of %s is left out: %s: %s", m.Label(), m.Problem, words(m.Status), m.Detail), true
}

// words writes a status for a reader.
func words(s dataset.Status) string {
	switch s {
	case dataset.Wrong:
		return "wrong result"
	case dataset.Timeout:
		return "it did not end in time"
	default:
		return string(s)
	}
}

// Stopped adds to the error that ended a sweep how many measurements are kept, and how to continue.
func Stopped(ctx context.Context, err error, measurements int, folder string) error {
	kept := ""
	if measurements > 0 {
		kept = digits.Plural(measurements, "measurement is", "measurements are") + " kept"
	}
	return StoppedWith(ctx, err, kept, folder)
}

// StoppedWith adds to the error that ended a measurement what is kept in a file or folder of records, and how to
// continue. kept is empty if that is nothing.
func StoppedWith(ctx context.Context, err error, kept, records string) error {
	var d *diag.Error
	switch {
	case ctx.Err() != nil:
		d = &diag.Error{What: session.ErrInterrupted.Error(), Err: session.ErrInterrupted}
	case !errors.As(err, &d):
		d = &diag.Error{What: err.Error(), Err: err}
	}
	if kept == "" {
		return d
	}
	fix := fmt.Sprintf("%s in %s, and the same command with --records %s goes on from there", kept, records, records)
	if d.Fix != "" {
		fix = d.Fix + "; " + fix
	}
	return d.Do("%s", fix)
}
