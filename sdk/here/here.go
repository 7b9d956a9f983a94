// Package here finds what `origami here` measured on the GPUs of this machine: a device file for each kind of GPU, in
// the user's configuration folder.
package here

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/openfile"
)

// Folder is the user's configuration folder for origami, empty if there is none. refused are the variables that name a
// relative path: it would make whoever wrote a folder that the user works in decide about settings, and about the
// plugins that run.
func Folder() (folder string, refused []string) {
	for _, place := range []struct{ name, below string }{{"XDG_CONFIG_HOME", ""}, {"HOME", ".config"}} {
		switch path := os.Getenv(place.name); {
		case path == "":
		case filepath.IsAbs(path):
			return filepath.Join(path, place.below, "origami"), refused
		default:
			refused = append(refused, place.name)
		}
	}
	return "", refused
}

// Devices is the folder of the device files, empty if there is none.
func Devices() string {
	folder, _ := Folder()
	if folder == "" {
		return ""
	}
	return filepath.Join(folder, "devices")
}

// FileOf returns the text of the device file of a target, empty if there is none: of the GPU of this machine, or of a
// device by its name. An architecture alone means its first device, which may be another.
func FileOf(t *models.Target) (string, error) {
	folder := Devices()
	if folder == "" || t.Live == nil && t.Name() == "" {
		return "", nil
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml")) // in order
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := read(file)
		if err != nil {
			return "", err
		}
		h, err := hw.DecodeHeader(file, text)
		if err == nil && (!t.Describes(&h) || t.Live == nil && strings.EqualFold(t.Name(), h.Arch)) {
			continue
		}
		if err == nil {
			_, err = hw.DecodeSheet(file, text)
		}
		if d := (*diag.Error)(nil); errors.As(err, &d) {
			return "", d.Do("remove the file, or run `origami here` again")
		}
		return string(text), err
	}
	return "", nil
}

func read(file string) ([]byte, error) {
	f, _, err := openfile.Regular(file)
	if err == nil {
		defer func() { _ = f.Close() }()
		var text []byte
		if text, err = limit.ReadAll(f, file, limit.Device, "remove it"); err == nil {
			return slices.Clip(text), nil
		}
	}
	return nil, diag.Inputf("it cannot be read: %v", diag.WithoutPath(err)).At("%s", file).Do("remove it")
}
