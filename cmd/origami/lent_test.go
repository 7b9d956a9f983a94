package main

import (
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
)

// withLent is `with-lent N COMMAND`: it runs the command with --lent, and lends it GPUs of this machine: N at once, and
// one more.
func withLent() int {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	socket := filepath.Join(os.TempDir(), fmt.Sprintf("lent-%d", os.Getpid()))
	listener, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for i := range n + 1 {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprintf(conn, "{\"more\":%d}\n", max(0, n-1-i))
			file, err := conn.(*net.UnixConn).File()
			if err != nil {
				panic(err)
			}
			lend := osexec.Command("origami", "lend", "node/"+strconv.Itoa(i))
			lend.Stdin, lend.Stdout, lend.Stderr = file, file, os.Stderr
			if err := lend.Start(); err != nil {
				panic(err)
			}
			_, _ = file.Close(), conn.Close()
			go func() { _ = lend.Wait() }()
		}
		_ = listener.Close() // nobody lends any more
	}()
	cmd := osexec.Command(os.Args[2], append(os.Args[3:], "--lent", socket)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		panic(err)
	}
	return cmd.ProcessState.ExitCode()
}
