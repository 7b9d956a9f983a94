package dataset

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// A small file that unpacks to a large one is refused, whatever of it is read.
func TestBombs(t *testing.T) {
	empty := gz(strings.Repeat("\n", int(limit.Table)+1))
	f := files()
	f["times.csv.gz"].Data = append(gz(times), empty...) // gzip members follow one another
	d, err := Read("here", f)
	must.That(t, d == nil && diag.KindOf(err) == diag.Input &&
		strings.HasPrefix(err.Error(), "here/times.csv.gz: it is larger than 64 MiB"), "got %v", err)
	f = files()
	f["dataset.json"].Data = bytes.Repeat([]byte(" "), int(limit.Text)+1)
	_, err = Read("here", f)
	must.That(t, err != nil && strings.HasPrefix(err.Error(),
		"here/dataset.json: it is larger than 1 MiB"), "got %v", err)
}

// A row costs an error, and no memory, however many cells it has and in whichever file it is.
func TestRowsAreBounded(t *testing.T) {
	commas := strings.Repeat(",", 4<<20)
	for name, tc := range map[string]struct {
		change func(f map[string]string)
		want   string
	}{
		"row":     {func(f map[string]string) { f["times.csv.gz"] = times + commas }, "here/times.csv.gz:5: "},
		"header":  {func(f map[string]string) { f["times.csv.gz"] = commas + "\n" }, "here/times.csv.gz:1: "},
		"kernels": {func(f map[string]string) { f["kernels.csv"] += commas }, "here/kernels.csv:5: "},
		"library": {func(f map[string]string) { f["cublas.csv"] += commas }, "here/cublas.csv:3: "},
	} {
		t.Run(name, func(t *testing.T) {
			f, text := files(), map[string]string{"kernels.csv": kernels, "cublas.csv": library}
			tc.change(text)
			for file, content := range text {
				f[file].Data = []byte(content)
				if strings.HasSuffix(file, ".gz") {
					f[file].Data = gz(content)
				}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d, err := Read("here", f)
			runtime.ReadMemStats(&after)
			must.That(t, d == nil && diag.KindOf(err) == diag.Input &&
				strings.HasPrefix(err.Error(), tc.want+"the row has more than 1024 cells, the most that is read of a row; "),
				"got %v", err)
			took := after.TotalAlloc - before.TotalAlloc
			must.That(t, took <= 16<<20, "it took %d MiB", took>>20)
		})
	}
}

// The number of a block is only a number: it costs nothing to be large.
func TestBlocksAreBounded(t *testing.T) {
	d := New("here", Conditions{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range 100 {
		m := Measurement{Problem: gemm.New(i+1, 64, 64), Phase: Final, Block: maxBlocks, Arms: 1, Status: OK}
		must.Do(t, d.Add(m))
		if d.NextBlock(m.Problem) != maxBlocks+1 || len(d.Finals(m.Problem)) != 1 {
			t.Fatalf("next block %d, finals %v", d.NextBlock(m.Problem), d.Finals(m.Problem))
		}
	}
	runtime.ReadMemStats(&after)
	took := after.TotalAlloc - before.TotalAlloc
	must.That(t, took <= 16<<20, "it took %d MiB", took>>20)
}

// A data set that is full says so, and stays as it is.
func TestMeasurementsAreBounded(t *testing.T) {
	d := New("here", Conditions{})
	d.most = 1000
	add := func(i int) error {
		return d.Add(Measurement{Problem: gemm.New(i+1, 64, 64), Phase: Sweep, Status: OK})
	}
	for i := range d.most {
		must.Do(t, d.Full(d.most-i))
		must.Do(t, add(i))
	}
	must.That(t, d.Full(0) == nil && d.Full(1) != nil, "it is not full when it is")
	err := add(d.most)
	must.That(t, diag.KindOf(err) == diag.Input &&
		strings.HasPrefix(err.Error(), "there are more than 1000 measurements, the most of a data set; "), "got %v", err)
	if _, ok := d.Find(gemm.New(d.most, 64, 64), gemm.Config{}); !ok || d.Len() != d.most {
		t.Errorf("%d measurements, the last there: %v", d.Len(), ok)
	}
	_, ok := d.Find(gemm.New(d.most+1, 64, 64), gemm.Config{})
	must.That(t, !ok, "the refused one is there")
}
