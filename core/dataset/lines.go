package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"

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
	ctx, stop := context.WithCancel(context.Background())
	batches := make(chan *batch, runtime.GOMAXPROCS(0))
	defer func() { // nothing reads the file when it is closed
		stop()
		for range batches {
		}
	}()
	go parseAhead(ctx, limit.NewLines(f), batches)
	place, offset, n := path.Join(r.name, file), int64(0), 0
	for b := range batches {
		<-b.parsed
		for i := range b.lines {
			n++
			l := &b.lines[i]
			if err := use(fmt.Sprintf("%s:%d", place, n), offset, l); err != nil {
				return err
			}
			offset += int64(l.size)
		}
		switch {
		case errors.Is(b.end, limit.ErrLongLine):
			return diag.Inputf("the line is longer than %d bytes", limit.Line).At("%s:%d", place, n+1).Do("restore the file")
		case b.end != nil && !errors.Is(b.end, io.EOF):
			return r.unreadable(file, b.end)
		}
	}
	return nil
}

// batch is some lines of a file.
type batch struct {
	text  []byte
	lines []parsedLine
	// end is why no line follows, nil if one may.
	end error
	// parsed is closed when the lines are.
	parsed chan struct{}
}

// parsedLine is a line of so many bytes, and what it says.
type parsedLine struct {
	size  int
	whole bool // it has a line feed
	line
	err error
}

// batchSize and batchLines are about how many bytes and lines are parsed at once. Lines may be short.
const batchSize, batchLines = 256 << 10, 256

// parseAhead sends the lines of a file, and parses them meanwhile, until the file or the context ends.
func parseAhead(ctx context.Context, in *limit.Lines, batches chan<- *batch) {
	defer close(batches)
	for {
		b := &batch{parsed: make(chan struct{})}
		for len(b.text) < batchSize && len(b.lines) < batchLines && b.end == nil {
			var text []byte
			if text, b.end = in.Next(); len(text) == 0 && b.end == nil {
				b.end = io.EOF
			}
			if b.end == nil || errors.Is(b.end, io.EOF) {
				if len(text) > 0 {
					b.text, b.lines = append(b.text, text...), append(b.lines, parsedLine{size: len(text)})
				}
			}
		}
		go b.parse()
		select {
		case batches <- b:
		case <-ctx.Done():
			<-b.parsed
			return
		}
		if b.end != nil {
			return
		}
	}
}

func (b *batch) parse() {
	defer close(b.parsed)
	text := b.text
	for i := range b.lines {
		l := &b.lines[i]
		var body []byte
		body, l.whole = bytes.CutSuffix(text[:l.size], []byte("\n"))
		l.line, l.err = parseLine(body)
		text = text[l.size:]
	}
	b.text = nil
}

// line enters a line into a data set. truncated says why the line looks cut off, "" if it does not.
func (r *reader) line(l *parsedLine, where string, d *Dataset) (truncated string, err error) {
	switch {
	case !l.whole:
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
