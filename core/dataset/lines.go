package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
)

// lines reads a file with a measurement per line.
func (r *reader) lines(file string, d *Dataset) error {
	var truncated *Truncated // the line before, which must be the last
	cut := func(fix string) error {
		return diag.Inputf("%s", truncated.Why).At("%s", truncated.Where).Do("%s", fix)
	}
	err := r.each(file, func(where string, offset int64, l *parsedLine) error {
		if truncated != nil {
			return cut("restore the file, or remove the line")
		}
		why, err := r.line(l, where, d)
		if why != "" {
			truncated = &Truncated{Where: where, Why: why, Keep: offset}
		}
		return err
	})
	switch {
	case err != nil || truncated == nil:
		return err
	case r.recovers && file == Log:
		r.truncated = truncated
		return nil
	}
	return cut("the command that measured goes on from here and drops it; or remove the line")
}

// each calls use for each line of a file, with where it is and how many bytes are before it. Lines are parsed beside
// each other, since that takes nearly all of the time, and used in their order.
func (r *reader) each(file string, use func(where string, offset int64, l *parsedLine) error) error {
	f, closer, err := r.open(file, limit.Records)
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
	in, place, offset, n := limit.NewLines(f), path.Join(r.name, file), int64(0), 0
	for {
		lines, end := next(in)
		var workers sync.WaitGroup
		cores := runtime.GOMAXPROCS(0)
		for part := range slices.Chunk(lines, len(lines)/cores+1) {
			workers.Go(func() {
				for i := range part {
					l := &part[i]
					l.line, l.err = parseLine(bytes.TrimSuffix(l.text, []byte("\n")))
				}
			})
		}
		workers.Wait()
		for i := range lines {
			n++
			if err := use(fmt.Sprintf("%s:%d", place, n), offset, &lines[i]); err != nil {
				return err
			}
			offset += int64(len(lines[i].text))
		}
		switch {
		case errors.Is(end, io.EOF):
			return nil
		case errors.Is(end, limit.ErrLongLine):
			return diag.Inputf("the line is longer than %d bytes", limit.Line).At("%s:%d", place, n+1).Do("restore the file")
		case end != nil:
			return r.unreadable(file, end)
		}
	}
}

// parsedLine is a line, and what it says.
type parsedLine struct {
	text []byte
	line
	err error
}

// whole reports whether a line has a line feed.
func (l *parsedLine) whole() bool { return bytes.HasSuffix(l.text, []byte("\n")) }

// mostBytes and mostLines are about how many bytes and lines are parsed at once. Lines may be short.
const mostBytes, mostLines = 1 << 20, 1024

// next reads some lines. end is why none follows, nil if one may.
func next(in *limit.Lines) (lines []parsedLine, end error) {
	for size := 0; size < mostBytes && len(lines) < mostLines && end == nil; {
		var text []byte
		if text, end = in.Next(); len(text) > 0 && (end == nil || errors.Is(end, io.EOF)) {
			lines = append(lines, parsedLine{text: bytes.Clone(text)})
		}
		size += len(text)
	}
	return lines, end
}

// line enters a line into a data set. truncated says why the line looks cut off, "" if it does not.
func (r *reader) line(l *parsedLine, where string, d *Dataset) (truncated string, err error) {
	switch {
	case !l.whole():
		return "the last line is cut off", nil
	case errors.Is(l.err, errSyntax):
		return "the line is " + l.err.Error(), nil
	case l.err != nil:
		return "", diag.Inputf("%v", l.err).At("%s", where).Do("%s", seeFormat)
	}
	stated := DescriptionFile
	if !r.described {
		stated = "the first line"
		if d.Len() == 0 {
			d.Conditions = l.Conditions
		}
	}
	if what := l.Difference(d.Conditions); what != "" {
		return "", diag.Inputf("%s in %s", what, stated).At("%s", where).
			Do("keep measurements under other conditions in another folder")
	}
	r.share(&l.Measurement)
	if err := d.Add(l.Measurement); err != nil {
		return "", diag.Within(where, err)
	}
	return "", nil
}

// share keeps a text once that many measurements have, such as a driver's version.
func (r *reader) share(m *Measurement) {
	if r.texts == nil {
		r.texts = map[string]string{}
	}
	for _, t := range m.texts() {
		if shared, there := r.texts[*t.text]; there {
			*t.text = shared
		} else if *t.text != "" {
			r.texts[*t.text] = *t.text
		}
	}
}

// Verified is what a look at every line of a data set found.
type Verified struct {
	Files    int      `json:"files"`            // of measurements
	Lines    int      `json:"lines"`            // of these files
	Unsummed int      `json:"without_checksum"` // lines of them without a checksum, which another program wrote
	Damaged  []string `json:"damaged"`          // the lines that are not as they were written, and why
}

// Verify looks at every line of a data set, also behind one that is damaged. name is what the folder is called.
func Verify(name string, files fs.FS) (Verified, error) {
	v, r := Verified{Damaged: []string{}}, reader{name: name, files: files}
	d, err := r.describe()
	if err != nil {
		return v, err
	}
	found, err := Measurements(name, files)
	if err != nil {
		return v, err
	}
	for _, file := range found {
		if v.Files++; strings.HasPrefix(file, tables) {
			continue // its rows have no checksum
		}
		err := r.each(file, func(where string, _ int64, l *parsedLine) error {
			v.Lines++
			why := l.err
			if what := l.Difference(d.Conditions); why == nil && what != "" {
				why = fmt.Errorf("%s in %s", what, DescriptionFile)
			}
			switch {
			case why == nil && !l.whole():
				why = errors.New("the last line is cut off")
			case why == nil && l.Sum == "":
				v.Unsummed++
			}
			if why != nil {
				v.Damaged = append(v.Damaged, fmt.Sprintf("%s: %v", where, why))
			}
			return nil
		})
		if err != nil {
			v.Damaged = append(v.Damaged, err.Error())
		}
	}
	if len(v.Damaged) > 0 {
		return v, nil
	}
	if d, err = Read(name, files); err != nil { // what several lines say together, and tables
		v.Damaged = append(v.Damaged, err.Error())
	} else if v.Lines == 0 {
		v.Lines, v.Unsummed = d.Len(), d.Len()
	}
	return v, nil
}
