package dataset

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/origami-gemm/origami/core/limit"
)

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
		if err := v.lines(&r, file, d); err != nil {
			return v, err
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

func (v *Verified) lines(r *reader, file string, d *Dataset) error {
	in, closer, err := r.open(file, limit.Records)
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
	all := limit.NewLines(in)
	for n := 1; ; n++ {
		text, end := all.Next()
		if len(text) > 0 {
			v.Lines++
			l, err := parseLine(text)
			switch {
			case err == nil && text[len(text)-1] != '\n':
				err = errors.New("the last line is cut off")
			case err == nil && l.Sum == "":
				v.Unsummed++
			}
			if what := l.Difference(d.Conditions); err == nil && what != "" {
				err = fmt.Errorf("%s in %s", what, DescriptionFile)
			}
			if err != nil {
				v.Damaged = append(v.Damaged, fmt.Sprintf("%s:%d: %v", path.Join(r.name, file), n, err))
			}
		}
		switch {
		case errors.Is(end, io.EOF):
			return nil
		case end != nil:
			v.Damaged = append(v.Damaged, fmt.Sprintf("%s:%d: %v", path.Join(r.name, file), n, end))
			return nil
		}
	}
}
