//go:build unix

package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// cpu is the CPU time of this process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// step logs what something takes: time, CPU time, and the heap that is left.
func step(t *testing.T, what string, rows int, do func()) {
	t.Helper()
	runtime.GC()
	begun, before := time.Now(), cpu()
	do()
	took, used := time.Since(begun), cpu()-before
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%-12s %9.2f s %9.2f CPU s  %6.1f µs a row  heap %5d MiB, %d B a row, from the system %d MiB", what,
		took.Seconds(), used.Seconds(), used.Seconds()*1e6/float64(rows), m.HeapAlloc>>20,
		m.HeapAlloc/uint64(rows), m.Sys>>20)
}

// TestManyRows shows what a data set of $ORIGAMI_ROWS rows costs. It copies the rows of a sweep on an H200 and changes
// their sizes and times.
func TestManyRows(t *testing.T) {
	rows, err := strconv.Atoi(os.Getenv("ORIGAMI_ROWS"))
	if err != nil {
		t.Skip("ORIGAMI_ROWS=1000000 runs it")
	}
	source := must.Get(Read("h200-mma", os.DirFS("../../plugins/nvidia/data/h200-mma")))(t)
	templates := slices.DeleteFunc(source.All(), func(m Measurement) bool { return m.Phase != Sweep || m.Library != "" })
	folder := t.TempDir()
	t.Logf("%d templates, a Measurement has %d B", len(templates), unsafe.Sizeof(Measurement{}))
	description := must.Get(AppendDescription(nil, source))(t)
	must.Do(t, os.WriteFile(filepath.Join(folder, DescriptionFile), description, 0o600))
	lines := make([][]byte, len(templates)) // without the value of k, at a line feed
	for i := range templates {
		if lines[i], err = AppendLine(nil, source.Conditions, &templates[i]); err != nil {
			t.Fatal(err)
		}
	}
	bytesWritten := int64(0)
	write := func() {
		f := must.Get(os.Create(filepath.Join(folder, Log)))(t)
		w := bufio.NewWriter(f)
		for i := range rows {
			m := &templates[i%len(templates)]
			before, after, _ := bytes.Cut(lines[i%len(templates)], fmt.Appendf(nil, `"k":%d,`, m.Problem.K))
			n, err := fmt.Fprintf(w, `%s"k":%d,%s`, before, m.Problem.K+i/len(templates)<<14, after)
			if bytesWritten += int64(n); err != nil {
				t.Fatal(err)
			}
		}
		must.Do(t, errors.Join(w.Flush(), f.Close()))
	}
	if os.Getenv("ORIGAMI_UNREAD") != "" {
		write = func() {}
	}
	step(t, "write", rows, write)
	t.Logf("%d MiB, %d B a row", bytesWritten>>20, bytesWritten/int64(rows))
	if name := os.Getenv("CPUPROFILE"); name != "" {
		f, err := os.Create(name)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		must.Do(t, err)
		defer pprof.StopCPUProfile()
	}
	var d *Dataset
	if os.Getenv("ORIGAMI_UNREAD") != "" { // parsing takes nearly all of the time
		step(t, "enter", rows, func() { d = entered(t, source.Conditions, templates, rows) })
	} else {
		step(t, "read", rows, func() {
			if d, err = Read("here", os.DirFS(folder)); err != nil {
				t.Fatal(err)
			}
		})
	}
	if name := os.Getenv("MEMPROFILE"); name != "" {
		if f, err := os.Create(name); err == nil {
			_ = pprof.WriteHeapProfile(f)
			_ = f.Close()
		}
	}
	step(t, "look up all", rows, func() {
		for _, p := range d.Problems() {
			for _, m := range d.Sweep(p) {
				_, there := d.Candidate(p, m.Config)
				must.Need(t, there, "it is not there")
			}
		}
	})
	if os.Getenv("ORIGAMI_MERGE") == "" {
		return
	}
	step(t, "merge", rows, func() {
		merged, err := Merge("there", nil, []*Dataset{d})
		must.Need(t, err == nil && merged.Len() == d.Len(), "%v", err)
	})
}

// entered is what would be read: rows that share nothing but texts.
func entered(t *testing.T, c Conditions, templates []Measurement, rows int) *Dataset {
	t.Helper()
	d := New("here", c)
	for i := range rows {
		m := templates[i%len(templates)]
		m.Problem.K += i / len(templates) << 14
		m.Samples = slices.Clone(m.Samples)
		if m.Numerics != nil {
			n := *m.Numerics
			m.Numerics = &n
		}
		if m.Environment != nil {
			e := *m.Environment
			m.Environment = &e
		}
		must.Do(t, d.Add(m))
	}
	return d
}
