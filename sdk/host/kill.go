package host

import (
	"os"
	"sync"
)

// living has a *process for each plugin, and the path of each folder of sockets, of all hosts of this program.
var living sync.Map

// KillAll kills the plugins of all hosts of this program, with their descendants, and removes their sockets. It does
// not wait. Calls in progress fail. It is for a program that must end at once; others call Close.
func KillAll() {
	living.Range(func(what, _ any) bool {
		switch what := what.(type) {
		case *process:
			what.kill()
		case string:
			_ = os.RemoveAll(what)
		}
		return true
	})
}
