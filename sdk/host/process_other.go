//go:build !linux

package host

import "os/exec"

// startTied starts cmd. Here only the plugin itself watches whether this process lives (package serve).
func startTied(cmd *exec.Cmd, _ <-chan struct{}) error { return cmd.Start() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
