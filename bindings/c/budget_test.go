package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/must"
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
					must.Need(t, json.Valid([]byte(request)), "%v", request)
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
	must.That(t, answered >= 100 && m.HeapAlloc <= mostHeap,
		"%d kinds were answered, and the heap has %d MB", answered, m.HeapAlloc>>20)
}

// Lists of candidates that a process gives share that room too, with their texts.
func TestListsShareTheirRoom(t *testing.T) {
	const mostHeap = 150e6
	blanks := strings.Repeat(" ", 8<<20)
	for i := range 40 {
		request := fmt.Sprintf(`{"ask":"select","arch":"sm89","m":512,"n":512,"k":512,"candidates":[%s`+
			`{"block_m":64,"block_n":64,"block_k":32,"num_warps":4,"num_stages":3,"group_m":%d}]}`, blanks, i+1)
		must.Get(answer(t.Context(), []byte(request)))(t)
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("the heap has %d MB", m.HeapAlloc>>20)
	must.That(t, m.HeapAlloc <= mostHeap, "the heap has %d MB", m.HeapAlloc>>20)
}
