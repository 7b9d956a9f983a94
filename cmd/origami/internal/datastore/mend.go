package datastore

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/sdk/durable"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// executorFault matches what older versions recorded as the failure of a configuration although no kernel can have
// caused it: the executor could not be started, or its answer could not be right. Only these old texts are matched.
// Today's measurements have no such failures, and what is judged while measuring is the type of an error.
var executorFault = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^plugin [^ :]+: (` + strings.Join([]string{
		`.* has changed since it was found and checked`, `it cannot be read: `, `it cannot be started: `,
		`its socket cannot be created: `, `it was not ready after `, `it ended before it was ready`,
		`it does not start as a plugin: `, `it cannot work: `, `it speaks API `, `[A-Z][a-z]+ answered nonsense: `,
		`(Compile|Check|Measure|Environment) failed: `,
	}, "|") + `)`)
})

// WronglyFailed reports whether a configuration was failed for a fault of the executor. Today's failures say whose
// fault they are.
func WronglyFailed(m *dataset.Measurement) bool {
	return m.Status.Retriable() && m.Fault == "" && executorFault().MatchString(m.Detail)
}

// Removed is a measurement that was taken out of a file.
type Removed struct {
	// Where is file:line in the file as it was.
	Where string
	dataset.Measurement
}

// Mend takes the wrongly failed measurements out of the files of a folder, so that the next sweep measures them. All
// other lines stay as they are, byte for byte. If it fails or is interrupted, each file is still whole: the old or the
// new.
func Mend(folder string) (removed []Removed, err error) {
	folder = filepath.Clean(folder)
	if _, err := dataset.Describe(folder, os.DirFS(folder)); err != nil {
		return nil, err
	}
	writing, err := lock(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, writing.Unlock()) }()
	// What cannot be read is not touched. And the lines are known to be short.
	if _, _, err := dataset.Recover(folder, os.DirFS(folder)); err != nil {
		return nil, err
	}
	for _, pattern := range []string{"*.jsonl", "*.jsonl.gz"} {
		files, err := filepath.Glob(filepath.Join(escape(folder), pattern))
		if err != nil {
			return removed, err
		}
		slices.Sort(files)
		for _, file := range files {
			taken, err := mendFile(file)
			if err != nil {
				return removed, unwritable(file, err)
			}
			removed = append(removed, taken...)
		}
	}
	return removed, nil
}

// escape quotes a folder's name for filepath.Glob.
func escape(folder string) string {
	return regexp.MustCompile(`[*?\[\\]`).ReplaceAllString(folder, `\$0`)
}

// mendFile rewrites a file if it has wrongly failed lines.
func mendFile(file string) ([]Removed, error) {
	taken, err := filter(file, io.Discard)
	if err != nil || len(taken) == 0 {
		return nil, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	return taken, durable.Replace(file, info.Mode().Perm(), func(w io.Writer) error {
		if !strings.HasSuffix(file, ".gz") {
			_, err := filter(file, w)
			return err
		}
		packed := gzip.NewWriter(w)
		_, err := filter(file, packed)
		return errors.Join(err, packed.Close())
	})
}

// filter copies the lines of a file that are not wrongly failed and returns the others.
func filter(file string, to io.Writer) ([]Removed, error) {
	f, _, err := openfile.Regular(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	from := io.Reader(f)
	if strings.HasSuffix(file, ".gz") {
		if from, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	var taken []Removed
	in, out := bufio.NewReader(from), bufio.NewWriter(to)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if _, m, bad := dataset.ParseLine(bytes.TrimSuffix(line, []byte("\n"))); bad == nil && WronglyFailed(&m) {
			taken = append(taken, Removed{fmt.Sprintf("%s:%d", file, n), m})
		} else if _, err := out.Write(line); err != nil {
			return nil, err
		}
		if errors.Is(err, io.EOF) {
			return taken, out.Flush()
		}
		if err != nil {
			return nil, err
		}
	}
}
