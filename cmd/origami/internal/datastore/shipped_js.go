package datastore

import (
	"io/fs"

	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// A browser loads the program before the first answer, so it has the small ones only.
var shippedSets = []fs.FS{data.FS}
