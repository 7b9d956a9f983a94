package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"
)

// sockets is the folder for the sockets of plugins that the host is starting. Each plugin has a subfolder. The folder
// exists only while a plugin starts: an existing connection needs no socket. Only this user may enter it. The host
// holds a lock on it, which is released however the process ends. The next host that starts a plugin then removes the
// folder.
type sockets struct {
	mu    sync.Mutex
	users int
	path  string
	lock  *flock.Flock
}

// The name of the folder is socketPrefix and digits. Its subfolders are named pluginFolderPrefix and digits.
const (
	socketPrefix       = "origami-run"
	pluginFolderPrefix = "plugin-dir"
)

// socketParent returns the directory for these folders. On all systems the path of a socket may have 103 bytes. The
// part /origami-runN/plugin-dirN/pluginN, with N of up to 10 digits, takes 60 of them.
func socketParent() string {
	if dir := os.TempDir(); len(dir) <= 103-60 {
		return dir
	}
	return "/tmp"
}

// enter returns the folder for a plugin that is about to start. Each enter needs a leave.
func (s *sockets) enter() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		if err := s.make(); err != nil {
			return "", err
		}
	}
	s.users++
	return s.path, nil
}

func (s *sockets) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		_ = os.RemoveAll(s.path)
		_ = s.lock.Close()
		living.Delete(s.path)
	}
}

func (s *sockets) make() error {
	parent := socketParent()
	sweepSockets(parent)
	for range 10 {
		dir, err := os.MkdirTemp(parent, socketPrefix)
		if err != nil {
			return err
		}
		// Where directories cannot be locked, no host sweeps. Where they can, another host may have removed this one
		// before it was locked.
		lock := lockOf(dir)
		if held, err := lock.TryLock(); held || err != nil {
			if _, err := os.Lstat(dir); err == nil {
				s.path, s.lock = dir, lock
				living.Store(dir, nil)
				return nil
			}
		}
		_ = lock.Close()
	}
	return fmt.Errorf("the folders for sockets in %s are removed as soon as they are made", parent)
}

// sweepSockets removes the folders of hosts that have ended: those that it can lock. It cannot open the folders of
// other users. A folder that only has such a name stays too, because sweepFolder removes only what a host leaves.
func sweepSockets(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		digits, ours := strings.CutPrefix(e.Name(), socketPrefix)
		if !e.IsDir() || !ours || digits == "" || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		lock := lockOf(dir)
		if held, err := lock.TryLock(); held && err == nil {
			sweepFolder(dir)
		}
		_ = lock.Close()
	}
}

// sweepFolder removes a folder that contains nothing but folders of sockets and of empty files that should have
// become sockets.
func sweepFolder(dir string) {
	folders, _ := os.ReadDir(dir)
	for _, f := range folders {
		if !f.IsDir() || !strings.HasPrefix(f.Name(), pluginFolderPrefix) {
			return
		}
		path := filepath.Join(dir, f.Name())
		files, _ := os.ReadDir(path)
		for _, file := range files {
			if stat, err := file.Info(); err != nil || stat.Mode().Type() != os.ModeSocket && stat.Size() > 0 {
				return
			}
			_ = os.Remove(filepath.Join(path, file.Name()))
		}
		_ = os.Remove(path)
	}
	_ = os.Remove(dir)
}

// lockOf returns the lock of a directory. Opening it never blocks, not even if a named pipe is in its place.
func lockOf(dir string) *flock.Flock {
	return flock.New(dir, flock.SetFlag(os.O_RDONLY|syscall.O_NONBLOCK))
}
