package host

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// mostFiles is how many files a plugin may have open. Go raises what is usual, 1,024, to what the system allows.
const mostFiles = 4096

// startTied starts cmd so that the kernel kills it when this process dies, even by SIGKILL. The kernel watches the
// thread that started the child, so a goroutine keeps that thread until the child has exited.
func startTied(cmd *exec.Cmd, exited <-chan struct{}) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil { // it fails where the user allows less already
			files := &unix.Rlimit{Cur: mostFiles, Max: mostFiles}
			_ = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, files, nil)
		}
		started <- err
		if err == nil {
			<-exited
		}
	}()
	return <-started
}

// reap waits until a process has ended, takes the lock, and kills the rest of its group. No other process can get its
// id, or the id of its group, before cmd.Wait.
func reap(cmd *exec.Cmd, lock sync.Locker) error {
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	lock.Lock()
	killGroup(cmd)
	return cmd.Wait()
}

// killGroup kills a process that has not been waited for, with the group that startTied gave it.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
