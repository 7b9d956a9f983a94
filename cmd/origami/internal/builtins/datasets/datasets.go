// Package datasets has the recorded measurements that are part of this binary.
package datasets

import (
	"io/fs"
	"slices"
	"strings"
)

// Dataset is a folder of recorded measurements that is part of this binary.
type Dataset struct {
	Name  string
	Files fs.FS
}

// All lists them all, by name.
func All() ([]Dataset, error) {
	var sets []Dataset
	for _, f := range shipped {
		entries, err := fs.ReadDir(f, ".")
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			files, err := fs.Sub(f, e.Name())
			if err != nil {
				return nil, err
			}
			sets = append(sets, Dataset{e.Name(), files})
		}
	}
	slices.SortFunc(sets, func(a, b Dataset) int { return strings.Compare(a.Name, b.Name) })
	return sets, nil
}
