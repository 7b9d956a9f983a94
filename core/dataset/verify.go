package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
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
