package session

import (
	"context"
	"io"
	"os"
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
		return struct {
			io.Reader
			io.Closer
		}{Reader(ctx, o.file), o.file}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
