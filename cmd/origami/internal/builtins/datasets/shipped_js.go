package datasets

import (
	"io/fs"

	"github.com/origami-gemm/origami/plugins/nvidia/data"
)

// A browser loads the program before the first answer, so it has the small ones only.
var shipped = []fs.FS{data.FS}
