//go:build cgo

package main

import "testing"

// A panic does not cross into C.
func TestPanicsBecomeErrors(t *testing.T) {
	if status := guard(nil, 0, func() error { panic("out of range") }); status != 1 {
		t.Errorf("status %d", status)
	}
	if status := guard(nil, 0, func() error { return nil }); status != 0 {
		t.Errorf("status %d", status)
	}
}
