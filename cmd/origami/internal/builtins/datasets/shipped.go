//go:build !js

// Package datasets has the recorded measurements that are part of this binary.
package datasets

import (
	"io/fs"

	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// Folders have a folder for each data set.
var Folders = []fs.FS{data.FS, data.Large}
