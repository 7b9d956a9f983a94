package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
)

// A process that uses the library for every kind of problem holds what it needs for a few: some 100 MB.
func TestKindsShareTheirRoom(t *testing.T) {
	const mostHeap = 120e6
	answered := 0
	for _, arch := range []string{"gfx942", "h200"} {
		for _, in := range gemm.DTypes() {
			for _, out := range append([]gemm.DType{in}, gemm.OutputTypes()...) {
				for kind := range 4 {
					request := fmt.Sprintf(`{"ask":"select","arch":%q,"m":512,"n":512,"k":512,"dtype":%q,"out_dtype":%q,`+
						`"trans_a":%t,"trans_b":%t}`, arch, in, out, kind&1 > 0, kind&2 > 0)
					if !json.Valid([]byte(request)) {
						t.Fatal(request)
					}
					if _, err := answer(t.Context(), []byte(request)); err == nil {
						answered++
					}
				}
			}
		}
	}
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d kinds were answered, and the heap has %d MB", answered, m.HeapAlloc>>20)
	if answered < 100 || m.HeapAlloc > mostHeap {
		t.Errorf("%d kinds were answered, and the heap has %d MB", answered, m.HeapAlloc>>20)
	}
}
