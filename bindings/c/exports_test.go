//go:build cgo

package main

import (
	"testing"

	"github.com/origami-gemm/origami/core/arch"
)

// A panic does not cross into C.
func TestPanicsBecomeErrors(t *testing.T) {
	if status := guard(nil, 0, func() error { panic("out of range") }); status != 1 {
		t.Errorf("status %d", status)
	}
	if status := guard(nil, 0, func() error { return nil }); status != 0 {
		t.Errorf("status %d", status)
	}
}

// C and package arch number the bounds alike.
func TestBounds(t *testing.T) {
	for i, name := range bounds {
		if got := arch.Bound(i).String(); got != name {
			t.Errorf("bound %d is %s, and %s in C", i, got, name)
		}
	}
	if next := arch.Bound(len(bounds)).String(); next != bounds[0] {
		t.Errorf("C lacks the bound %s", next)
	}
}
