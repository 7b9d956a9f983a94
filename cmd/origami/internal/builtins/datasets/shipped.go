//go:build !js

package datasets

import (
	"io/fs"

	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

var shipped = []fs.FS{data.FS, data.Large}
