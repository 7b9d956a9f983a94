package datastore

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/builtins/datasets"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// Folder reads the data set in a folder and checks that it is about the given architecture and kernel family. An empty
// kernel means the data set's family, an empty folder the data set that is part of this binary. flag is the flag that
// names the folder.
func Folder(ctx context.Context, d *arch.Description, kernel, flag, folder string) (*dataset.Dataset, error) {
	if folder == "" {
		return shipped(d, kernel, flag)
	}
	data, err := dataset.Read(filepath.Clean(folder), Files(ctx, folder))
	if err != nil {
		return nil, err
	}
	return data, check(d, kernel, flag+" "+folder, data)
}

// Folders reads the data sets of one kernel family in several folders, or the shipped one.
func Folders(ctx context.Context, d *arch.Description, kernel, flag string, folders []string) (
	sets []*dataset.Dataset, err error,
) {
	if len(folders) == 0 {
		one, err := shipped(d, kernel, flag)
		return []*dataset.Dataset{one}, err
	}
	for i, folder := range folders {
		place := flag + " " + folder
		same := func(other string) bool { return filepath.Clean(other) == filepath.Clean(folder) }
		if slices.ContainsFunc(folders[:i], same) {
			return nil, diag.Inputf("the folder is given twice").At("%s", place).Do("leave one")
		}
		one, err := Folder(ctx, d, kernel, flag, folder)
		if err != nil {
			return nil, err
		}
		sets = append(sets, one)
		if one.Kernel != sets[0].Kernel {
			return nil, diag.Inputf("the measurements are of %s, in %s they are of %s, and one kernel family is taken at a time",
				one.Kernel, folders[0], sets[0].Kernel).At("%s", place).
				Do("take each family by itself; `fit` takes the second one with the file of the first (--device-file)")
		}
	}
	return sets, nil
}

// File reads a single file of times. base gives the element type and layout of its problems if the file does not.
func File(
	ctx context.Context, d *arch.Description, kernel, flag, file string, base gemm.Problem,
) (*dataset.Dataset, error) {
	family, err := ask.KernelFamily(d, kernel)
	if err != nil {
		return nil, err
	}
	folder, name := filepath.Split(filepath.Clean(file))
	folder = filepath.Clean(folder)
	stated := dataset.Conditions{Arch: d.Arch, Device: d.Device, Kernel: family, Input: "unknown"}
	data, err := dataset.ReadTimes(folder, Files(ctx, folder), name, stated, base)
	if err != nil {
		return nil, err
	}
	return data, check(d, kernel, flag+" "+file, data)
}

// check refuses measurements of something that the model does not predict.
func check(d *arch.Description, kernel, place string, data *dataset.Dataset) error {
	if kernel == "" {
		kernel = data.Kernel
	}
	kernel, err := ask.KernelFamily(d, kernel)
	if err != nil {
		return err
	}
	refused := diag.Inputf("the measurements are of %s on %s@%s, and the model predicts %s on %s",
		data.Kernel, data.Arch, data.Device, kernel, d.ID()).At("%s", place)
	switch {
	case !of(data, d):
		return refused.Do("use --arch %s@%s", data.Arch, data.Device)
	case data.Kernel != kernel:
		return refused.Do("use --kernel %s", data.Kernel)
	}
	return nil
}

// of reports whether measurements are of a device: by its name, or by another that its device file gives it.
func of(data *dataset.Dataset, d *arch.Description) bool {
	return data.Arch == d.Arch && (data.Device == d.Device || slices.Contains(d.Aliases, data.Device))
}

// shipped reads the data set of an architecture on a device that is part of this binary. flag is the flag that can
// name another data set.
func shipped(d *arch.Description, kernel, flag string) (*dataset.Dataset, error) {
	kernel, err := ask.KernelFamily(d, kernel)
	if err != nil {
		return nil, err
	}
	sets := map[string]fs.FS{}
	for _, f := range datasets.Folders {
		entries, err := fs.ReadDir(f, ".")
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			sets[e.Name()], _ = fs.Sub(f, e.Name()) // it is a name
		}
	}
	var have []string
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		data, err := dataset.Describe(name, sets[name])
		if err != nil {
			return nil, err
		}
		if of(data, d) && data.Kernel == kernel {
			return dataset.Read(name, sets[name])
		}
		have = append(have, fmt.Sprintf("%s on %s@%s", data.Kernel, data.Arch, data.Device))
	}
	return nil, diag.Inputf("no measurements of %s on %s are shipped", kernel, d.ID()).
		Do("use what is shipped: %s", strings.Join(have, ", ")).Coded(diag.CodeNoMeasurements, flag)
}

// Files returns the regular files of a folder. Nothing else in it is opened: a named pipe would wait for a writer.
// Reading ends with the context's error once the context is cancelled: there can be gigabytes.
func Files(ctx context.Context, folder string) fs.FS { return files{ctx, folder} }

type files struct {
	ctx    context.Context
	folder string
}

// Open implements fs.FS.
func (f files) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	opened, _, err := openfile.Regular(filepath.Join(f.folder, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	return file{opened, f.ctx}, nil
}

// ReadDir implements fs.ReadDirFS.
func (f files) ReadDir(name string) ([]fs.DirEntry, error) {
	return os.ReadDir(filepath.Join(f.folder, filepath.FromSlash(name)))
}

type file struct {
	*os.File
	ctx context.Context
}

// Read implements fs.File.
func (f file) Read(p []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}
