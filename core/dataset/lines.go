package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
)

// lines reads a file with a measurement per line.
func (r *reader) lines(file string, d *Dataset) error {
	f, closer, err := r.open(file, limit.Records)
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
	var (
		in        = limit.NewLines(f)
		place     = path.Join(r.name, file)
		truncated *Truncated // the line before, which must be the last
		offset    int64
	)
	for n := 1; ; n++ {
		where := fmt.Sprintf("%s:%d", place, n)
		text, err := in.Next()
		switch {
		case errors.Is(err, limit.ErrLongLine):
			return diag.Inputf("the line is longer than %d bytes", limit.Line).At("%s", where).Do("restore the file")
		case err != nil && !errors.Is(err, io.EOF):
			return r.unreadable(file, err)
		}
		if len(text) == 0 {
			break
		}
		if truncated != nil {
			return diag.Inputf("%s", truncated.Why).At("%s", truncated.Where).Do("restore the file, or remove the line")
		}
		why, err := r.line(text, where, d)
		if err != nil {
			return err
		}
		if why != "" {
			truncated = &Truncated{Where: where, Why: why, Keep: offset}
		}
		offset += int64(len(text))
	}
	if truncated == nil {
		return nil
	}
	if r.recovers && file == Log {
		r.truncated = truncated
		return nil
	}
	return diag.Inputf("%s", truncated.Why).At("%s", truncated.Where).
		Do("the command that measured goes on from here and drops it; or remove the line")
}

// line reads one line, with its line feed, into a data set. truncated says why the line looks cut off, "" if it
// does not.
func (r *reader) line(text []byte, where string, d *Dataset) (truncated string, err error) {
	body, whole := bytes.CutSuffix(text, []byte("\n"))
	conditions, m, err := ParseLine(body)
	switch {
	case !whole:
		return "the last line is cut off", nil
	case errors.Is(err, errSyntax):
		return "the line is " + err.Error(), nil
	case err != nil:
		return "", diag.Inputf("%v", err).At("%s", where).Do("%s", seeFormat)
	}
	stated := DescriptionFile
	if !r.described {
		stated = "the first line"
		if d.Len() == 0 {
			d.Conditions = conditions
		}
	}
	if what := conditions.Difference(d.Conditions); what != "" {
		return "", diag.Inputf("%s in %s", what, stated).At("%s", where).
			Do("keep measurements under other conditions in another folder")
	}
	if err := d.Add(m); err != nil {
		return "", diag.Within(where, err)
	}
	return "", nil
}
