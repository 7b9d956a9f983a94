package host

import (
	"context"
	"errors"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// If a plugin's file is replaced between the check of its hash and its start, the checked file runs.
func TestWhatWasHashedIsWhatRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a program is started by its path")
	}
	path := filepath.Join(t.TempDir(), Prefix+"good") // the test binary is a plugin under this name
	program := must.Get(os.ReadFile(os.Args[0]))(t)
	must.Do(t, os.WriteFile(path, program, 0o700))
	file := must.Get(openBinary(path))(t)
	must.Do(t, file.hash(t.Context()))
	defer func() { _ = file.Close() }()

	other := filepath.Join(t.TempDir(), "other")
	must.Do(t, os.WriteFile(other, []byte("#!/bin/sh\necho replaced\n"), 0o700))
	must.Do(t, os.Rename(other, path))
	cmd := osexec.Command(path, "describe")
	cmd.Env = os.Environ()
	var text []byte
	p := must.Get(start(cmd, file, nil, &output{level: hclog.Off}, func(r io.Reader) { text, _ = io.ReadAll(r) }))(t)
	<-p.exited
	must.That(t, strings.Contains(string(text), `"good"`), "it printed %q", text)
}

// untilAsked is a context that is done when it was asked that often.
type untilAsked struct {
	context.Context
	left int
}

func (c *untilAsked) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// Hashing a large file ends with its context, and not with the file.
func TestHashingEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), Prefix+"large")
	must.Do(t, errors.Join(os.WriteFile(path, nil, 0o700), os.Truncate(path, 1<<30)))
	file := must.Get(openBinary(path))(t)
	defer func() { _ = file.Close() }()
	if err := file.hash(&untilAsked{t.Context(), 2}); !errors.Is(err, context.Canceled) || file.sum != nil {
		t.Errorf("got %v, %x", err, file.sum)
	}
	at, err := file.Seek(0, io.SeekCurrent)
	must.That(t, err == nil && at != 0 && at <= 1<<20, "it has read %d bytes, %v", at, err)
}
