//go:build unix

package openfile

import (
	"io/fs"
	"os"
	"syscall"
)

// Foreign returns the owner of a file if it is neither this user nor root.
func Foreign(info fs.FileInfo) (owner int, foreign bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	owner = int(stat.Uid)
	return owner, owner != 0 && owner != os.Geteuid()
}
