//go:build !race

// Arithmetic in one goroutine, which the race detector would only slow down tenfold.

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The page shows what the families choose today.
func TestUpToDate(t *testing.T) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filled, err := fill(string(text)); err != nil || filled != string(text) {
		t.Errorf("%s is not what the code says; run `make generate` (%v)", path, err)
	}
}

// A family that gains or loses an axis does not agree with the rows any more.
func TestAxesComeAndGo(t *testing.T) {
	all, err := families()
	if err != nil {
		t.Fatal(err)
	}
	if err := consistent(parameters, all); err != nil {
		t.Fatal(err)
	}
	change := func(at int, of func(axes []axis) []axis) []family {
		changed := slices.Clone(all)
		changed[at].axes = of(slices.Clone(changed[at].axes))
		return changed
	}
	for what, changed := range map[string][]family{
		`LocalSplitU is "on request" for mma, but its candidates differ in it: false, or if asked to: false`: change(0,
			func(axes []axis) []axis {
				return slices.DeleteFunc(axes, func(a axis) bool { return a.name == "warp_count_k" })
			}),
		"mma has the axis swizzle, which is in no row": change(0, func(axes []axis) []axis {
			return append(axes, axis{name: "swizzle", values: []string{"0", "1"}, chosen: true})
		}),
		`StreamK is "–" for triton, but its candidates differ in it: true`: change(2, func(axes []axis) []axis {
			return append(axes, axis{name: "stream_k", values: []string{"0", "1"}, chosen: true})
		}),
		`GlobalSplitU is "chosen" for triton, but its candidates differ in it: false`: change(2, func(axes []axis) []axis {
			return slices.DeleteFunc(axes, func(a axis) bool { return a.name == "split_k" })
		}),
	} {
		if err := consistent(parameters, changed); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want %s: %v", what, err)
		}
	}
}
