//go:build !linux

package host

import (
	"os/exec"
	"sync"
)

// startTied starts cmd. Here only the plugin itself watches whether this process lives (package serve).
func startTied(cmd *exec.Cmd, _ <-chan struct{}) error { return cmd.Start() }

// reap waits until a process has ended and takes the lock. Here a process does not get a new group.
func reap(cmd *exec.Cmd, lock sync.Locker) error {
	err := cmd.Wait()
	lock.Lock()
	return err
}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
