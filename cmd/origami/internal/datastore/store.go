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

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/durable"
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
	l, err := lockFile(filepath.Join(folder, locked), folder)
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
