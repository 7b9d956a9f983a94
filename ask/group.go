package ask

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Group runs functions beside each other. A panic in one of them goes on in Wait, where whoever asked can answer for
// it: in a goroutine of its own it would end the process, with every other question that a server or a program holds.
type Group struct {
	// Most is how many run at once; 0 means all.
	Most int

	slots chan struct{}
	wg    sync.WaitGroup
	once  sync.Once
	fault any
}

// Go begins f.
func (g *Group) Go(f func()) {
	if g.Most > 0 && g.slots == nil {
		g.slots = make(chan struct{}, g.Most)
	}
	g.wg.Go(func() {
		if g.slots != nil {
			g.slots <- struct{}{}
			defer func() { <-g.slots }()
		}
		defer func() {
			if fault := recover(); fault != nil {
				g.once.Do(func() { g.fault = fmt.Errorf("%v\n%s", fault, debug.Stack()) })
			}
		}()
		f()
	})
}

// Wait waits for all functions. It panics with the first panic of one of them.
func (g *Group) Wait() {
	g.wg.Wait()
	if g.fault != nil {
		panic(g.fault)
	}
}
