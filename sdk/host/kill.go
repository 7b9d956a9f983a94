package host

import (
	"maps"
	"os"
	"slices"
	"sync"
)

// living are the processes of plugins and the folders of sockets that all hosts of this program have.
var living registry

type registry struct {
	mu        sync.Mutex
	processes map[*process]bool
	folders   map[string]bool
}

func (r *registry) add(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.processes == nil {
		r.processes = map[*process]bool{}
	}
	r.processes[p] = true
}

func (r *registry) remove(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.processes, p)
}

func (r *registry) addFolder(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folders == nil {
		r.folders = map[string]bool{}
	}
	r.folders[path] = true
}

func (r *registry) removeFolder(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.folders, path)
}

// KillAll kills the plugins of all hosts of this program, with their descendants, and removes their sockets. It does
// not wait. Calls in progress fail. It is for a program that must end at once; others call Close.
func KillAll() {
	living.mu.Lock()
	processes := slices.Collect(maps.Keys(living.processes))
	folders := slices.Collect(maps.Keys(living.folders))
	living.mu.Unlock()
	for _, p := range processes {
		p.kill()
	}
	for _, folder := range folders {
		_ = os.RemoveAll(folder)
	}
}
