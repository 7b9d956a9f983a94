package dataset

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/must"
)

// TestManyRows shows what a data set of $ORIGAMI_ROWS rows costs to read and to merge: time, and the heap that is left.
// It copies the rows of a sweep on an H200 and changes their sizes.
func TestManyRows(t *testing.T) {
	rows, err := strconv.Atoi(os.Getenv("ORIGAMI_ROWS"))
	if err != nil {
		t.Skip("ORIGAMI_ROWS=1000000 runs it")
	}
	source := must.Get(Read("h200-mma", os.DirFS("../../plugins/nvidia/data/h200-mma")))(t)
	templates := slices.DeleteFunc(source.All(), func(m Measurement) bool { return m.Phase != Sweep || m.Library != "" })
	folder := t.TempDir()
	description := must.Get(AppendDescription(nil, source))(t)
	must.Do(t, os.WriteFile(filepath.Join(folder, DescriptionFile), description, 0o600))
	file := must.Get(os.Create(filepath.Join(folder, Log)))(t)
	w := bufio.NewWriter(file)
	for i := range rows {
		m := templates[i%len(templates)]
		m.Problem.K += i / len(templates) << 14
		must.Get(w.Write(must.Get(AppendLine(nil, source.Conditions, &m))(t)))(t)
	}
	must.Do(t, errors.Join(w.Flush(), file.Close()))
	step := func(what string, do func()) {
		begun := time.Now()
		do()
		took := time.Since(begun)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%s: %v, %d B of heap a row, %d MiB from the system", what, took, m.HeapAlloc/uint64(rows), m.Sys>>20)
	}
	var d *Dataset
	step("read", func() { d = must.Get(Read("here", os.DirFS(folder)))(t) })
	step("merge", func() {
		must.Equal(t, must.Get(Merge("there", nil, []*Dataset{d}))(t).Len(), d.Len())
	})
	runtime.KeepAlive(d)
}
