package builtins

import (
	"io/fs"

	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// Dataset is a folder of recorded measurements that is part of this binary.
type Dataset struct {
	Name  string
	Files fs.FS
}

// Datasets lists them all.
func Datasets() ([]Dataset, error) {
	entries, err := data.FS.ReadDir(".")
	if err != nil {
		return nil, err
	}
	sets := make([]Dataset, len(entries))
	for i, e := range entries {
		sets[i].Name = e.Name()
		if sets[i].Files, err = fs.Sub(data.FS, e.Name()); err != nil {
			return nil, err
		}
	}
	return sets, nil
}
