package datasets

import (
	"io/fs"

	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// Folders have a folder for each data set. A browser loads the program before the first answer, so it has the
// small ones only.
var Folders = []fs.FS{data.FS}
