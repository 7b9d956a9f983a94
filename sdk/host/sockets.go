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

// sockets is the folder in which the plugins that a host is starting make their sockets, each in a folder of its own
// that go-plugin makes there. There is one only while a plugin starts: once connections stand they need no sockets.
// Only this user may enter it, and it is locked: the lock ends with the process, however that ends, and then the next
// host that starts a plugin removes the folder.
type sockets struct {
	mu    sync.Mutex
	users int
	path  string
	lock  *flock.Flock
}

// Such a folder is called socketPrefix and digits, those in it and the sockets in these begin as go-plugin has it.
const (
	socketPrefix       = "origami-run"
	pluginFolderPrefix = "plugin-dir"
)

// socketParent returns the directory for such folders. The path of a socket may have 103 bytes on all systems, and
// /origami-runN/plugin-dirN/pluginN, with N of up to 10 digits, takes 60 of them.
func socketParent() string {
	if dir := os.TempDir(); len(dir) <= 103-60 {
		return dir
	}
	return "/tmp"
}

// enter returns the folder, for a plugin that is about to be started. Who has entered leaves.
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
		// Where directories cannot be locked, no host sweeps. Where they can, another host may have taken this one
		// for a dead one's before it was locked.
		lock := lockOf(dir)
		if held, err := lock.TryLock(); held || err != nil {
			if _, err := os.Lstat(dir); err == nil {
				s.path, s.lock = dir, lock
				return nil
			}
		}
		_ = lock.Close()
	}
	return fmt.Errorf("the folders for sockets in %s are removed as soon as they are made", parent)
}

// sweepSockets removes the folders of hosts that are gone: those that can be locked. What belongs to other users stays,
// as their folders cannot be opened, and so does what only has such a name: nothing is removed but what a host leaves.
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

// sweepFolder removes a folder in which there are at most folders with sockets, and empty files that were to be
// sockets.
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

// lockOf returns the lock of a directory. Nothing that somebody puts in its place, as a named pipe, makes opening it
// wait.
func lockOf(dir string) *flock.Flock {
	return flock.New(dir, flock.SetFlag(os.O_RDONLY|syscall.O_NONBLOCK))
}
