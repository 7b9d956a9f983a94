package host

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startTied starts cmd so that the kernel kills it when this process dies, even by SIGKILL. The kernel watches the
// thread that started the child, so a goroutine keeps that thread until the child has exited.
func startTied(cmd *exec.Cmd, exited <-chan struct{}) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			<-exited
		}
	}()
	return <-started
}

// killGroup kills a process that has not been waited for, with the group that startTied gave it.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
