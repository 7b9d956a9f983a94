//go:build unix

package openfile

import (
	"os"
	"syscall"
)

// Own are the flags for a file that this program alone makes, such as a lock: it does not wait for the other end of a
// pipe, and follows no link.
const Own = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_NOFOLLOW

// open opens a file without waiting for the other end of a pipe or for a device, and without making a terminal that of
// this process. Reading a regular file is the same with these flags.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0) // Go adds O_CLOEXEC
}
