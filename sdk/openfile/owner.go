package openfile

import (
	"fmt"
	"io/fs"
	"runtime"
)

// OthersError is a file that other users decide about. It is not used.
type OthersError struct{ What string }

// Error implements error.
func (e *OthersError) Error() string { return e.What }

// OthersWrite is the permission of every user to write.
const OthersWrite = 0o002

// CheckOwner refuses a file that every user may write to, and a file of another user, with an OthersError. info
// describes the open file.
func CheckOwner(path string, info fs.FileInfo) error {
	if runtime.GOOS == "windows" { // permissions are not these bits there
		return nil
	}
	if info.Mode().Perm()&OthersWrite != 0 {
		return &OthersError{fmt.Sprintf("every user may write to it; check its content, then `chmod o-w %s`", path)}
	}
	if owner, foreign := Foreign(info); foreign {
		return &OthersError{fmt.Sprintf("it belongs to user %d; check its content, then make a copy of your own", owner)}
	}
	return nil
}
