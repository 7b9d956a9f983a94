package session

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/printable"
	"github.com/origami-gemm/origami/formats/tensile"
	"github.com/origami-gemm/origami/sdk/durable"
)

// Reader returns a reader of r that ends with the context's error as soon as the context is cancelled. A read in
// progress, as of a terminal or of a pipe that nobody writes to, is abandoned: it ends with the process.
func Reader(ctx context.Context, r io.Reader) io.Reader {
	return &reader{ctx: ctx, in: r, buffer: make([]byte, 1<<16), done: make(chan outcome, 1)}
}

type reader struct {
	ctx    context.Context
	in     io.Reader
	buffer []byte // what in reads into: a caller's buffer could be in use again when an abandoned read ends
	rest   []byte // the part of buffer that has been read and not been handed out
	err    error  // behind rest
	done   chan outcome
}

// outcome is what a read returned.
type outcome struct {
	n   int
	err error
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if len(r.rest) == 0 && r.err == nil {
		go func() {
			n, err := r.in.Read(r.buffer)
			r.done <- outcome{n, err}
		}()
		select {
		case o := <-r.done:
			r.rest, r.err = r.buffer[:o.n], o.err
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	n := copy(p, r.rest)
	if r.rest = r.rest[n:]; n == 0 && len(p) > 0 {
		return 0, r.err
	}
	return n, nil
}

// OpenFile opens a file to read. Opening and reading end with the context's error as soon as the context is cancelled,
// also if the file is a named pipe.
func OpenFile(ctx context.Context, name string) (io.ReadCloser, error) {
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.Open(name)
		done <- opened{file, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		return file{Reader(ctx, o.file), o.file}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// file reads until its context ends.
type file struct {
	io.Reader
	fs.File
}

func (f file) Read(p []byte) (int, error) { return f.Reader.Read(p) }

// source is a file that the user named: what the errors call it, where they place it, and what they advise if it is too
// large or cannot be read.
type source struct {
	name, what, place string
	most              limit.Size
	tooLarge, fix     string
}

// read reads the whole file, through gzip if its name ends in .gz.
func (s source) read(ctx context.Context) ([]byte, error) { return s.readOr(ctx, nil) }

// readOr is read for a name that may be "-", which is stdin.
func (s source) readOr(ctx context.Context, stdin io.Reader) ([]byte, error) {
	data, err := s.text(ctx, stdin)
	if err == nil || limit.Exceeded(err) != nil || ctx.Err() != nil {
		return data, err
	}
	return nil, diag.Inputf("%s cannot be read: %v", s.what, diag.WithoutPath(err)).At("%s", s.place).Do("%s", s.fix)
}

func (s source) text(ctx context.Context, stdin io.Reader) ([]byte, error) {
	if stdin != nil && s.name == "-" {
		return limit.ReadAll(Reader(ctx, stdin), s.name, s.most, s.tooLarge)
	}
	file, err := OpenFile(ctx, s.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	in := io.Reader(file)
	if strings.HasSuffix(s.name, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			return nil, err
		}
	}
	return limit.ReadAll(in, s.name, s.most, s.tooLarge)
}

// ReadText reads a file that the user named, through gzip if its name ends in .gz. fix is the advice if it cannot be
// read.
func ReadText(ctx context.Context, name string, most limit.Size, fix string) ([]byte, error) {
	return source{name, "the file", name, most, fix, fix}.read(ctx)
}

// ReadLogic reads a library logic, through gzip if its name ends in .gz.
func ReadLogic(ctx context.Context, name string) (*tensile.Logic, error) {
	text, err := ReadText(ctx, name, limit.Logic,
		"give a library logic as `origami logic build` writes it, or of Tensile or hipBLASLt")
	if err != nil {
		return nil, err
	}
	return tensile.Read(name, text)
}

// Replace writes a file that a flag names, whole or not at all. A device or a pipe is written to.
func Replace(file string, text []byte) error {
	if irreplaceable(file) {
		return unwritable(file, os.WriteFile(file, text, 0o644))
	}
	return unwritable(file, durable.Write(file, 0o644, text))
}

// ReplaceIn is Replace for a file in a folder that a flag names. The name of the file may have come from a file or a
// plugin.
func ReplaceIn(folder, name string, text []byte) error {
	if err := printable.FileName(name); err != nil {
		return diag.Inputf("%v", err).At("%s", folder).Do("give the device or the model another name")
	}
	return Replace(filepath.Join(folder, name), text)
}

// Writable checks that Replace can write a file: before long work, so that its result is not lost. Without a name it
// does nothing.
func Writable(file string) error {
	if file == "" || irreplaceable(file) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	return unwritable(file, err)
}

// irreplaceable reports whether a file is a device or a pipe.
func irreplaceable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

func unwritable(file string, err error) error {
	if err == nil {
		return nil
	}
	err = diag.WithoutPath(err)
	return &diag.Error{What: fmt.Sprintf("it cannot be written: %v", err), Where: file, Fix: "name another file", Err: err}
}
