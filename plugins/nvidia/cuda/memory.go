//go:build cuda

package cuda

import (
	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/unit"
)

// region is device memory.
type region struct {
	at    cu.DevicePtr
	bytes unit.Bytes
}

// allocate returns device memory with undefined contents.
func allocate(bytes unit.Bytes) (region, error) {
	if bytes == 0 {
		return region{}, nil
	}
	at, err := cu.MemAlloc(int64(bytes))
	return region{at, bytes}, err
}

func (r *region) free() {
	if r.bytes > 0 {
		_ = cu.MemFree(r.at) // fails only if the context is lost, and the memory with it
		*r = region{}
	}
}

// address returns the address at an offset.
func (r *region) address(offset unit.Bytes) uint64 { return uint64(r.at) + uint64(offset) }

// roundUp rounds up to 256 bytes, the alignment of memory from the driver.
func roundUp(b unit.Bytes) unit.Bytes { return unit.Bytes((int64(b) + 255) / 256 * 256) }
