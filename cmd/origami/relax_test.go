package main

import (
	"github.com/origami-gemm/origami/internal/testing/must"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// A heap that has been collected once is collected as ever.
func TestRelax(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	relax()
	if got := debug.SetGCPercent(800); got != 800 && got != 100 { // 100 after a collection in between
		t.Fatalf("at first %d", got)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		if got := debug.SetGCPercent(800); got == 100 {
			return
		}
		must.Need(t, !time.Now().After(deadline), "a collection changes nothing")
	}
}

// GOGC is the user's word.
func TestRelaxHeedsGOGC(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := debug.SetGCPercent(50)
	defer debug.SetGCPercent(before)
	relax()
	got := debug.SetGCPercent(50)
	must.That(t, got == 50, "%d", got)
}
