//go:build cuda

package cuda

import (
	"unsafe"

	"gorgonia.org/cu"

	"github.com/origami-gemm/origami/core/diag"
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

// reserve makes the region at least so large. If it grows, its contents are undefined.
func (r *region) reserve(bytes unit.Bytes) error {
	if r.bytes >= bytes {
		return nil
	}
	r.free()
	larger, err := allocate(bytes)
	if err == nil {
		*r = larger
	}
	return err
}

// upload copies bytes of the host to the device.
func upload(to cu.DevicePtr, host []byte) error {
	return cu.MemcpyHtoD(to, unsafe.Pointer(&host[0]), int64(len(host)))
}

// download copies bytes of the device to the host.
func download(host []byte, from cu.DevicePtr) error {
	return cu.MemcpyDtoH(unsafe.Pointer(&host[0]), from, int64(len(host)))
}

// repeat enqueues copies of what is at the beginning of some bytes behind itself, until all are written.
func repeat(at cu.DevicePtr, done, bytes int64, stream cu.Stream) error {
	for done < bytes {
		n := min(bytes-done, done)
		if err := cu.MemcpyDtoDAsync(at+cu.DevicePtr(done), at, n, stream); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// doesNotFit reports that something does not fit into memory, if that is the error.
func doesNotFit(err error, what string) error {
	if !anyOf(err, []error{cu.OutOfMemory}) {
		return err
	}
	free, total, _ := cu.MemInfo()
	return diag.Inputf("%s does not fit: %.1f GB of %.1f GB of the device's memory are free", what, float64(free)/1e9,
		float64(total)/1e9).At("CUDA").Do("leave it out, or free the device's memory")
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
