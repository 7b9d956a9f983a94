package limit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func TestReader(t *testing.T) {
	const most = 10
	for size := range 13 {
		text := []byte(strings.Repeat("x", size))
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r },
			"bytes": iotest.OneByteReader, "end with data": iotest.DataErrReader,
		} {
			got, err := limit.ReadAll(wrap(bytes.NewReader(text)), "big.csv", most, "split it")
			if size <= most {
				must.That(t, err == nil && bytes.Equal(got, text), "%d bytes, %s: got %q, %v", size, name, got, err)
				continue
			}
			const want = "big.csv: it is larger than 10 B, the most that is read of such a file; split it"
			must.That(t, len(got) == most && err != nil && err.Error() == want && diag.KindOf(err) == diag.Input,
				"%d bytes, %s: got %q, %v", size, name, got, err)
			e := limit.Exceeded(fmt.Errorf("line 3: %w", err))
			must.That(t, e != nil && e.Error() == want, "wrapped: got %v", e)
		}
	}
	// An excess is told again and again, and nothing of it is handed out.
	r := limit.Reader(strings.NewReader("abc"), "f", 1, "")
	if _, err := io.ReadAll(r); limit.Exceeded(err) == nil {
		t.Errorf("got %v", err)
	}
	if n, err := r.Read(make([]byte, 9)); n != 0 || limit.Exceeded(err) == nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
	// The errors of what is read come through, also those in a user's words.
	if _, err := limit.ReadAll(iotest.ErrReader(diag.Inputf("not a table")), "f", 1, ""); limit.Exceeded(err) != nil {
		t.Errorf("got %v", limit.Exceeded(err))
	}
	_, err := limit.ReadAll(iotest.ErrReader(io.ErrUnexpectedEOF), "f", 1, "")
	must.That(t, errors.Is(err, io.ErrUnexpectedEOF) && limit.Exceeded(err) == nil, "got %v", err)
}

// A file is in memory once, however large it is.
func TestReadAllOfAFile(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	files := fstest.MapFS{"large.csv": {Data: text}}
	f := must.Get(files.Open("large.csv"))(t)
	got, err := limit.ReadAll(f, "large.csv", limit.Records, "")
	must.That(t, err == nil && bytes.Equal(got, text), "got %d bytes, %v", len(got), err)
	must.That(t, cap(got) <= len(text)+bytes.MinRead, "%d bytes are held for %d", cap(got), len(text))
	if f, err = files.Open("large.csv"); err != nil {
		t.Fatal(err)
	}
	if got, err = limit.ReadAll(f, "large.csv", 10, "split it"); len(got) != 10 || limit.Exceeded(err) == nil {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestSize(t *testing.T) {
	for size, want := range map[limit.Size]string{
		limit.Text: "1 MiB", limit.Records: "16 GiB", 3 << 10: "3 KiB", 1500: "1500 B", 0: "0 B", 1<<20 + 1: "1048577 B",
	} {
		must.Equal(t, size.String(), want, int64(size), size)
	}
}

// What is written as a line is read as one, whether or not it fits the buffer, and what follows the last is the rest.
func TestLines(t *testing.T) {
	var all []byte
	for _, n := range []int{1, 64 << 10, limit.Line - 4} {
		all = append(all, must.Get(limit.JSONLine(strings.Repeat("<", n)))(t)...)
	}
	must.Fail(t, must.Err(limit.JSONLine(strings.Repeat("x", limit.Line))), "at most 1048576 are read")
	lines := limit.NewLines(bytes.NewReader(append(all, "rest"...)))
	for _, want := range []int{4, 64<<10 + 3, limit.Line - 1} {
		must.Equal(t, len(must.Get(lines.Next())(t)), want)
	}
	rest, err := lines.Next()
	must.That(t, string(rest) == "rest" && errors.Is(err, io.EOF), "%s, %v", rest, err)
	long := limit.NewLines(bytes.NewReader(bytes.Repeat([]byte("x"), limit.Line+1)))
	must.That(t, errors.Is(must.Err(long.Next()), limit.ErrLongLine), "a line of more than %d bytes is read", limit.Line)
}
