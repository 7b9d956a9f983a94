// Package limit bounds what is read from files, so that a wrong or a hostile one costs an error and not the memory. A
// compressed file is bounded by what comes out of it.
package limit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Size is a number of bytes.
type Size int64

// The limits. Real files are far smaller, and files up to the limits fit into memory.
const (
	// Settings bounds settings files. Reading YAML takes a time that grows with the square of the number of keys.
	Settings Size = 64 << 10
	// Device bounds device files, for the same reason. A real one has 10 kB.
	Device Size = 64 << 10
	// Text bounds other files that people write: lock files, overrides, descriptions of data sets.
	Text Size = 1 << 20
	// Describe bounds what a plugin prints about itself. It is JSON, which takes 60 times as much memory.
	Describe Size = 1 << 20
	// Table bounds CSV files: problems, recorded times.
	Table Size = 64 << 20
	// Log bounds logs and traces of other programs, which are read as a stream.
	Log Size = 4 << 30
	// Kernels bounds a file about the kernels of a family. Two of them go in one message to a plugin.
	Kernels Size = 16 << 20
	// Logic bounds a library logic. AMD's have up to 10 MB. It is YAML, whose values are bounded besides.
	Logic Size = 16 << 20
	// Row bounds a row of a CSV file.
	Row Size = 64 << 10
	// Records bounds a file of measurements, one per line: as many as a data set may have. The lines are bounded too.
	Records Size = 16 << 30
	// Program bounds the binary of a plugin, which is hashed.
	Program Size = 2 << 30
)

// The limits of tables.
const (
	// Cells bounds the cells of a row.
	Cells = 1 << 10
	// Rows bounds the rows of a file whose rows are held in memory.
	Rows = 1 << 18
	// Measurements bounds the measurements of a data set, whatever files they are in. One takes 0.8 KB of memory. So many
	// are as many as a farm makes in a year (docs/decisions/measuring.md).
	Measurements = 1 << 24
)

// String formats in the largest binary unit that leaves a whole number.
func (s Size) String() string {
	for _, u := range []struct {
		size Size
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if s >= u.size && s%u.size == 0 {
			return fmt.Sprintf("%d %s", s/u.size, u.name)
		}
	}
	return fmt.Sprintf("%d B", int64(s))
}

// Reader returns r, ending with an *ExceededError when r holds more than most bytes. name is the file's name in the
// error, fix is its advice. A caller that wraps read errors should return the error of Exceeded as it is instead: it
// already names the file and says what to do.
func Reader(r io.Reader, name string, most Size, fix string) io.Reader {
	return &reader{r: r, name: name, most: most, left: int64(most), fix: fix}
}

type reader struct {
	r         io.Reader
	name, fix string
	most      Size
	left      int64 // negative: exceeded
}

func (l *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if l.left < 0 {
		return 0, l.exceeded()
	}
	// One byte more than is left tells an end from an excess.
	n, err := l.r.Read(p[:min(int64(len(p)), l.left+1)])
	l.left -= int64(n)
	if l.left < 0 {
		return n - 1, l.exceeded()
	}
	return n, err
}

func (l *reader) exceeded() error {
	return &ExceededError{Name: l.name, Fix: l.fix,
		What: fmt.Sprintf("it is larger than %v, the most that is read of such a file", l.most)}
}

// ReadAll reads r whole. A file's text is in memory once: its size is known beforehand.
func ReadAll(r io.Reader, name string, most Size, fix string) ([]byte, error) {
	limited := Reader(r, name, most, fix)
	f, ok := r.(fs.File)
	if !ok {
		return io.ReadAll(limited)
	}
	info, err := f.Stat()
	if err != nil || info.Size() == 0 { // a pipe's is 0
		return io.ReadAll(limited)
	}
	text := bytes.NewBuffer(make([]byte, 0, min(info.Size(), int64(most))+bytes.MinRead))
	_, err = text.ReadFrom(limited)
	return text.Bytes(), err
}

// Exceeded returns the *ExceededError in err's chain, nil if there is none.
func Exceeded(err error) error {
	var e *ExceededError
	if errors.As(err, &e) {
		return e
	}
	return nil
}
