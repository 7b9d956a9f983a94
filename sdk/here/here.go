// Package here finds what `origami here` measured on the GPUs of this machine: a device file for each kind of GPU, in
// the user's configuration folder.
package here

import (
	"errors"
	"os"
	"path/filepath"
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
		var h hw.Header
		if err == nil {
			h, err = hw.DecodeHeader(file, text)
		}
		switch d := (*diag.Error)(nil); {
		case errors.As(err, &d):
			return "", d.Do("remove the file, or measure the GPU again")
		case t.Describes(&h) && (t.Live != nil || !strings.EqualFold(t.Name(), h.Arch)):
			return string(text), nil
		}
	}
	return "", nil
}

func read(file string) ([]byte, error) {
	f, _, err := openfile.Regular(file)
	if err != nil {
		return nil, diag.Inputf("it cannot be read: %v", diag.WithoutPath(err)).At("%s", file)
	}
	defer func() { _ = f.Close() }()
	return limit.ReadAll(f, file, limit.Device, "give the file of one device")
}
