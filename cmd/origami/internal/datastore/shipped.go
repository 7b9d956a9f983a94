//go:build !js

package datastore

import (
	"io/fs"

	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

var shippedSets = []fs.FS{data.FS, data.Large}
