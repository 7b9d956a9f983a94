package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/origami-gemm/origami/sdk/openfile"
)

func isForOthers(err error) bool {
	var e *openfile.OthersError
	return errors.As(err, &e)
}

// guard refuses a path with a link of another user, and warns of a folder in which another user may put a different
// file at the path.
func (h *Host) guard(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	way, err := walk(path)
	if err != nil {
		return &openfile.OthersError{What: fmt.Sprintf("who may replace it cannot be found out: %v", err)}
	}
	for _, link := range way.links {
		if owner, foreign := openfile.Foreign(link.info); foreign {
			return &openfile.OthersError{
				What: fmt.Sprintf("the link %s belongs to user %d; make a link of your own", link.path, owner)}
		}
	}
	for _, folder := range slices.Backward(way.folders) {
		// In a folder with the sticky bit, such as /tmp, only the owner of a file may replace it.
		if folder.info.Mode().Perm()&openfile.OthersWrite != 0 && folder.info.Mode()&fs.ModeSticky == 0 {
			h.warn(fmt.Sprintf("every user may replace %s; prevent it with `chmod o-w %s`", path, folder.path))
			break
		}
		if owner, foreign := openfile.Foreign(folder.info); foreign {
			h.warn(fmt.Sprintf("user %d may replace %s, because the folder %s is theirs; move it to a folder of yours",
				owner, path, folder.path))
			break
		}
	}
	return nil
}

// way is what the system passes on the way to a file: folders, from the root on, and symbolic links.
type way struct{ folders, links []place }

type place struct {
	path string
	info fs.FileInfo
}

// mostLinks is how many links a path may lead through, as on Linux.
const mostLinks = 40

// walk follows a path component by component. filepath.EvalSymlinks would hide the folders that the links are in.
func walk(path string) (w way, err error) {
	path = filepath.Clean(absolute(path))
	rest := strings.Split(path, string(filepath.Separator))
	at := string(filepath.Separator)
	enter := func() error {
		info, err := os.Lstat(at)
		if err == nil {
			w.folders = append(w.folders, place{at, info})
		}
		return err
	}
	if err := enter(); err != nil {
		return w, err
	}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		if name == ".." { // of a link's target; at is a folder and not a link
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			return w, err
		case info.Mode()&fs.ModeSymlink != 0:
			if w.links = append(w.links, place{next, info}); len(w.links) > mostLinks {
				return w, fmt.Errorf("%s: more than %d links", path, mostLinks)
			}
			target, err := os.Readlink(next)
			if err != nil {
				return w, err
			}
			if filepath.IsAbs(target) {
				at = string(filepath.Separator)
			}
			rest = append(strings.Split(target, string(filepath.Separator)), rest...)
		case info.IsDir():
			at = next
			if err := enter(); err != nil {
				return w, err
			}
		}
	}
	return w, nil
}
